// `nodelet experiment`: a kubelet's behaviour as a file that is run, in virtual time, in a lab, or in a virtual machine.

import { Command } from 'commander';
import { UserError } from '../../lib/errors.ts';
import { repeatedOption } from './list-flag.ts';
import { stopSignal } from './signals.ts';

const print = (text: string): void => void process.stdout.write(text);
const note = (line: string): void => void process.stderr.write(`experiment: ${line}\n`);

function runSubcommand(): Command {
  return new Command('run')
    .description('run an experiment and write its report; exit code 0 where every expectation was met')
    .argument('<file-or-name>', 'a file, or a name of the library')
    .option('--on <world>', 'sim: in virtual time; lab: on this machine, as root; vm: on a virtual one', 'sim')
    .option('--agent <agent>', 'nodelet, or kubelet=/path of a kubelet binary (lab, vm)', 'nodelet')
    .option('--repeat <n>', 'run each variation so many times, each with the next seed', '1')
    .option('--seed <n>', 'what the simulated world takes its small differences from', '1')
    .addOption(repeatedOption('--matrix <name=v1,v2>', 'vary a parameter; without values, by those of the file'))
    .option('-o, --output <dir>', 'the folder of the result (default: experiment-NAME-WORLD)')
    .action(async (fileOrName: string, flags: import('../experiment/command.ts').RunFlags) => {
      const { runCommand } = await import('../experiment/command.ts');
      process.exitCode = await runCommand(fileOrName, flags, { print, note, signal: stopSignal() });
    });
}

function compareSubcommand(): Command {
  return new Command('compare')
    .description('compare two results; exit code 0 where they agree, 1 where they differ')
    .argument('<a>', 'folder of a result')
    .argument('<b>', 'folder of another')
    .option('--tolerance <percent>', 'how much numbers may differ, as 10%')
    .option('-o, --output <file>', 'write a report: .md or .html')
    .action(async (a: string, b: string, flags: { readonly tolerance?: string; readonly output?: string }) => {
      const { parseTolerance, runCompare } = await import('../experiment/compare/run.ts');
      try {
        const tolerance = flags.tolerance === undefined ? {} : { tolerance: parseTolerance(flags.tolerance) };
        const output = flags.output === undefined ? {} : { output: flags.output };
        process.exitCode = await runCompare(a, b, { ...tolerance, ...output }, print);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        // 1 is "different".
        process.stderr.write(`nodelet: ${error.message}\n`);
        process.exitCode = 2;
      }
    });
}

export function experimentCommand(): Command {
  return new Command('experiment')
    .description('run experiments on a kubelet’s behaviour (docs/experiments.md)')
    .addCommand(
      new Command('list').description('the library').action(async () => {
        const { listExperiments } = await import('../experiment/command.ts');
        await listExperiments(print);
      }),
    )
    .addCommand(
      new Command('show')
        .description('print the file of an experiment')
        .argument('<file-or-name>')
        .action(async (fileOrName: string) => {
          const { showExperiment } = await import('../experiment/command.ts');
          await showExperiment(fileOrName, print);
        }),
    )
    .addCommand(runSubcommand())
    .addCommand(compareSubcommand())
    .addCommand(
      new Command('schema').description('print the JSON schema of the files').action(async () => {
        const { experimentSchema } = await import('../experiment/load.ts');
        print(`${JSON.stringify(await experimentSchema(), undefined, 2)}\n`);
      }),
    );
}
