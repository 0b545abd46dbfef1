// The API server beside the raw store: gets, creates, patches, server-side applies, lists of all pods, and a write until all
// watches have it. Three sides take turns at each of them: the raw store behind the same HTTPS, which is the floor; the API
// server; and the store itself without any connection, in this process.
//
// A goal is of rates: gets at 30 % of the floor's are 3.33 times its duration, creates at 20 % five times.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Amount, Row } from '../report.ts';
import type { Limits } from '../starts.ts';
import { percentile } from '../stats.ts';
import { anotherRound, Rounds, roundText, turnsOf } from '../turns.ts';
import { measureDeliveries, type Times } from './deliveries.ts';
import * as pods from './pods.ts';
import { RawStore } from './raw-store.ts';
import { Connections } from './requests.ts';
import { BenchServer } from './server.ts';
import { each, linesIn, Watching } from './watching.ts';

/** One request at a time on each of these. */
const CONNECTIONS = 16;
/** Of them, `EVERYTHING` watch all pods, and the others a node each. */
const WATCHERS = 2000;
const EVERYTHING = 5;
const NODES = WATCHERS - EVERYTHING;
const WRITES_PER_SECOND = 300;
const DELIVERY_SECONDS = 20;
/** From a write to its event, p99. ms. */
const DELIVERY_LIMIT_MS = 200;
const GETS = 2000;
const WRITES = 300;
const WATCHES = 100;
const FAN_OUT_WRITES = 50;
/** While pods are made. */
const AT_ONCE = 32;

const OPERATIONS = ['get', 'create', 'patch', 'apply', 'list', 'fan-out'] as const;
type Operation = (typeof OPERATIONS)[number];
type SideName = 'raw' | 'server' | 'store';
type Name = `${SideName} ${Operation}`;

interface Side {
  readonly name: SideName;
  /** How long it took, ms; undefined for what the side does not have. */
  measure(operation: Operation, round: number): Promise<number | undefined>;
}

const newName = (round: number, index: number): string => `new-${round}-${index}`;
const indices = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** Neighbours in time are not neighbours in the store. */
function someNames(total: number, count: number, round: number): string[] {
  return indices(count).map((index) => pods.podName(((index + round * count) * 7919) % total));
}

class ServerSide implements Side {
  readonly name: SideName;
  readonly #total: number;
  readonly #podOf: (name: string) => object;
  readonly #connections: Connections;
  readonly #watching: Watching;
  readonly #hasApply: boolean;

  constructor(name: SideName, total: number, podOf: (name: string) => object, server: Opened) {
    this.name = name;
    this.#total = total;
    this.#podOf = podOf;
    this.#connections = server.connections;
    this.#watching = server.watching;
    this.#hasApply = name === 'server';
  }

  async measure(operation: Operation, round: number): Promise<number> {
    const names = someNames(this.#total, operation === 'get' ? GETS : WRITES, round);
    const value = `round ${round}`;
    switch (operation) {
      case 'get':
        return this.#connections.run(names.map(pods.get));
      case 'create':
        return this.#create(round);
      case 'patch':
        return this.#connections.run(names.map((name) => pods.patch(name, value)));
      case 'apply':
        // The store knows no apply: its floor is a patch.
        return this.#connections.run(names.map((name) => (this.#hasApply ? pods.apply : pods.patch)(name, value)));
      case 'list':
        return this.#connections.run([pods.list()]);
      case 'fan-out':
        return this.#fanOut(round);
    }
  }

  async #create(round: number): Promise<number> {
    const names = indices(WRITES).map((index) => newName(round, index));
    const took = await this.#connections.run(names.map((name) => pods.create(this.#podOf(name))));
    await this.#connections.run(names.map(pods.remove));
    return took;
  }

