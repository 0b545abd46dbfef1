// What the API server's measurements do to each side, over HTTPS with the same client: the raw store behind HTTPS, the API server,
// and a kube-apiserver answer the same requests.

import type { ClusterAccess } from '../../../client/kubeconfig.ts';
import type { Limits } from '../starts.ts';
import { anotherRound, Rounds, roundText, turnsOf } from '../turns.ts';
import * as pods from './pods.ts';
import { Connections } from './requests.ts';
import { each, linesIn, Watching } from './watching.ts';

/** One request at a time on each of these. */
const CONNECTIONS = 16;
const GETS = 2000;
const WRITES = 300;
const WATCHES = 100;
const FAN_OUT_WRITES = 50;
/** While watches are opened. */
const AT_ONCE = 32;
/** What kubectl reads at a time. */
const PAGE = 500;
/** A list's own metadata is in so many characters. */
const LIST_HEAD = 2000;

export type Operation = 'get' | 'create' | 'patch' | 'apply' | 'list' | 'pages' | 'fan-out';

export const WHAT: Readonly<Record<Operation, string>> = {
  get: `${GETS} gets of a pod`,
  create: `${WRITES} pods created`,
  patch: `${WRITES} merge patches`,
  apply: `${WRITES} server-side applies`,
  list: 'a list of all pods',
  pages: `a list of all pods, ${PAGE} at a time`,
  'fan-out': `${FAN_OUT_WRITES} patches until ${WATCHES} watches of all pods have them`,
};

/** How many objects an operation reads or writes by name. */
export const countOf = (operation: Operation): number => (operation === 'get' ? GETS : WRITES);

export interface Side<Name extends string = string> {
  readonly name: Name;
  /** How long it took, ms; undefined for what the side does not have. */
  measure(operation: Operation, round: number): Promise<number | undefined>;
}

interface Server {
  readonly access: ClusterAccess;
  stop(): Promise<void>;
}

export interface Opened<S extends Server = Server> {
  readonly server: S;
  readonly connections: Connections;
  readonly watching: Watching;
}

/** Of a server that runs already, which `close` stops. */
export async function opened<S extends Server>(server: S): Promise<Opened<S>> {
  const connections = await Connections.open(server.access, CONNECTIONS);
  return { server, connections, watching: new Watching(server.access, AT_ONCE) };
}

export async function close({ server, connections, watching }: Opened): Promise<void> {
  connections.close();
  watching.close();
  await server.stop();
}

export const newName = (round: number, index: number): string => `new-${round}-${index}`;
export const indices = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** Neighbours in time are not neighbours in the store. */
export function someNames(total: number, count: number, round: number): string[] {
  return indices(count).map((index) => pods.podName(((index + round * count) * 7919) % total));
}

export class ServerSide<Name extends string> implements Side<Name> {
  readonly name: Name;
  readonly #total: number;
  readonly #podOf: (name: string) => object;
  readonly #connections: Connections;
  readonly #watching: Watching;
  readonly #isStore: boolean;

  /** `isStore`: the raw store, which knows no apply and no revisions. */
  constructor(name: Name, total: number, podOf: (name: string) => object, server: Opened, isStore = false) {
    this.name = name;
    this.#total = total;
    this.#podOf = podOf;
    this.#connections = server.connections;
    this.#watching = server.watching;
    this.#isStore = isStore;
  }

  async measure(operation: Operation, round: number): Promise<number> {
    const names = someNames(this.#total, countOf(operation), round);
    const value = `round ${round}`;
    switch (operation) {
      case 'get':
        return this.#connections.run(names.map(pods.get));
      case 'create':
        return this.#create(round);
      case 'patch':
        return this.#connections.run(names.map((name) => pods.patch(name, value)));
      case 'apply':
        // The store's are patches.
        return this.#connections.run(names.map((name) => (this.#isStore ? pods.patch : pods.apply)(name, value)));
      case 'list':
        return this.#connections.run([pods.list()]);
      case 'pages':
        return this.#pages();
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

  /** One page after the other, as kubectl reads them. */
  async #pages(): Promise<number> {
    const began = performance.now();
    let next = '';
    do {
      const text = await this.#watching.call('GET', `${pods.PODS}?limit=${PAGE}${next}`);
      const token = /"continue":"([^"]+)"/.exec(text.slice(0, LIST_HEAD))?.[1];
      next = token === undefined ? '' : `&continue=${encodeURIComponent(token)}`;
    } while (next !== '');
    return performance.now() - began;
  }

  /** From the first write until every watch has the last. */
  async #fanOut(round: number): Promise<number> {
    const revision = this.#isStore ? '0' : await this.#watching.revision(pods.PODS);
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

/** All sides in turns at each operation, round after round; the first warms up. */
export async function measureRounds<Name extends string>(
  what: string,
  sides: readonly Side<Name>[],
  operations: readonly Operation[],
  limits: Limits,
  say: (line: string) => void,
): Promise<Rounds<`${Name} ${Operation}`>> {
  const rounds = new Rounds<`${Name} ${Operation}`>();
  for (let round = 0; anotherRound(round, limits, performance.now()); round++) {
    const found: Partial<Record<`${Name} ${Operation}`, number>> = {};
    for (const operation of operations) {
      for (const side of turnsOf(sides, round)) {
        const took = await side.measure(operation, round);
        if (took !== undefined) found[`${side.name} ${operation}`] = took;
      }
    }
    if (round > 0) rounds.add(found);
    say(`${what}, round ${round}: ${roundText(found)} ms`);
  }
  return rounds;
}
