// The flags of every command that reads an agent's trace: whose it is (cli/lab/trace-source.ts).

import type { Command } from 'commander';
import { DEFAULT_ROOT } from '../lab/paths.ts';

export function withTraceFlags(command: Command): Command {
  return command
    .option('--root <dir>', 'the lab’s directory', DEFAULT_ROOT)
    .option('--node <name>', 'of a lab with several nodes: whose agent')
    .option('--socket <path>', 'the trace socket of an agent that runs alone (<socket-dir>/trace.sock)');
}
