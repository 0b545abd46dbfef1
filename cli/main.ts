// The `nodelet` command. One file per subcommand in commands/; each imports what it needs only when it runs, so that
// `nodelet agent` never pays for the API server. Whatever the user can mend is one line on stderr and exit code 1.

import { Command, CommanderError } from 'commander';
import { errorMessage, UserError } from '../lib/errors.ts';
import { agentCommand } from './commands/agent.ts';
import { apiserverCommand } from './commands/apiserver.ts';
import { controlplaneCommand } from './commands/controlplane.ts';
import { crictlCommand } from './commands/crictl.ts';
import { csiDriverCommand } from './commands/csi-driver.ts';
import { csiSanityCommand } from './commands/csi-sanity.ts';
import { demoCommand } from './commands/demo.ts';
import { kubeconfigCommand } from './commands/kubeconfig.ts';
import { downCommand, upCommand } from './commands/lab.ts';
import { tapCommand } from './commands/tap.ts';
import { traceCommand } from './commands/trace.ts';

/** The whole command tree; parsing it runs the chosen subcommand. */
export function buildProgram(): Command {
  const program = new Command('nodelet');
  program
    .description('A kubelet you can read: runs real pods on this machine, and shows every step.')
    .showHelpAfterError('(try --help)')
    .configureHelp({ sortSubcommands: false })
    // A command and the commands below it may have options of the same name.
    .enablePositionalOptions()
    .exitOverride();
  for (const command of [
    demoCommand(),
    upCommand(),
    downCommand(),
    agentCommand(),
    apiserverCommand(),
    csiDriverCommand(),
    csiSanityCommand(),
    kubeconfigCommand(),
    traceCommand(),
    tapCommand(),
    crictlCommand(),
  ]) {
    program.addCommand(command);
  }
  program.addCommand(controlplaneCommand(), { hidden: true });
  for (const command of program.commands) command.exitOverride();
  return program;
}

async function main(): Promise<number> {
  try {
    await buildProgram().parseAsync(process.argv);
    return typeof process.exitCode === 'number' ? process.exitCode : 0;
  } catch (error) {
    // Commander has printed its own message (or the requested help).
    if (error instanceof CommanderError) return error.exitCode;
    if (error instanceof UserError) {
      process.stderr.write(`nodelet: ${error.message}\n`);
      return 1;
    }
    process.stderr.write(`nodelet: ${error instanceof Error ? (error.stack ?? error.message) : errorMessage(error)}\n`);
    return 1;
  }
}

if (import.meta.main) {
  const code = await main();
  // A command that failed half-way may have left a socket or a timer behind; which must not keep it running.
  if (code !== 0) process.exit(code);
  process.exitCode = code;
}
