// Bodies, patches and queries that are made to trip the API server over: odd types, names that every object inherits,
// damaged text, YAML with aliases, protobuf of random messages. One round is one request over TLS to the real server in a
// thread. Counted as crashed: an internal error, no answer, or an event loop that is occupied again and again.

import { median } from '../../support/median.ts';
import { badInput } from '../bodies/inputs.ts';
import { LARGEST } from '../bodies/largest.ts';
import { BodiesServer, type HttpInput } from '../bodies/server.ts';
import type { Campaign, CampaignContext, Figures } from '../campaign.ts';
import { seededRandom } from '../random.ts';

/** What may be far more than the 50 ms that a turn may take is measured again, against the floor. */
const LONG_MS = 250;
/** Floors (server-thread.ts) that a turn may take: far more than 50 ms where nothing else uses the processor. */
const MOST_FLOORS = 25;
const REPEATS = 5;

interface Occupied {
  /** The median of several. */
  readonly ms: number;
  readonly isFarTooLong: boolean;
}

/** What a request usually occupies the event loop with, compared with the floor in turns. */
async function occupation(server: BodiesServer, input: HttpInput): Promise<Occupied> {
  const found: number[] = [];
  const floors: number[] = [];
  for (let count = 0; count < REPEATS; count++) {
    const { cpuMs, blockedMs } = await server.measure(input);
    // Blocked without using the processor is the machine's doing.
    found.push(Math.min(cpuMs, blockedMs));
    floors.push(await server.floor());
  }
  const ms = median(found);
  return { ms, isFarTooLong: ms > MOST_FLOORS * median(floors) };
}

function described(input: HttpInput): string {
  const body = Buffer.from(input.body ?? '').toString('base64');
  return `${input.method} ${input.path} (${input.contentType ?? 'no body'}) ${body.slice(0, 2000)}`;
}

async function run({ rounds, seed, directory, log }: CampaignContext): Promise<Figures> {
  const server = await BodiesServer.start(directory);
  let [tried, refused, crashed, lost] = [0, 0, 0, 0];
  try {
    const keeper = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'keeper' }, data: { kept: 'yes' } };
    const patched = { ...keeper, metadata: { name: 'patched' } };
    const path = '/api/v1/namespaces/default/configmaps';
    const contentType = 'application/json';
    await server.send({ method: 'POST', path, contentType, body: JSON.stringify(keeper) });
    // Pods wait for it.
    const account = JSON.stringify({ kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name: 'default' } });
    await server.send({
      method: 'POST',
      path: path.replace('configmaps', 'serviceaccounts'),
      contentType,
      body: account,
    });
    await server.send({ method: 'POST', path, contentType, body: JSON.stringify(patched) });
    for (const [what, input] of LARGEST) {
      const { ms, isFarTooLong } = await occupation(server, input);
      tried++;
      log(`${what}: occupies the event loop for ${ms.toFixed(0)} ms${isFarTooLong ? ', far too long' : ''}`);
      if (isFarTooLong) crashed++;
    }
    const random = seededRandom(seed);
    for (let round = 0; round < rounds; round++) {
      if (round % 50 === 0) await server.send({ method: 'POST', path, contentType, body: JSON.stringify(patched) });
      const input = badInput(random);
      const outcome = await server.measure(input);
      tried++;
      if (outcome.code >= 400 && outcome.code < 500) refused++;
      if (outcome.code === 0 || outcome.code === 500) {
        crashed++;
        log(`seed ${seed}, round ${round}: ${outcome.code} ${outcome.body.slice(0, 300)} for ${described(input)}`);
        for (const line of outcome.logged) log(line.slice(0, 1000));
      }
      if (Math.min(outcome.cpuMs, outcome.blockedMs) > LONG_MS) {
        const { ms, isFarTooLong } = await occupation(server, input);
        if (!isFarTooLong) continue;
        crashed++;
        log(`seed ${seed}, round ${round}: occupied for ${ms.toFixed(0)} ms by ${described(input)}`);
      }
    }
    const kept = await server.send({ method: 'GET', path: `${path}/keeper` });
    // Whatever was deleted was deleted by name or by a collection's deletion, which selectors of this campaign may reach.
    if (kept.code !== 200 && kept.code !== 404) lost++;
    if (kept.body.includes('polluted')) lost++;
  } finally {
    await server.close();
  }
  return { tried, refused, crashed, lost };
}

export const campaign: Campaign = {
  name: 'bodies',
  what: 'bodies, patches and queries that a decoder could trip over, to the API server; one round is one request',
  quickRounds: 600,
  rounds: 100_000,
  run,
};
