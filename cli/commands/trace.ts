// `nodelet trace`: what the agent of a lab has done and does, one line per outward call, until Ctrl-C.

import { Command } from 'commander';
import { whenAborted } from '../../lib/abort.ts';
import { UserError } from '../../lib/errors.ts';
import { rfc3339Milli } from '../../lib/rfc3339.ts';
import type { Span } from '../../lib/trace.ts';
import { narrate } from '../demo/narrate.ts';
import { followSpans, noTrace } from '../demo/spans.ts';
import { type TraceSource, traceSocket } from '../lab/trace-source.ts';
import { stopSignal } from './signals.ts';
import { withTraceFlags } from './trace-flags.ts';

interface Flags extends TraceSource {
  readonly json?: boolean;
  readonly pod?: string;
  readonly detail?: boolean;
}

/** Whether a span is about the pod, given as "namespace/name" or as a name in any namespace. */
export function isAbout(span: Span, pod: string | undefined): boolean {
  if (pod === undefined) return true;
  if (span.pod === undefined) return false;
  return pod.includes('/') ? pod === `${span.pod.namespace}/${span.pod.name}` : pod === span.pod.name;
}

export function traceCommand(): Command {
  return withTraceFlags(new Command('trace'))
    .description('show every CRI, CNI, mount, netlink, probe and API call of an agent, the newest 2048 and then live')
    .option('--pod <name>', 'only calls for this pod: name or namespace/name')
    .option('--json', 'whole spans, one JSON object per line')
    .option('--detail', 'new calls with what was sent and received; credentials are masked')
    .action(async (flags: Flags) => {
      const socket = await traceSocket(flags);
      const signal = stopSignal();
      const show = (span: Span): void => {
        if (!isAbout(span, flags.pod)) return;
        const line = flags.json === true ? JSON.stringify(span) : readable(span);
        if (line !== undefined) process.stdout.write(`${line}\n${flags.json === true ? '' : detailText(span)}`);
      };
      const stream = await followSpans(socket, show, flags.detail === true).catch((error: unknown) => {
        throw new UserError(noTrace(socket, error));
      });
      await Promise.race([stream.ended, whenAborted(signal)]);
      stream.close();
    });
}

function readable(span: Span): string | undefined {
  const text = narrate(span, span.start);
  if (text === undefined) return undefined;
  const pod = span.pod === undefined ? '-' : `${span.pod.namespace}/${span.pod.name}`;
  // The demo's column of elapsed time means nothing here; the clock does.
  return `${rfc3339Milli(span.start)}  ${pod}  ${text.replace(/^\s*\d+ ms\s+/, '')}`;
}

/** Below the line of a span: what was sent and received, indented. */
function detailText({ detail = {} }: Span): string {
  return Object.entries(detail)
    .map(([name, text]) => `    ${name}: ${text.replaceAll('\n', '\n      ')}\n`)
    .join('');
}
