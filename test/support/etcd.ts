// An etcd of a test's own, from Debian's package: on free ports, with its data in a directory of its own, and gone afterwards.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exec } from '../../lib/exec.ts';
import { freePort } from '../e2e/support/ports.ts';

export interface EtcdTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  /** Of those who call it. */
  readonly clientCert: string;
  readonly clientKey: string;
}

/** For giving up only: by default etcdctl does so after two seconds. */
const PATIENCE = ['--dial-timeout', '60s', '--command-timeout', '120s'] as const;

export class Etcd {
  readonly url: string;
  readonly #directory: string;
  readonly #peer: string;
  readonly #tls: EtcdTls | undefined;
  readonly #fsync: boolean;
  #process: ChildProcess | undefined;

  private constructor(url: string, peer: string, tls: EtcdTls | undefined, fsync: boolean) {
    this.url = url;
    this.#fsync = fsync;
    this.#peer = peer;
    this.#tls = tls;
    this.#directory = mkdtempSync(join(tmpdir(), 'nodelet-etcd-'));
  }

  /** `fsync`: whether a write is on the disk before it is answered, as in a real cluster. */
  static async start(tls?: EtcdTls, fsync = false): Promise<Etcd> {
    const scheme = tls === undefined ? 'http' : 'https';
    const [port, peer] = [await freePort(), await freePort()];
    const etcd = new Etcd(`${scheme}://127.0.0.1:${port}`, `http://127.0.0.1:${peer}`, tls, fsync);
    await etcd.run();
    return etcd;
  }

  /** Starts it on its data; `url` where it is to be reached by others than those who know `this.url`. */
  async run(url = this.url): Promise<void> {
    const tls = this.#tls;
    const flags = [
      ...['--data-dir', join(this.#directory, 'data'), '--name', 'test', '--log-level', 'error'],
      ...(this.#fsync ? [] : ['--unsafe-no-fsync']),
      ...['--listen-client-urls', url, '--advertise-client-urls', url],
      ...['--listen-peer-urls', this.#peer, '--initial-advertise-peer-urls', this.#peer],
      ...['--initial-cluster', `test=${this.#peer}`],
      ...(tls === undefined
        ? []
        : ['--cert-file', tls.cert, '--key-file', tls.key, '--trusted-ca-file', tls.ca, '--client-cert-auth']),
    ];
    const child = spawn('etcd', flags, { stdio: ['ignore', 'ignore', 'ignore'] });
    this.#process = child;
    // Who is stopped leaves none behind.
    const end = (): void => void child.kill('SIGKILL');
    process.once('exit', end);
    child.once('exit', () => process.off('exit', end));
    for (;;) {
      if (child.exitCode !== null) throw new Error(`etcd ended with ${child.exitCode}`);
      const health = await this.ctlAt(url, 'endpoint', 'health');
      if (health.code === 0) return;
    }
  }

  get pid(): number {
    return this.#process?.pid ?? -1;
  }

  ctlAt(url: string, ...args: string[]): ReturnType<typeof exec> {
    const tls = this.#tls;
    const files = tls === undefined ? [] : ['--cacert', tls.ca, '--cert', tls.clientCert, '--key', tls.clientKey];
    const env = { ...process.env, ETCDCTL_API: '3' };
    return exec('etcdctl', ['--endpoints', url, ...PATIENCE, ...files, ...args], { env });
  }

  /** etcdctl's output. */
  async ctl(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.ctlAt(this.url, ...args);
    if (code !== 0) throw new Error(`etcdctl ${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  async keys(prefix = '/'): Promise<string[]> {
    return (await this.ctl('get', prefix, '--prefix', '--keys-only')).split('\n').filter((line) => line !== '');
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    this.#process = undefined;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true });
  }
}
