// A server in a process of its own, for measurements: the API server, the raw store behind HTTPS (raw-server.ts), or a kube-apiserver.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensurePki } from '../../../apiserver/main.ts';
import { writeKubeconfig } from '../../../apiserver/pki/kubeconfig.ts';
import { type ClusterAccess, loadKubeconfig } from '../../../client/kubeconfig.ts';
import { systemClock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { freePort } from '../../e2e/support/ports.ts';
import { Watching } from './watching.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
const RAW_SERVER = fileURLToPath(new URL('raw-server.ts', import.meta.url));
/** Of /proc/<pid>/stat. */
const TICKS_PER_SECOND = 100;
/** What each of them writes once it listens. */
const READY = 'the API server serves';
/** Between two questions whether a server is ready. */
const READY_AGAIN_MS = 50;
export const RAW_READY = 'the raw store serves';

export class BenchServer {
  readonly access: ClusterAccess;
  readonly pid: number;
  /** From the start of the process until it serves, ms. */
  readonly startMs: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, pid: number, access: ClusterAccess, startMs: number) {
    this.#child = child;
    this.pid = pid;
    this.access = access;
    this.startMs = startMs;
  }

  /** `nodelet apiserver` on the directory, with more flags. */
  static apiServer(root: string, flags: readonly string[] = []): Promise<BenchServer> {
    return BenchServer.#start(root, READY, [NODELET, 'apiserver', '--root', root, '--port', '0', ...flags]);
  }

  /** The raw store on the directory. */
  static rawStore(root: string): Promise<BenchServer> {
    return BenchServer.#start(root, RAW_READY, [process.execPath, RAW_SERVER, root]);
  }

  /** A kube-apiserver, `program`, on the etcd, with certificates of our own. */
  static async kubeApiServer(root: string, program: string, etcd: string): Promise<BenchServer> {
    const pki = await ensurePki(join(root, 'pki'), { hosts: [], nodeName: 'bench', now: systemClock.now() });
    const port = await freePort();
    const access = { server: `https://127.0.0.1:${port}`, ca: pki.ca.cert, user: 'admin', client: pki.clients.admin };
    await writeKubeconfig(join(root, 'kubeconfig'), access);
    const server = await BenchServer.#start(root, 'Serving securely', [
      program,
      ...[`--etcd-servers=${etcd}`, '--bind-address=127.0.0.1', `--secure-port=${port}`],
      ...[`--tls-cert-file=${pki.serving.certPath}`, `--tls-private-key-file=${pki.serving.keyPath}`],
      `--client-ca-file=${pki.ca.certPath}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${pki.serviceAccount.publicKeyPath}`,
      `--service-account-signing-key-file=${pki.serviceAccount.keyPath}`,
      ...['--authorization-mode=Node,RBAC', '--enable-admission-plugins=NodeRestriction'],
      '--service-cluster-ip-range=10.96.0.0/16',
    ]);
    await ready(server.access);
    return server;
  }

  static async #start(root: string, line: string, [program = '', ...args]: readonly string[]): Promise<BenchServer> {
    const began = performance.now();
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const ready = Promise.withResolvers<void>();
    let output = '';
    const look = (chunk: Buffer): void => {
      // Only its beginning is of interest: a later line is another's.
      if (output.length < 65_536) output += chunk.toString();
      if (output.includes(line)) ready.resolve();
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('error', ready.reject);
    // A measurement that fails leaves none behind.
    const end = (): void => void child.kill('SIGKILL');
    process.once('exit', end);
    child.once('exit', () => process.off('exit', end));
    child.once('exit', (code) => ready.reject(new Error(`the server ended with ${code}: ${output}`)));
    await ready.promise;
    const startMs = performance.now() - began;
    const access = await loadKubeconfig(join(root, 'kubeconfig'));
    return new BenchServer(child, child.pid ?? -1, access, startMs);
  }

  residentMiB(): Promise<number> {
    return residentMiB(this.pid);
  }

  cpuMs(): Promise<number> {
    return cpuMs(this.pid);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exit;
  }
}

/** Its first objects, default roles among them, are made after it listens. */
async function ready(access: ClusterAccess): Promise<void> {
  const requests = new Watching(access, 1);
  try {
    for (;;) {
      try {
        await requests.call('GET', '/readyz');
        return;
      } catch (error) {
        if (!errorMessage(error).startsWith('GET /readyz: 5')) throw error;
      }
      await systemClock.sleep(READY_AGAIN_MS);
    }
  } finally {
    requests.close();
  }
}

/** Of a process, MiB. */
export async function residentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

/** Processor time of a process and all its threads so far, ms; exact to 10 ms. */
export async function cpuMs(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND) * 1000;
}
