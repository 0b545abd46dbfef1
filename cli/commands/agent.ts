// `nodelet agent`: the node agent alone, against any API server.

import { globSync } from 'node:fs';
import { flushCompileCache, getCompileCacheDir } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { addAgentFlags, resolveAgentOptions } from '../../agent/config/flags.ts';
import { UserError } from '../../lib/errors.ts';
import { stopSignal } from './signals.ts';

/** Programs of their own. */
const APART = [
  'lib/self-signed.ts',
  'agent/node/slow-facts.ts',
  'agent/sources/decode-program.ts',
  'cni/shim/nodelet-cni.ts',
  'proto/gen/**',
];
/** Set for the second start, which is the last whatever became of the cache. */
const COMPILED = 'NODELET_COMPILED';

/**
 * Node's TypeScript compiler takes some 25 MB that a process never frees. When it was needed, because code was not in the
 * compile cache yet, the process restarts with the compiled code. Does not return then.
 */
async function startOverIfCompiled(): Promise<void> {
  const startedOver = process.env[COMPILED] !== undefined;
  delete process.env[COMPILED];
  const loaded: unknown = Reflect.get(process, 'moduleLoadList');
  const compiled = Array.isArray(loaded) && loaded.some((name) => String(name).includes('internal/deps/amaro/'));
  if (!compiled || startedOver || getCompileCacheDir() === undefined || process.execve === undefined) return;
  await compileWhatMayCome();
  flushCompileCache();
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  process.execve(process.execPath, args, { ...process.env, [COMPILED]: '1' });
}

/** What the agent loads only when it needs it goes into the cache too, or it would bring the compiler in then. */
async function compileWhatMayCome(): Promise<void> {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const files = globSync(['{agent,client,cni,lib,proto}/**/*.ts', 'csi/*.ts'], { cwd: root, exclude: APART });
  for (const file of files) await import(pathToFileURL(join(root, file)).href);
}

export function agentCommand(): Command {
  const command = new Command('agent').description('run the node agent alone, against any API server');
  return addAgentFlags(command).action(async (flags: Record<string, unknown>) => {
    const options = resolveAgentOptions(flags);
    if (process.getuid?.() !== 0) throw new UserError('must be root: the agent makes mounts, cgroups and namespaces');
    const { runAgent } = await import('../../agent/main.ts');
    await startOverIfCompiled();
    await runAgent(options, stopSignal());
  });
}
