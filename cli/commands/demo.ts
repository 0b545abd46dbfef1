// `nodelet demo`: the main job, shown from start to end on this machine.

import { Command } from 'commander';

export function demoCommand(): Command {
  return new Command('demo')
    .description('run a real pod on this machine, show every step, prove it, and clean up')
    .option('--root <dir>', 'directory of the demo’s lab', '/var/lib/nodelet-demo')
    .action(async (flags: { root: string }) => {
      const { demoOnThisMachine } = await import('../demo/on-this-machine.ts');
      process.exitCode = await demoOnThisMachine(flags.root);
    });
}
