// `nodelet crictl`: crictl's commands for any CRI runtime. Its command line follows crictl's rules, not this program's:
// all words are passed on as they are.

import { Command } from 'commander';
import { systemClock } from '../../lib/clock.ts';
import { errnoOf } from '../../lib/errors.ts';

/** Aborts with the first SIGINT, SIGTERM or SIGHUP; the second one ends the process. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(1);
      controller.abort();
    });
  }
  return controller.signal;
}

export function crictlCommand(): Command {
  return new Command('crictl')
    .description('crictl’s commands: look at and change what a CRI runtime runs, by hand (docs/crictl.md)')
    .helpOption(false)
    .allowUnknownOption()
    .passThroughOptions()
    .argument('[words...]', 'as for crictl')
    .action(async (words: readonly string[]) => {
      const { runCrictl } = await import('../crictl/main.ts');
      process.stdout.on('error', (error) => {
        // `… | head` has read enough.
        if (errnoOf(error) === 'EPIPE') process.exit(0);
        throw error;
      });
      const { stdin, stdout, stderr, env } = process;
      process.exitCode = await runCrictl(words, { stdin, stdout, stderr, env, now: systemClock.now }, interruption());
    });
}
