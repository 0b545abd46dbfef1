// `nodelet agent`: the node agent alone, against any API server.

import { Command } from 'commander';
import { addAgentFlags, resolveAgentOptions } from '../../agent/config/flags.ts';
import { UserError } from '../../lib/errors.ts';
import { stopSignal } from './signals.ts';

export function agentCommand(): Command {
  const command = new Command('agent').description('run the node agent alone, against any API server');
  return addAgentFlags(command).action(async (flags: Record<string, unknown>) => {
    const options = resolveAgentOptions(flags);
    if (process.getuid?.() !== 0) throw new UserError('must be root: the agent makes mounts, cgroups and namespaces');
    const { runAgent } = await import('../../agent/main.ts');
    await runAgent(options, stopSignal());
  });
}
