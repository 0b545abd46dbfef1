// Hostile clients against the API server and the kubelet API, in bounded number and on this machine only: whatever they
// do, they are refused and cut off, they get nothing, and a client with a credential keeps getting its answers.

import { join } from 'node:path';
import { systemClock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { openConnections } from '../../support/tls-clients.ts';
import type { Campaign, CampaignContext, Figures } from '../campaign.ts';
import { seededRandom } from '../random.ts';
import { type Attempt, attempt } from '../sockets/clients.ts';
import { type Servers, startServers, type Target } from '../sockets/servers.ts';

/** Clients at a time. */
const BATCH = 60;
/** For giving up only: the servers' time-outs here are a few seconds where the machine is no slower than usual. */
const PATIENCE_MS = 1_200_000;
/** A client with a credential is to be through with its handshake and its request by then, on a machine that is busy with sixty others. */
const TIMEOUTS = {
  handshakeMs: 5_000,
  headersMs: 5_000,
  requestMs: 6_000,
  responseMs: 6_000,
  idleMs: 2_000,
  unauthenticatedMs: 8_000,
};
const CHECK_MS = 100;
/** What a handshake may take, in units of what a batch of clients with a credential takes. */
const BATCHES = 5;
const LONG_MS = 600_000;

/** How much longer the time-outs have to be on this machine: a batch of clients with a credential is answered, and measured. */
async function slowness(directory: string): Promise<number> {
  const servers = await startServers(directory, { timeouts: { handshakeMs: LONG_MS, unauthenticatedMs: LONG_MS } });
  try {
    const begun = performance.now();
    await Promise.all(Array.from({ length: BATCH / 2 }, () => servers.targets.map((target) => target.ask())).flat());
    return Math.max(1, (BATCHES * (performance.now() - begun)) / TIMEOUTS.handshakeMs);
  } finally {
    await servers.close();
  }
}

type Outcome = 'refused' | 'crashed' | 'lost';

/** What a client that has no credential came to. Pure. */
export function outcomeOf(received: string, ended: boolean): Outcome {
  const codes = [...received.matchAll(/HTTP\/1\.1 (\d)\d\d /g)].map((match) => match[1]);
  if (codes.includes('2') || codes.includes('1')) return 'lost';
  return codes.includes('5') || !ended ? 'crashed' : 'refused';
}

async function within(promise: Promise<void>): Promise<boolean> {
  const patience = new AbortController();
  const late = systemClock.sleep(PATIENCE_MS, patience.signal).then(
    () => false,
    () => false,
  );
  const done = await Promise.race([promise.then(() => true), late]);
  patience.abort();
  return done;
}

async function outcome({ client }: Attempt): Promise<Outcome> {
  if (client === undefined) return 'refused';
  const wasPaused = client.socket.isPaused();
  // One that does not read does not see its end: the server's side is checked in the end.
  const ended = wasPaused || (await within(client.ended));
  return outcomeOf(client.received, ended);
}

async function answers(target: Target, { log }: CampaignContext, what: string): Promise<number> {
  try {
    await target.ask();
    return 0;
  } catch (error) {
    log(`${target.name}: a client with a credential was not answered ${what}: ${errorMessage(error)}`);
    return 1;
  }
}

async function noneOpen(target: Target, { log }: CampaignContext): Promise<number> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const retained = await openConnections(target.port);
    if (retained === 0) return 0;
    if (performance.now() > deadline) {
      log(`${target.name}: ${retained} connections of hostile clients are still open`);
      return 1;
    }
    await systemClock.sleep(50);
  }
}

async function batch(servers: Servers, size: number, context: CampaignContext, seed: number): Promise<Figures> {
  const random = seededRandom(seed);
  const figures = { tried: size, refused: 0, crashed: 0, lost: 0 };
  const chosen = Array.from({ length: size }, () => random.pick(servers.targets));
  const attempts = Promise.all(chosen.map((target) => attempt(target.port, random)));
  for (const target of servers.targets) figures.crashed += await answers(target, context, 'during the attack');
  const made = await attempts;
  for (const target of servers.targets) figures.crashed += await answers(target, context, 'after the attack');
  const outcomes = await Promise.all(made.map(outcome));
  for (const [index, found] of outcomes.entries()) {
    figures[found]++;
    if (found === 'refused') continue;
    const { kind, client } = made[index] ?? { kind: '', client: undefined };
    context.log(
      `seed ${seed}: ${kind} against the ${chosen[index]?.name}: ${found}: ${client?.received.slice(0, 200)}`,
    );
  }
  // Each client still has its own side open: what is held now is the servers'.
  for (const target of servers.targets) figures.crashed += await noneOpen(target, context);
  for (const { client } of made) client?.socket.destroy();
  return figures;
}

async function run(context: CampaignContext): Promise<Figures> {
  const times = await slowness(join(context.directory, 'measured'));
  const longer = Object.fromEntries(Object.entries(TIMEOUTS).map(([name, ms]) => [name, Math.ceil(ms * times)]));
  const timeouts = { ...longer, checkMs: CHECK_MS };
  const servers = await startServers(join(context.directory, 'attacked'), { timeouts });
  const sum = { tried: 0, refused: 0, crashed: 0, lost: 0 };
  try {
    for (let done = 0; done < context.rounds; done += BATCH) {
      const figures = await batch(servers, Math.min(BATCH, context.rounds - done), context, context.seed + done);
      sum.tried += figures.tried;
      sum.refused += figures.refused;
      sum.crashed += figures.crashed;
      sum.lost += figures.lost;
    }
    for (const line of servers.log.filter((each) => each.includes('error') || each.includes('failed'))) {
      sum.crashed++;
      context.log(line);
    }
  } finally {
    await servers.close();
  }
  return sum;
}

export const campaign: Campaign = {
  name: 'sockets',
  what:
    'clients without a credential against the API server and the kubelet API: half handshakes and requests, refused ' +
    'upgrades, bodies, pipelines, deaf and silent ones; a round is one client, sixty at a time',
  quickRounds: 60,
  rounds: 3000,
  run,
};
