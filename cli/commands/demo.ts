// `nodelet demo`: the main job, shown from start to end on this machine.

import { Command, Option } from 'commander';
import type { DemoFlags } from '../demo/on-this-machine.ts';
import { commandEnding } from './ending.ts';

export function demoCommand(): Command {
  return new Command('demo')
    .description('run a real pod and a small cluster on this machine, show every step, prove it, and clean up')
    .option('--pod', 'the pod alone, without the cluster')
    .option('--root <dir>', 'directory of the demo’s lab', '/var/lib/nodelet-demo')
    .addOption(
      new Option('--compare <what>', 'what has to be as before: the whole machine, or what bears the lab’s names')
        .choices(['machine', 'lab'])
        .default('machine'),
    )
    .addOption(
      new Option('--cgroup-driver <driver>', 'pods’ cgroups as plain directories, or as slices of systemd')
        .choices(['cgroupfs', 'systemd'])
        .default('cgroupfs'),
    )
    .addOption(
      new Option('--runtime <name>', 'what runs the pod: containerd, or a dockerd of the lab’s own')
        .choices(['containerd', 'docker'])
        .default('containerd'),
    )
    .action(async (flags: DemoFlags) => {
      const [{ demoOnThisMachine }, { rescueLab }] = await Promise.all([
        import('../demo/on-this-machine.ts'),
        import('../lab/up.ts'),
      ]);
      // What it shows is all that a demo is for.
      const ending = commandEnding({ endWhenFull: true, rescue: () => rescueLab(flags) });
      process.exitCode = ending.exitCode(await demoOnThisMachine(flags, ending));
    });
}
