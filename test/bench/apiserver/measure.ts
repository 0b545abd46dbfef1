// The API server beside the raw store: gets, creates, patches, server-side applies, lists of all pods, and a write until all
// watches have it. Three sides take turns at each of them: the raw store behind the same HTTPS, which is the floor; the API
// server; and the store itself without any connection, in this process.
//
// A goal is of rates: gets at 30 % of the floor's are 3.33 times its duration, creates at 20 % five times.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Amount, Row } from '../report.ts';
import { percentile } from '../stats.ts';
import type { Rounds } from '../turns.ts';
import { measureDeliveries, type Times } from './deliveries.ts';
import * as pods from './pods.ts';
import { RawStore } from './raw-store.ts';
import { BenchServer } from './server.ts';
import {
  close,
  countOf,
  indices,
  measureRounds,
  newName,
  type Opened,
  type Operation,
  opened,
  ServerSide,
  type Side,
  someNames,
  WHAT,
} from './sides.ts';
import type { Watching } from './watching.ts';

/** Of them, `EVERYTHING` watch all pods, and the others a node each. */
const WATCHERS = 2000;
const EVERYTHING = 5;
const NODES = WATCHERS - EVERYTHING;
const WRITES_PER_SECOND = 300;
const DELIVERY_SECONDS = 20;
/** From a write to its event, p99. ms. */
const DELIVERY_LIMIT_MS = 200;

const OPERATIONS: readonly Operation[] = ['get', 'create', 'patch', 'apply', 'list', 'fan-out'];
type SideName = 'raw' | 'server' | 'store';
type Name = `${SideName} ${Operation}`;

class StoreSide implements Side<'store'> {
  readonly name = 'store';
  readonly #store: RawStore;
  readonly #total: number;

  constructor(store: RawStore, total: number) {
    this.#store = store;
    this.#total = total;
  }

  async measure(operation: Operation, round: number): Promise<number | undefined> {
    const names = someNames(this.#total, countOf(operation), round);
    const made = indices(names.length).map((index) => newName(round, index));
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
      case 'pages':
      case 'fan-out':
        return undefined;
    }
  }
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
  server: Opened<BenchServer>,
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
    const sides: readonly Side<SideName>[] = [
      new ServerSide('raw', total, stored, raw, true),
      new ServerSide('server', total, sent, server),
      new StoreSide(store, total),
    ];
    const rounds = await measureRounds(
      'API server',
      sides,
      OPERATIONS,
      { least, most, until: performance.now() + ms },
      say,
    );
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

const residentAmount = (total: number, residentMiB: number): Amount => ({
  name: `API server’s RSS, ${total} pods`,
  unit: 'MiB',
  samples: [residentMiB],
  peak: true,
  limit: 350,
});

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
