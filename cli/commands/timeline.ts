// `nodelet timeline`: a pod's way from create to Ready, as a page, a picture, text, or a file for other viewers.

import { Command, Option } from 'commander';
import { stopSignal } from './signals.ts';
import { withTraceFlags } from './trace-flags.ts';

const DEFAULT_WIDTH = 140;

export function timelineCommand(): Command {
  return withTraceFlags(new Command('timeline'))
    .description('what a kubelet did for a pod, and what it waited for: a page, a picture, or text')
    .option('--pod <name>', 'only this pod: name or namespace/name; with its critical path')
    .option('--kubeconfig <file>', 'where the pod’s object is read; the lab’s by default')
    .option(
      '--from <file>',
      'a recorded trace (--format recording, nodelet trace --json) or a recording of nodelet tap',
    )
    .option('--follow', 'begin now, and end when the pod, which need not exist yet, is Ready')
    .option('--compare <file>', 'another recording, side by side with the first')
    .option('--compare-pod <name>', 'another pod, of the same recording or of the one to compare with')
    .option('--all', 'everything that is recorded, not only from create to Ready')
    .addOption(
      new Option('--format <format>', 'by the name of the file without it, and text without a file').choices([
        'text',
        'html',
        'svg',
        'perfetto',
        'otlp',
        'recording',
      ]),
    )
    .option('-o, --output <file>', 'write a file: .html, .svg, .txt, .json (perfetto), .jsonl (recording)')
    .action(async (flags: Omit<import('../timeline/run.ts').TimelineFlags, 'width'>) => {
      const { runTimeline } = await import('../timeline/run.ts');
      const note = (text: string): void => void process.stderr.write(`timeline: ${text}\n`);
      const width = process.stdout.columns ?? DEFAULT_WIDTH;
      process.stdout.write(await runTimeline({ ...flags, width }, note, stopSignal()));
    });
}
