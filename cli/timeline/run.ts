// `nodelet timeline`: reads the evidence, builds the timeline, writes it in the chosen format. Prints nothing itself.

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { writeFileAtomic } from '../../lib/atomic.ts';
import { errnoOf, errorMessage, UserError } from '../../lib/errors.ts';
import { kubeconfigOf, type TraceSource, traceSocket } from '../lab/trace-source.ts';
import { parseObjectName } from '../object-name.ts';
import { buildTimeline, spansOf } from './build.ts';
import { compareTimelines } from './compare.ts';
import { followUntilReady, nodeOf, readHistory, readObject } from './live.ts';
import type { Evidence, Timeline } from './model.ts';
import { EvidenceReader, recordingLines } from './recording.ts';
import { shownWindow } from './window.ts';

export const FORMATS = ['text', 'html', 'svg', 'perfetto', 'otlp', 'recording'] as const;
export type Format = (typeof FORMATS)[number];

export interface TimelineFlags extends TraceSource {
  readonly kubeconfig?: string;
  readonly pod?: string;
  readonly from?: string;
  readonly compare?: string;
  readonly comparePod?: string;
  readonly follow?: boolean;
  readonly all?: boolean;
  readonly format?: Format;
  readonly output?: string;
  readonly width: number;
}

/** By the end of a file's name. */
const BY_ENDING: ReadonlyMap<string, Format> = new Map([
  ['html', 'html'],
  ['svg', 'svg'],
  ['txt', 'text'],
  ['json', 'perfetto'],
  ['jsonl', 'recording'],
]);

/** The format that is named, or that the name of the file says. Throws UserError. */
export function formatOf({ format, output }: Pick<TimelineFlags, 'format' | 'output'>): Format {
  if (format !== undefined) return format;
  if (output === undefined) return 'text';
  const found = BY_ENDING.get(/\.([^./]+)$/.exec(output)?.[1] ?? '');
  if (found !== undefined) return found;
  throw new UserError(`the name "${output}" does not say which format it is to have: --format ${FORMATS.join('|')}`);
}

/** Spans, versions of pods, or a tap's recording, as the file's lines are. Rejects with UserError. */
export async function readEvidence(path: string): Promise<Evidence> {
  const reader = new EvidenceReader();
  let first = true;
  try {
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
      if (first && line.startsWith('{"record":"recording"')) {
        const { tapEvidence } = await import('./tap-evidence.ts');
        return await tapEvidence(path);
      }
      first = false;
      reader.push(line);
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    throw new UserError(`cannot read ${path}: ${errorMessage(error)}`);
  }
  if (reader.isEmpty)
    throw new UserError(`${path} is neither a trace (nodelet trace --json) nor a recording of nodelet tap`);
  return reader.finish(path);
}

/** Gets what the user should know meanwhile. */
export type Note = (text: string) => void;

async function liveEvidence(flags: TimelineFlags, note: Note, signal: AbortSignal): Promise<Evidence> {
  const kubeconfig = kubeconfigOf(flags, flags.kubeconfig);
  const socket = await traceSocket(flags, async () => {
    if (flags.pod === undefined || kubeconfig === undefined) return undefined;
    return await nodeOf(kubeconfig, parseObjectName(flags.pod));
  });
  if (flags.follow === true) {
    if (flags.pod === undefined) throw new UserError('--follow needs --pod: it ends when that pod is Ready');
    if (kubeconfig === undefined)
      throw new UserError('--follow needs --kubeconfig: it watches the pod at the API server');
    const { pod } = flags;
    return await followUntilReady(
      socket,
      kubeconfig,
      parseObjectName(pod),
      () => note(`recording until pod ${pod} is Ready`),
      signal,
    );
  }
  const history = await readHistory(socket);
  if (flags.pod === undefined || kubeconfig === undefined) return history;
  const { objects, problems } = await readObject(kubeconfig, parseObjectName(flags.pod));
  return { ...history, objects, problems: [...history.problems, ...problems] };
}

interface Material {
  readonly timelines: readonly [Timeline, ...Timeline[]];
  readonly evidence: Evidence;
}

async function render({ timelines, evidence }: Material, format: Format, flags: TimelineFlags): Promise<string> {
  const [timeline, other] = timelines;
  const comparison = other === undefined ? undefined : compareTimelines(timeline, other);
  const everything = flags.all === true;
  switch (format) {
    case 'text': {
      if (other !== undefined && comparison !== undefined) {
        const { renderComparison } = await import('./compare-text.ts');
        return renderComparison(timeline, other, comparison);
      }
      const { renderText } = await import('./text.ts');
      return renderText(timeline, { width: flags.width, window: shownWindow([timeline], everything) });
    }
    case 'html': {
      const { renderHtml } = await import('./html.ts');
      return await renderHtml(timelines, comparison);
    }
    case 'svg': {
      const { renderSvg } = await import('./svg.ts');
      return renderSvg(timelines, { width: 1200, window: shownWindow(timelines, everything), comparison });
    }
    case 'perfetto': {
      const { toTraceFile } = await import('./perfetto.ts');
      return `${JSON.stringify(toTraceFile(timelines))}\n`;
    }
    case 'recording':
      return `${recordingLines(evidence).join('\n')}\n`;
    case 'otlp': {
      const [{ toOtlp }, { causesOf }] = await Promise.all([import('./otlp.ts'), import('./causes.ts')]);
      const spans = spansOf(evidence, flags.pod);
      return `${JSON.stringify(toOtlp(spans, causesOf(spans), evidence.source))}\n`;
    }
  }
}

const build = (evidence: Evidence, pod: string | undefined): Timeline =>
  buildTimeline(evidence, pod === undefined ? {} : { pod });

/** Resolves to what is to be printed: the timeline, or where it was written. Rejects with UserError. */
export async function runTimeline(flags: TimelineFlags, note: Note, signal: AbortSignal): Promise<string> {
  const format = formatOf(flags);
  const evidence = flags.from === undefined ? await liveEvidence(flags, note, signal) : await readEvidence(flags.from);
  const timeline = build(evidence, flags.pod);
  const { compare, comparePod = flags.pod } = flags;
  const isCompared = compare !== undefined || flags.comparePod !== undefined;
  const other = isCompared ? [build(compare === undefined ? evidence : await readEvidence(compare), comparePod)] : [];
  const text = await render({ timelines: [timeline, ...other], evidence }, format, flags);
  if (flags.output === undefined) return text;
  // Paths and addresses of the node, and with `recording` whole objects, are the user's own business.
  await writeFileAtomic(flags.output, text, 0o600);
  return '';
}
