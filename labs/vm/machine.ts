// Running a virtual machine: which accelerator works, the qemu process, and the lines that come out of it.

import { spawn } from 'node:child_process';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { errorMessage } from '../../lib/errors.ts';
import { exec } from '../../lib/exec.ts';
import { type Accel, type MachineOptions, probeArguments, qemuArguments } from './plan.ts';

export const QEMU = 'qemu-system-x86_64';
/** A kernel greets within a second or two where KVM works; a KVM that hangs is none. */
const PROBE_MS = 20_000;

/** KVM where a guest really runs under it: a device file alone promises nothing in nested or confined machines. */
export async function chooseAccel(kernel: string, say: (line: string) => void): Promise<Accel> {
  const result = await exec(QEMU, probeArguments('kvm', kernel), { timeoutMs: PROBE_MS });
  if (/Linux version \d/.test(result.stdout)) return 'kvm';
  const words = result.stderr.trim().split('\n').at(-1);
  const why = result.timedOut
    ? `the guest printed nothing for ${PROBE_MS / 1000} s`
    : words || 'the guest printed nothing';
  say(`KVM does not work here (${why}): the processor is emulated, which is about 20 times slower`);
  return 'tcg';
}

export interface MachineLimits {
  /** The machine is switched off when it has run for so long, ms. */
  readonly runMs?: number;
  /** The machine is switched off when no line has come for so long, ms. */
  readonly silenceMs?: number;
  readonly signal: AbortSignal;
  /** What it throws is why the run has failed; the machine goes on. */
  readonly onLine: (line: string) => void;
}

/**
 * Boots the machine and waits until it is off. Resolves with why it did not come to its own end, or undefined. `directory`: the
 * run's.
 */
export async function runMachine(
  directory: string,
  options: Omit<MachineOptions, 'resultsSocket'>,
  limits: MachineLimits,
): Promise<string | undefined> {
  const socket = join(directory, 'results.sock');
  let trouble: string | undefined;
  let qemu: RunningQemu | undefined;
  const server = await listen(socket, (line) => {
    qemu?.heard();
    try {
      limits.onLine(line);
    } catch (error) {
      trouble ??= errorMessage(error);
    }
  });
  try {
    qemu = startQemu(qemuArguments({ ...options, resultsSocket: socket }), limits, options.consoleLog === undefined);
    const ended = await qemu.ended;
    await server.drained;
    return ended ?? trouble;
  } finally {
    server.close();
  }
}

interface RunningQemu {
  /** Resolves with why qemu did not end well, or undefined. Rejects where it could not be started. */
  readonly ended: Promise<string | undefined>;
  /** A line has come. */
  heard(): void;
}

const minutes = (ms: number): number => Math.round(ms / 60_000);

function startQemu(args: readonly string[], limits: MachineLimits, interactive: boolean): RunningQemu {
  const { runMs, silenceMs, signal } = limits;
  // Lowest priority: an emulated processor takes all of every core that it is given.
  const child = spawn('nice', ['-n', '19', QEMU, ...args], {
    stdio: interactive ? 'inherit' : ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let why: string | undefined;
  const end = (reason: string): void => {
    why ??= reason;
    child.kill('SIGKILL');
  };
  const after = (ms: number | undefined, reason: string): NodeJS.Timeout | undefined =>
    interactive || ms === undefined ? undefined : setTimeout(() => end(reason), ms);
  const run = after(runMs, `it was not done after ${minutes(runMs ?? 0)} minutes`);
  const silence = after(silenceMs, `nothing came out of it for ${minutes(silenceMs ?? 0)} minutes`);
  const onAbort = (): void => end('interrupted');
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
    });
  }
  const ended = new Promise<string | undefined>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signalled) => {
      clearTimeout(run);
      clearTimeout(silence);
      signal.removeEventListener('abort', onAbort);
      resolve(why ?? (code === 0 ? undefined : `qemu ended with ${code ?? signalled}: ${output.trim()}`));
    });
  });
  return { ended, heard: () => void silence?.refresh() };
}

interface LineServer {
  /** Resolves when the connection has ended and all its data is read. */
  readonly drained: Promise<void>;
  close(): void;
}

async function listen(path: string, onLine: (line: string) => void): Promise<LineServer> {
  const drained = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    // qemu killed in the middle: what it had sent counts, its exit shows the result.
    socket.on('error', () => undefined);
    createInterface({ input: socket })
      .on('line', onLine)
      .on('close', () => drained.resolve());
  });
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject);
    server.listen(path, resolve);
  });
  return {
    get drained() {
      // A qemu that never started has not connected.
      return sockets.size === 0 ? Promise.resolve() : drained.promise;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
