// systemd-logind, through systemd's own tools: busctl to read its state, systemd-inhibit for the delay lock (a file
// descriptor on the bus, which only a running program can keep). Both end with this process, however it ends: they read a
// pipe from it. Decides nothing.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { type Exec, execOk } from '../../lib/exec.ts';
import { poll } from '../../lib/retry.ts';
import type { Tracer } from '../../lib/trace.ts';
import { tracedExec } from '../../lib/traced-exec.ts';
import type { InhibitLock, Logind } from './node-shutdown.ts';

export interface LogindOptions {
  readonly exec: Exec;
  readonly tracer: Tracer;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /**
   * The drop-in that raises logind's InhibitDelayMaxSec. Below /run, so that it ends with the boot (the kubelet writes it
   * below /etc).
   */
  readonly dropIn?: string;
  readonly log: (level: 'warn', message: string, fields?: Readonly<Record<string, unknown>>) => void;
}

export const DROP_IN = '/run/systemd/logind.conf.d/99-kubelet.conf';
const LOGIND = ['org.freedesktop.login1', '/org/freedesktop/login1', 'org.freedesktop.login1.Manager'] as const;
const SYSTEMD = ['org.freedesktop.systemd1', '/org/freedesktop/systemd1', 'org.freedesktop.systemd1.Manager'] as const;
const MATCH = `type='signal',interface='${LOGIND[2]}',member='PrepareForShutdown',path='${LOGIND[1]}'`;
const SIGHUP = '1';
const ANSWER_MS = 10_000;
/** logind reads its files again some time after the reload request. ms. */
const RELOAD_MS = 5_000;
const RELOAD_STEP_MS = 100;

/** Runs the words given as arguments until they end or standard input does. */
const TIED = `exec 3<&0
"$@" </dev/null 3<&- & child=$!
{ cat <&3; kill "$child"; } >/dev/null 2>&1 & tie=$!
wait "$child"
kill "$tie"`;

type Tied = ChildProcessByStdio<Writable, Readable, Readable>;

function startTied(args: readonly string[]): Tied {
  return spawn('sh', ['-c', TIED, 'sh', ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
}

/** "t 5000000" → 5000. */
export function parseDelay(text: string): number {
  const match = /^t (\d+)\s*$/.exec(text);
  if (match === null) throw new Error(`logind's InhibitDelayMaxUSec is not understood: ${text.trim()}`);
  return Number(match[1]) / 1000;
}

/** Whether a shutdown begins or is called off; undefined for a message that is something else. */
export function parseSignal(line: string): boolean | undefined {
  let message: { member?: unknown; payload?: { data?: unknown } };
  try {
    message = JSON.parse(line);
  } catch {
    // busctl's own remarks are no JSON.
    return undefined;
  }
  const data = message.payload?.data;
  const value: unknown = Array.isArray(data) ? data[0] : undefined;
  return message.member === 'PrepareForShutdown' && typeof value === 'boolean' ? value : undefined;
}

export function createLogind(options: LogindOptions): Logind & { close(): Promise<void> } {
  return new LogindClient(options);
}

/** The newest of what a program wrote on stderr, for errors. */
function lastWords(child: { readonly stderr: Readable }, onMore?: (text: string) => void): () => string {
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => {
    output = `${output}${chunk}`.slice(-500);
    onMore?.(output);
  });
  return () => output.trim();
}

function takeLock(why: readonly string[]): Promise<InhibitLock> {
  // Its command reports that the lock is taken, and keeps it for as long as its own input is open.
  const child = spawn('systemd-inhibit', [...why, 'sh', '-c', 'echo held; exec cat >/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const output = lastWords(child);
  child.stdin.on('error', () => undefined);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`systemd-inhibit ended with ${code}: ${output()}`)));
    child.stdout.once('data', () => resolve({ release: () => child.stdin.end() }));
  });
}

/** `listening`: signals are received from then on. */
function monitor(
  args: readonly string[],
  onShutdown: (begins: boolean) => void,
  signal: AbortSignal,
): { readonly listening: Promise<void>; readonly ended: Promise<void> } {
  const child = startTied(['busctl', ...args]);
  child.stdin.on('error', () => undefined);
  const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
  const output = lastWords(child, (text) => {
    if (text.includes('Monitoring bus message stream')) resolve();
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    const begins = parseSignal(line);
    if (begins !== undefined) onShutdown(begins);
  });
  const ended = new Promise<void>((settled) => {
    child.once('error', (error) => {
      reject(error);
      settled();
    });
    child.stdout.once('close', () => {
      reject(new Error(`busctl monitor ended: ${output()}`));
      child.stdin.end();
      settled();
    });
  });
  signal.addEventListener('abort', () => child.stdin.end(), { once: true });
  return { listening, ended };
}

class LogindClient implements Logind {
  readonly #options: LogindOptions;
  readonly #dropIn: string;
  readonly #run: Exec;

  constructor(options: LogindOptions) {
    this.#options = options;
    this.#dropIn = options.dropIn ?? DROP_IN;
    this.#run = tracedExec(options.tracer, 'systemd', options.exec);
  }

  #call(...args: readonly string[]): Promise<string> {
    return execOk('busctl', ['--system', ...args], { timeoutMs: ANSWER_MS }, this.#run);
  }

  #reload(): Promise<string> {
    return this.#call('call', ...SYSTEMD, 'KillUnit', 'ssi', 'systemd-logind.service', 'all', SIGHUP);
  }

  async inhibitDelayMs(): Promise<number> {
    return parseDelay(await this.#call('get-property', ...LOGIND, 'InhibitDelayMaxUSec'));
  }

  async allowDelay(ms: number): Promise<void> {
    await mkdir(dirname(this.#dropIn), { recursive: true });
    const seconds = Math.ceil(ms / 1000);
    await writeFile(
      this.#dropIn,
      `# Written by nodelet for its shutdownGracePeriod.\n[Login]\nInhibitDelayMaxSec=${seconds}\n`,
    );
    await this.#reload();
    const isAllowed = async (): Promise<boolean> => (await this.inhibitDelayMs()) >= ms;
    await poll(isAllowed, { clock: this.#options.clock, everyMs: RELOAD_STEP_MS, limitMs: RELOAD_MS });
  }

  inhibit(): Promise<InhibitLock> {
    const why = [
      '--what=shutdown',
      '--mode=delay',
      '--who=kubelet',
      '--why=Kubelet needs time to handle node shutdown',
    ];
    return this.#options.tracer.span('systemd', 'systemd-inhibit', { args: why }, () => takeLock(why));
  }

  async watch(onShutdown: (begins: boolean) => void, signal: AbortSignal): Promise<{ readonly ended: Promise<void> }> {
    const args = ['--system', '--json=short', 'monitor', '--match', MATCH];
    // Begun outside of the span: what a shutdown brings about is not part of it.
    const { listening, ended } = monitor(args, onShutdown, signal);
    await this.#options.tracer.span('systemd', 'busctl', { args }, () => listening);
    return { ended };
  }

  async close(): Promise<void> {
    // An agent before this one may have written it.
    if (!existsSync(this.#dropIn)) return;
    try {
      await rm(this.#dropIn, { force: true });
      await this.#reload();
    } catch (error) {
      this.#options.log('warn', `cannot remove ${this.#dropIn}`, { error: errorMessage(error) });
    }
  }
}
