// `nodelet agent`: the node agent alone, against any API server.

import { flushCompileCache, getCompileCacheDir } from 'node:module';
import { Command } from 'commander';
import { addAgentFlags, resolveAgentOptions } from '../../agent/config/flags.ts';
import { UserError } from '../../lib/errors.ts';
import { stopSignal } from './signals.ts';

/** Set for the second start, which is the last whatever became of the cache. */
const COMPILED = 'NODELET_COMPILED';

/**
 * Node's TypeScript compiler takes some 25 MB that a process never gives back. When it was needed, because code was not
 * in the compile cache yet, the process starts over with what was compiled. Does not return then.
 */
function startOverIfCompiled(): void {
  const startedOver = process.env[COMPILED] !== undefined;
  delete process.env[COMPILED];
  const loaded: unknown = Reflect.get(process, 'moduleLoadList');
  const compiled = Array.isArray(loaded) && loaded.some((name) => String(name).includes('internal/deps/amaro/'));
  if (!compiled || startedOver || getCompileCacheDir() === undefined || process.execve === undefined) return;
  flushCompileCache();
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  process.execve(process.execPath, args, { ...process.env, [COMPILED]: '1' });
}

export function agentCommand(): Command {
  const command = new Command('agent').description('run the node agent alone, against any API server');
  return addAgentFlags(command).action(async (flags: Record<string, unknown>) => {
    const options = resolveAgentOptions(flags);
    if (process.getuid?.() !== 0) throw new UserError('must be root: the agent makes mounts, cgroups and namespaces');
    const { runAgent } = await import('../../agent/main.ts');
    startOverIfCompiled();
    await runAgent(options, stopSignal());
  });
}
