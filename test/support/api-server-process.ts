// `nodelet apiserver` in a process of its own, which can be killed and started again on the same files and port.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../e2e/support/ports.ts';

export const NODELET = fileURLToPath(new URL('../../bin/nodelet', import.meta.url));
/** What it logs once it listens. */
const READY = 'the API server serves';

export class ApiServerProcess {
  readonly root: string;
  /** As `nodelet apiserver` writes it: the administrator's. */
  readonly kubeconfig: string;
  #port: number | undefined;
  #child: ChildProcess | undefined;

  constructor(root: string) {
    this.root = root;
    this.kubeconfig = join(root, 'kubeconfig');
  }

  /** Resolves when it serves: on the same port each time, which is none of those that the kernel lends meanwhile. */
  async start(...flags: string[]): Promise<void> {
    this.#port ??= await freePort();
    const args = ['apiserver', '--root', this.root, '--port', String(this.#port), ...flags];
    const child = spawn(NODELET, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    const ready = Promise.withResolvers<void>();
    let output = '';
    const look = (chunk: Buffer): void => {
      output += chunk.toString();
      if (output.includes(READY)) ready.resolve();
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('exit', (code) => ready.reject(new Error(`nodelet apiserver ended with ${code}: ${output}`)));
    await ready.promise;
  }

  /** Resolves when the process is gone. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }
}
