// `nodelet ui`: the timelines of a node's pods as pages that follow what happens, on a loopback address.

import { Command } from 'commander';
import { whenAborted } from '../../lib/abort.ts';
import { systemClock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { kubeconfigOf, type TraceSource, traceSocket } from '../lab/trace-source.ts';
import { stopSignal } from './signals.ts';
import { withTraceFlags } from './trace-flags.ts';

interface Flags extends TraceSource {
  readonly kubeconfig?: string;
  readonly port: string;
  readonly detail?: boolean;
}

function portOf(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new UserError(`--port must be 0 to 65535, not "${text}"`);
  return Number(text);
}

export function uiCommand(): Command {
  return withTraceFlags(new Command('ui'))
    .description('the timelines of all pods in a browser, live, on a loopback address')
    .option('--kubeconfig <file>', 'where pods are watched; the lab’s by default')
    .option('--detail', 'with what new calls sent and received; credentials are masked')
    .option('--port <port>', 'on 127.0.0.1; 0 takes one that is free', '0')
    .action(async (flags: Flags) => {
      const port = portOf(flags.port);
      const [{ UiStore }, { recordPods, recordSpans }, { startUiServer }] = await Promise.all([
        import('../ui/store.ts'),
        import('../ui/recorder.ts'),
        import('../ui/server.ts'),
      ]);
      const kubeconfig = kubeconfigOf(flags, flags.kubeconfig);
      const socketPath = await traceSocket(flags);
      const store = new UiStore();
      const over = new AbortController();
      const signal = AbortSignal.any([stopSignal(), over.signal]);
      const clock = systemClock;
      const server = await startUiServer({ store, clock, port });
      try {
        process.stdout.write(`${server.url}\nopen this address in a browser; Ctrl-C ends it\n`);
        await Promise.all([
          recordSpans(store, { socketPath, detail: flags.detail === true }, clock, signal),
          kubeconfig === undefined ? whenAborted(signal) : recordPods(store, kubeconfig, clock, signal),
        ]);
      } finally {
        over.abort();
        await server.close();
      }
    });
}
