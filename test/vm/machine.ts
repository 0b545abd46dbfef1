// Running the virtual machine: which accelerator works, the qemu process, and the messages that come out of it.

import { spawn } from 'node:child_process';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isErrno, UserError } from '../../lib/errors.ts';
import { exec } from '../../lib/exec.ts';
import { type Accel, type MachineOptions, probeArguments, qemuArguments } from './plan.ts';
import { type Message, parseMessage } from './results.ts';

export const QEMU = 'qemu-system-x86_64';
/** A kernel greets within a second or two where KVM works; a KVM that hangs is none. */
const PROBE_MS = 20_000;

/** KVM where a guest really runs under it: a device file alone promises nothing in nested or confined machines. */
export async function chooseAccel(kernel: string, say: (line: string) => void): Promise<Accel> {
  const result = await exec(QEMU, probeArguments('kvm', kernel), { timeoutMs: PROBE_MS }).catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) throw new UserError(`${QEMU} is not installed: run "sh scripts/setup --with-vm"`);
    throw error;
  });
  if (/Linux version \d/.test(result.stdout)) return 'kvm';
  const words = result.stderr.trim().split('\n').at(-1);
  const why = result.timedOut ? `the guest output nothing for ${PROBE_MS / 1000} s` : words || 'the guest said nothing';
  say(`KVM does not work here (${why}): the processor is emulated, which is about 20 times slower`);
  return 'tcg';
}

export interface RunOutcome {
  readonly messages: readonly Message[];
  /** Why it did not come to its own end; undefined when it did. */
  readonly trouble: string | undefined;
}

/** Boots the machine and waits until it is off. It is killed when `limitMs` passes or `signal` aborts. `directory`: the run's. */
export async function runMachine(
  directory: string,
  options: Omit<MachineOptions, 'resultsSocket'>,
  limits: { readonly limitMs: number; readonly signal: AbortSignal; readonly onMessage: (message: Message) => void },
): Promise<RunOutcome> {
  const socket = join(directory, 'results.sock');
  const messages: Message[] = [];
  let trouble: string | undefined;
  const server = await listen(socket, (line) => {
    try {
      const message = parseMessage(line);
      messages.push(message);
      limits.onMessage(message);
    } catch (error) {
      trouble ??= error instanceof Error ? error.message : String(error);
    }
  });
  try {
    const ended = await runQemu(qemuArguments({ ...options, resultsSocket: socket }), {
      ...limits,
      interactive: options.consoleLog === undefined,
    });
    await server.drained;
    return { messages, trouble: ended ?? trouble };
  } finally {
    server.close();
  }
}

/** Resolves with why qemu did not end well, or undefined. */
function runQemu(
  args: readonly string[],
  limits: { readonly limitMs: number; readonly signal: AbortSignal; readonly interactive: boolean },
): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    // Lowest priority: an emulated processor takes all of every core that it is given.
    const child = spawn('nice', ['-n', '19', QEMU, ...args], {
      stdio: limits.interactive ? 'inherit' : ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let why: string | undefined;
    const end = (reason: string): void => {
      why ??= reason;
      child.kill('SIGKILL');
    };
    const timer = limits.interactive
      ? undefined
      : setTimeout(() => end(`it was not done after ${Math.round(limits.limitMs / 60_000)} minutes`), limits.limitMs);
    const onAbort = (): void => end('interrupted');
    limits.signal.addEventListener('abort', onAbort, { once: true });
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      output += chunk.toString('utf8');
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      limits.signal.removeEventListener('abort', onAbort);
      resolve(why ?? (code === 0 ? undefined : `qemu ended with ${code ?? signal}: ${output.trim()}`));
    });
  });
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