  /** From the first write until every watch has the last. */
  async #fanOut(round: number): Promise<number> {
    const revision = this.name === 'raw' ? '0' : await this.#watching.revision(pods.PODS);
    const all = Promise.withResolvers<void>();
    let missing = WATCHES * FAN_OUT_WRITES;
    const onText = (text: string): void => {
      missing -= linesIn(text);
      if (missing === 0) all.resolve();
    };
    const ends: (() => void)[] = [];
    await each(WATCHES, AT_ONCE, async () => {
      ends.push(await this.#watching.open(pods.PODS, `resourceVersion=${revision}`, onText));
    });
    const names = someNames(this.#total, FAN_OUT_WRITES, round);
    const began = performance.now();
    await this.#connections.run(names.map((name) => pods.patch(name, `fan-out ${round}`)));
    await all.promise;
    const took = performance.now() - began;
    for (const end of ends) end();
    return took;
  }
}

class StoreSide implements Side {
  readonly name = 'store';
  readonly #store: RawStore;
  readonly #total: number;

  constructor(store: RawStore, total: number) {
    this.#store = store;
    this.#total = total;
  }

  async measure(operation: Operation, round: number): Promise<number | undefined> {
    const names = someNames(this.#total, operation === 'get' ? GETS : WRITES, round);
    const made = indices(WRITES).map((index) => newName(round, index));
    switch (operation) {
      case 'get':
        return this.#store.get(names);
      case 'create': {
        const took = this.#store.create(made);
        this.#store.remove(made);
        return took;
      }
      case 'patch':
      case 'apply':
        return this.#store.patch(names, `round ${round}`);
      case 'list':
        return this.#store.list();
      case 'fan-out':
        return undefined;
    }
  }
}

interface Opened {
  readonly server: BenchServer;
  readonly connections: Connections;
  readonly watching: Watching;
}

async function opened(server: BenchServer): Promise<Opened> {
  const connections = await Connections.open(server.access, CONNECTIONS);
  return { server, connections, watching: new Watching(server.access, AT_ONCE) };
}

async function close({ server, connections, watching }: Opened): Promise<void> {
  connections.close();
  watching.close();
  await server.stop();
}

export interface ApiServerOptions {
  readonly root: string;
  readonly pods: number;
  /** Of rounds, and how long there is for them, ms. */
  readonly least: number;
  readonly most: number;
  readonly ms: number;
  readonly say: (line: string) => void;
}

export interface ApiServerFigures {
  readonly rows: readonly Row[];
  readonly amounts: readonly Amount[];
}

export async function measureApiServer(options: ApiServerOptions): Promise<ApiServerFigures> {
  const directory = async (name: string): Promise<string> => {
    const path = join(options.root, name);
    await mkdir(path, { recursive: true });
    return path;
  };
  const server = await opened(await BenchServer.apiServer(await directory('server')));
  try {
    const raw = await opened(await BenchServer.rawStore(await directory('raw')));
    try {
      return await measureSides(server, raw, await directory('store'), options);
    } finally {
      await close(raw);
    }
  } finally {
    await close(server);
  }
}

async function measureSides(
  server: Opened,
  raw: Opened,
  directory: string,
  { pods: total, least, most, ms, say }: ApiServerOptions,
): Promise<ApiServerFigures> {
  const names = indices(total).map(pods.podName);
  await server.connections.run([pods.DEFAULT_ACCOUNT]);
  const sent = (name: string): object => pods.podOf(name, Number(/\d+$/.exec(name)?.[0]), NODES);
  await server.connections.run(names.map((name) => pods.create(sent(name))));
  const residentMiB = await server.server.residentMiB();
  say(`${total} pods; the API server has ${residentMiB.toFixed(0)} MiB`);
  // The stores get the same bytes as the API server has stored.
  const template = await server.watching.call('GET', `${pods.PODS}/${pods.podName(0)}`);
  const stored = (name: string): object => {
    const pod = JSON.parse(template);
    return { ...pod, metadata: { ...pod.metadata, name } };
  };
  await raw.connections.run(names.map((name) => pods.create(stored(name))));
  const store = new RawStore(directory, template);
  store.create(names);
  try {
    const sides: readonly Side[] = [
      new ServerSide('raw', total, stored, raw),
      new ServerSide('server', total, sent, server),
      new StoreSide(store, total),
    ];
    const rounds = await measureRounds(sides, { least, most, until: performance.now() + ms }, say);
    const delivered = await deliveryAmounts(server.watching, total);
    return { rows: rowsOf(rounds), amounts: [residentAmount(total, residentMiB), ...delivered] };
  } finally {
    store.close();
  }
}

/** The p99 of each period of five seconds. */
async function deliveryAmounts(watching: Watching, total: number): Promise<readonly Amount[]> {
  const found = await measureDeliveries(watching, {
    pods: total,
    nodes: NODES,
    watchers: WATCHERS,
    everything: EVERYTHING,
    writesPerSecond: WRITES_PER_SECOND,
    seconds: DELIVERY_SECONDS,
  });
  if (found.missing > 0) throw new Error(`${found.missing} events did not come`);
  const amount = (name: string, times: Times, limit?: number): Amount => ({
    name: `${WATCHERS} watches, ${total} pods, ${WRITES_PER_SECOND} writes a second: ${name}, p99`,
    unit: 'ms',
    samples: times.map((each) => percentile(each, 0.99)),
    ...(limit === undefined ? {} : { limit }),
  });
  return [
    amount('to the watch of a node', found.one, DELIVERY_LIMIT_MS),
    amount('to a watch of all pods', found.all, DELIVERY_LIMIT_MS),
    amount('to the response', found.writes),
  ];
}

async function measureRounds(
  sides: readonly Side[],
  limits: Limits,
  say: (line: string) => void,
): Promise<Rounds<Name>> {
  const rounds = new Rounds<Name>();
  for (let round = 0; anotherRound(round, limits, performance.now()); round++) {
    const found: Partial<Record<Name, number>> = {};
    for (const operation of OPERATIONS) {
      for (const side of turnsOf(sides, round)) {
        const took = await side.measure(operation, round);
        if (took !== undefined) found[`${side.name} ${operation}`] = took;
      }
    }
    if (round > 0) rounds.add(found);
    say(`API server, round ${round}: ${roundText(found)} ms`);
  }
  return rounds;
}

const residentAmount = (total: number, residentMiB: number): Amount => ({
  name: `API server’s RSS, ${total} pods`,
  unit: 'MiB',
  samples: [residentMiB],
  peak: true,
  limit: 350,
});

const WHAT: Readonly<Record<Operation, string>> = {
  get: `${GETS} gets of a pod`,
  create: `${WRITES} pods created`,
  patch: `${WRITES} merge patches`,
  apply: `${WRITES} server-side applies`,
  list: 'a list of all pods',
  'fan-out': `${FAN_OUT_WRITES} patches until ${WATCHES} watches of all pods have them`,
};
/** At this part of the floor's rate, at least. */
const RATES: Partial<Record<Operation, number>> = { get: 0.3, create: 0.2 };

function rowsOf(rounds: Rounds<Name>): readonly Row[] {
  return OPERATIONS.flatMap((operation): Row[] => {
    const what = WHAT[operation];
    const rate = RATES[operation];
    const store = rounds.pairs(`server ${operation}`, `store ${operation}`);
    return [
      { name: `raw store behind HTTPS: ${what}`, samples: rounds.samples(`raw ${operation}`) },
      {
        name: `API server: ${what}`,
        ...rounds.pairs(`server ${operation}`, `raw ${operation}`),
        ...(rate === undefined ? {} : { ratioLimit: 1 / rate }),
      },
      ...(store.samples.length === 0
        ? []
        : [{ name: `API server: ${what}, beside the store without a connection`, ...store }]),
    ];
  });
}
