// Puts the shim where a container runtime finds it: the executable, the `loopback` plugin that containerd runs by
// itself, and the one conflist that names the shim. Never runs a plugin and never talks to the agent.

import { constants } from 'node:fs';
import { access, mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureFile, makeAtomic } from '../../lib/atomic.ts';
import { isErrno, UserError } from '../../lib/errors.ts';
import { execOk } from '../../lib/exec.ts';

export const SHIM_NAME = 'nodelet-cni';
export const SHIM_CONFLIST = '10-nodelet-shim.conflist';
/** Name of the network that the container runtime sees; the agent's real network has its own. */
export const SHIM_NETWORK = 'nodelet';
/** Where distributions keep CNI plugins: Debian's own place, then the one of upstream packages. */
export const PLUGIN_DIRS: readonly string[] = ['/usr/lib/cni', '/opt/cni/bin', '/usr/libexec/cni'];

/** sun_path holds 108 bytes, the last of them NUL. */
const MAX_SOCKET_PATH_BYTES = 107;

/**
 * Every capability a container runtime may have arguments for. With all of them declared the runtime sends whatever it
 * has; the real chain decides which of them reach a plugin.
 */
export const SHIM_CAPABILITIES: readonly string[] = [
  'portMappings',
  'bandwidth',
  'dns',
  'ips',
  'mac',
  'ipRanges',
  'infinibandGUID',
  'deviceID',
  'aliases',
  'cgroupPath',
  'io.kubernetes.cri.pod-annotations',
];

/**
 * The conflist for the container runtime. Version 1.0.0 is the newest that containerd 1.6 reads; the agent converts
 * results from the version of its own chain.
 */
export function shimConflist(): string {
  const capabilities = Object.fromEntries(SHIM_CAPABILITIES.map((name) => [name, true]));
  const conflist = { cniVersion: '1.0.0', name: SHIM_NETWORK, plugins: [{ type: SHIM_NAME, capabilities }] };
  return `${JSON.stringify(conflist, null, 2)}\n`;
}

/** Writes the conflist atomically; a container runtime that watches `confDir` turns NetworkReady. Returns its path. */
export async function writeShimConf(confDir: string): Promise<string> {
  const path = join(confDir, SHIM_CONFLIST);
  await ensureFile(path, shimConflist());
  return path;
}

/** Removes the conflist, so that the container runtime takes no new pods. Nothing happens when it is not there. */
export async function removeShimConf(confDir: string): Promise<void> {
  await rm(join(confDir, SHIM_CONFLIST), { force: true });
}

const PERL_SHIM = new URL('./nodelet-cni.pl', import.meta.url);
const TYPESCRIPT_SHIM = fileURLToPath(new URL('./nodelet-cni.ts', import.meta.url));

/** Made by another process: Node's TypeScript compiler takes 15 MB that the agent would never give back. */
async function javaScriptShim(node: string): Promise<string> {
  const program = `
    const { readFileSync } = require('node:fs');
    process.stdout.write(require('node:module').stripTypeScriptTypes(readFileSync(process.argv[1], 'utf8')));`;
  const script = await execOk(node, ['--no-warnings', '-e', program, TYPESCRIPT_SHIM], { timeoutMs: 60_000 });
  return `#!${node}\n${script}`;
}

/**
 * The shim's text for one agent, in Perl or, with `node` (the path of a Node), in TypeScript without its types. The
 * socket is part of the program, never read from input a pod can influence.
 */
export async function shimScript(socketPath: string, node?: string): Promise<string> {
  if (Buffer.byteLength(socketPath) > MAX_SOCKET_PATH_BYTES) {
    throw new UserError(`CNI socket path is longer than ${MAX_SOCKET_PATH_BYTES} bytes: ${socketPath}`);
  }
  if (!/^\/[\w./@:+=~,-]*$/.test(socketPath)) {
    throw new UserError(`CNI socket path must be absolute, of letters, digits and ./_@:+=~,- only: ${socketPath}`);
  }
  const template = await (node === undefined ? readFile(PERL_SHIM, 'utf8') : javaScriptShim(node));
  return template.replaceAll('@SOCKET_PATH@', socketPath);
}

/**
 * Installs the executable into `binDir`, with a link to the `loopback` plugin beside it. Rejects with UserError when
 * `loopback` is in none of `pluginDirs`: containerd 1.x starts no pod without it.
 */
export async function installShim(
  binDir: string,
  options: { readonly socketPath: string; readonly pluginDirs?: readonly string[]; readonly node?: string },
): Promise<string> {
  const path = join(binDir, SHIM_NAME);
  await mkdir(binDir, { recursive: true });
  await ensureFile(path, await shimScript(options.socketPath, options.node), 0o755);
  await linkLoopback(binDir, options.pluginDirs ?? PLUGIN_DIRS);
  return path;
}

async function linkLoopback(binDir: string, pluginDirs: readonly string[]): Promise<void> {
  for (const dir of pluginDirs) {
    if (dir === binDir) continue;
    const candidate = join(dir, 'loopback');
    try {
      await access(candidate, constants.X_OK);
    } catch (error) {
      if (isErrno(error, 'ENOENT', 'EACCES', 'ENOTDIR')) continue;
      throw error;
    }
    const link = join(binDir, 'loopback');
    const temporary = `${link}.tmp-${process.pid}`;
    await rm(temporary, { force: true });
    await makeAtomic(link, temporary, () => symlink(candidate, temporary));
    return;
  }
  throw new UserError(`no CNI plugin "loopback" in ${pluginDirs.join(', ')} (Debian: containernetworking-plugins)`);
}
