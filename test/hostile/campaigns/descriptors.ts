// A process with few descriptors that is beset, one that has none left at all, and one on a machine without inotify: it
// goes on, says what is wrong, and recovers by itself.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { poll } from '../../../lib/retry.ts';
import { type Client, dial, dialPlain } from '../../support/tls-clients.ts';
import type { Campaign, CampaignContext, Figures } from '../campaign.ts';
import { type Random, seededRandom } from '../random.ts';

const CHILD = fileURLToPath(new URL('../sockets/child.ts', import.meta.url));
/** For giving up only. */
const ANSWER_MS = 240_000;
/** How long the processor is watched at a time while there is no descriptor. ms. */
const WATCHED_MS = 500;
/** The part of that time that a process at rest may use. */
const AT_REST = 0.2;

/** A process that runs `child.ts` under a program that limits it. */
class Limited {
  readonly #process: ChildProcess;
  readonly #exited: Promise<string>;
  #stderr = '';

  constructor(limiter: readonly string[], directory: string) {
    const [command = '', ...args] = [...limiter, process.execPath, CHILD, directory];
    this.#process = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    this.#process.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr = `${this.#stderr}${chunk.toString()}`.slice(-2000);
    });
    this.#exited = new Promise((resolve) => {
      this.#process.once('exit', (code, signal) => resolve(`the process ended (${code ?? signal}): ${this.#stderr}`));
      this.#process.once('error', (error) => resolve(error.message));
    });
  }

  /** Rejects when the process fails at it, ends, or does not answer. */
  async tell(command: string): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const answer = (message: unknown): void => {
      if (typeof message === 'object' && message !== null && 'error' in message) {
        reject(new Error(`${command}: ${String(message.error)}`));
      } else {
        resolve(typeof message === 'object' && message !== null && 'result' in message ? message.result : undefined);
      }
    };
    const patience = systemClock.after(ANSWER_MS, () => reject(new Error(`${command}: no answer`)));
    void this.#exited.then((why) => reject(new Error(`${command}: ${why}`)));
    this.#process.once('message', answer);
    this.#process.send(command, () => undefined);
    try {
      return await promise;
    } finally {
      patience.cancel();
      this.#process.off('message', answer);
    }
  }

  async end(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exited;
  }
}

/** Whether the process comes to rest: one that spins never does. */
function comesToRest(child: Limited): Promise<boolean> {
  const usage = async (): Promise<readonly [cpuMs: number, atMs: number]> => {
    const [cpuMs, atMs] = (await child.tell('usage')) as [number, number];
    return [cpuMs, atMs];
  };
  const isAtRest = async (): Promise<boolean> => {
    const [cpuBefore, before] = await usage();
    await systemClock.sleep(WATCHED_MS);
    const [cpuAfter, after] = await usage();
    return cpuAfter - cpuBefore < AT_REST * (after - before);
  };
  return poll(isAtRest, { clock: systemClock, everyMs: 0, limitMs: ANSWER_MS });
}

function portsOf(started: unknown): readonly number[] {
  return Array.isArray(started) ? started.filter((port) => typeof port === 'number') : [];
}

/** Connections of every kind, as many as there can be; those that were refused at once are not among them. */
async function beset(ports: readonly number[], each: number, random: Random): Promise<readonly Client<Socket>[]> {
  const attempts: Promise<Client<Socket>>[] = [];
  for (const port of ports) {
    for (let i = 0; i < each; i++) attempts.push(random.below(2) === 0 ? dialPlain(port) : dial(port));
  }
  return (await Promise.allSettled(attempts)).flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

/** How many of them the server has left open; they are closed. */
function stillOpen(clients: readonly Client<Socket>[]): number {
  const open = clients.filter(({ socket }) => !socket.readableEnded && !socket.destroyed).length;
  for (const { socket } of clients) socket.destroy();
  return open;
}

type Scenario = (directory: string, random: Random) => Promise<{ readonly tried: number; readonly refused: number }>;

/** More connections than descriptors: callers with a credential are answered, and the process does its work. */
const besetWithFew: Scenario = async (directory, random) => {
  const limit = 256 + random.below(100);
  const child = new Limited(['prlimit', `--nofile=${limit}:${limit}`], directory);
  try {
    const ports = portsOf(await child.tell('start'));
    const clients = await beset(ports, 200, random);
    for (let i = 0; i < 3; i++) {
      await child.tell('ask');
      await child.tell('work');
    }
    const problem = await child.tell('problem');
    if (problem !== '') throw new Error(`hostile connections alone make the node short: ${String(problem)}`);
    return { tried: 400, refused: 400 - stillOpen(clients) };
  } finally {
    await child.end();
  }
};

/** Not one descriptor left while clients connect: the process lives, does not spin, says so, and recovers. */
const noneLeft: Scenario = async (directory, random) => {
  const child = new Limited(['prlimit', '--nofile=300:300'], directory);
  try {
    const ports = portsOf(await child.tell('start'));
    await child.tell('fill');
    const clients = await beset(
      ports,
      20,
      // A handshake would wait for an answer that cannot come.
      { ...random, below: () => 0 },
    );
    if (!(await comesToRest(child))) throw new Error('the process does not come to rest without a descriptor');
    const problem = String(await child.tell('problem'));
    if (!problem.startsWith('kubelet has insufficient file descriptors available')) {
      throw new Error(`without a descriptor the node says "${problem}"`);
    }
    await child.tell('free');
    await child.tell('ask');
    await child.tell('work');
    if ((await child.tell('problem')) !== '') throw new Error('the node is still short with all descriptors free');
    return { tried: 40, refused: 40 - stillOpen(clients) };
  } finally {
    await child.end();
  }
};

/** In a user namespace of its own, which has limits of its own: the machine's are left as they are. */
const noInotify: Scenario = async (directory, random) => {
  const what = random.pick(['max_inotify_watches', 'max_inotify_instances']);
  const limit = `echo 0 > /proc/sys/user/${what} && exec "$@"`;
  const child = new Limited(['unshare', '--user', '--map-root-user', 'sh', '-c', limit, 'sh'], directory);
  try {
    const seen = await child.tell('watchers');
    const names = Array.isArray(seen) ? seen.join(' ') : String(seen);
    if (names !== 'cni logs manifests plugins') throw new Error(`${what} is 0: changes are seen only of: ${names}`);
    return { tried: 4, refused: 0 };
  } finally {
    await child.end();
  }
};

const SCENARIOS: readonly (readonly [name: string, scenario: Scenario])[] = [
  ['beset with few descriptors', besetWithFew],
  ['no descriptor left', noneLeft],
  ['no inotify', noInotify],
];

async function run({ rounds, seed, directory, log }: CampaignContext): Promise<Figures> {
  const sum = { tried: 0, refused: 0, crashed: 0, lost: 0 };
  for (let round = 0; round < rounds; round++) {
    const [name, scenario] = SCENARIOS[round % SCENARIOS.length] ?? ['no inotify', noInotify];
    const own = join(directory, String(round));
    await mkdir(own);
    try {
      const { tried, refused } = await scenario(own, seededRandom(seed + round));
      sum.tried += tried;
      sum.refused += refused;
    } catch (error) {
      sum.tried++;
      sum.crashed++;
      log(`round ${round}, seed ${seed + round}: ${name}: ${errorMessage(error)}`);
    }
  }
  return sum;
}

export const campaign: Campaign = {
  name: 'descriptors',
  what:
    'a process with 256 descriptors beset by 400 connections, one with none left, the agent’s watches without inotify; ' +
    'a round is one of the three',
  quickRounds: 3,
  rounds: 60,
  run,
};
