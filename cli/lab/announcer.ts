// Announces the addresses of Services of type LoadBalancer on the lab's bridge: the node that load-balancers.ts chooses has the address at its
// interface, and its kernel answers for it (ARP). What comes there is the node's proxy's to forward. The addresses go with the bridge, or the
// node's network namespace.

import type { ApiClient } from '../../client/api.ts';
import { resourcePath } from '../../client/paths.ts';
import { Reflector } from '../../client/reflector.ts';
import type { Identified } from '../../client/store.ts';
import type { EndpointSlice, Node, Service } from '../../client/types.ts';
import { WorkQueue } from '../../client/workqueue.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { exec, execOk } from '../../lib/exec.ts';
import { type Announcement, addressCommands, announcements } from './load-balancers.ts';
import { inNetns } from './node/network.ts';

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 10_000;

/** Where a node has its addresses. */
export interface AnnouncingNode {
  readonly name: string;
  /** undefined: the machine's own. */
  readonly netns: string | undefined;
  readonly device: string;
}

export interface AnnouncerOptions {
  readonly range: string;
  /** The lab's bridge, on the machine. */
  readonly bridge: string;
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly say: (line: string) => void;
  /** Those that are up and connected now. */
  readonly nodes: () => readonly AnnouncingNode[];
  /** Called before an address is put somewhere: the interface has to be there. Idempotent. */
  readonly prepare: () => Promise<void>;
}

export class Announcer {
  readonly #options: AnnouncerOptions;
  readonly #queue: WorkQueue<'sync'>;
  readonly #services: Reflector<Service>;
  readonly #slices: Reflector<EndpointSlice>;
  readonly #nodes: Reflector<Node>;
  /** What was put in place last, as text. */
  #inPlace = '';
  #known: readonly Announcement[] = [];

  constructor(options: AnnouncerOptions) {
    const { client, clock, say } = options;
    this.#options = options;
    this.#queue = new WorkQueue({ clock, initialDelayMs: FIRST_RETRY_MS, maxDelayMs: LAST_RETRY_MS });
    const follow = <T extends Identified>(what: string, path: string): Reflector<T> => {
      const onFailure = (error: unknown): void => say(`load balancers: ${what}: ${errorMessage(error)}`);
      const reflector = new Reflector<T>({ client, path, clock, onFailure });
      reflector.store.onChange(() => this.wake());
      return reflector;
    };
    this.#services = follow('services', resourcePath('v1', 'services'));
    this.#slices = follow('endpointslices', resourcePath('discovery.k8s.io/v1', 'endpointslices'));
    this.#nodes = follow('nodes', resourcePath('v1', 'nodes'));
  }

  /** To be called when a node has come or gone. */
  wake(): void {
    this.#queue.add('sync');
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.#queue.shutDown();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const all = [this.#services, this.#slices, this.#nodes];
    const watching = Promise.all(all.map((reflector) => reflector.run(signal)));
    await Promise.race([Promise.all(all.map(({ store }) => store.whenSynced())), watching]);
    const working = this.#queue.run(
      1,
      () => this.#sync(),
      (_, error) => this.#options.say(`load balancers are not announced: ${errorMessage(error)}`),
    );
    await Promise.all([watching, working]);
  }

  async #sync(): Promise<void> {
    const { range, say } = this.#options;
    const nodes = this.#options.nodes();
    const wanted = announcements({
      range,
      services: this.#services.store.list(),
      slices: this.#slices.store.list(),
      nodes: this.#nodes.store.list(),
      up: new Set(nodes.map(({ name }) => name)),
    });
    const text = JSON.stringify([nodes, wanted]);
    if (text === this.#inPlace) return;
    if (wanted.length > 0) await this.#options.prepare();
    this.#inPlace = '';
    const commands: [AnnouncingNode, string][] = [];
    for (const node of nodes) {
      const own = wanted.filter((each) => each.node === node.name).map(({ ip }) => ip);
      const change = addressCommands(range, node.device, await addressesOf(node), own);
      if (change !== '') commands.push([node, change]);
    }
    // No two nodes have an address at the same time.
    for (const verb of ['del', 'add']) {
      for (const [node, change] of commands) {
        const lines = change.split('\n').filter((line) => line.startsWith(`address ${verb} `));
        if (lines.length > 0) await ip(node, ['-batch', '-'], `${lines.join('\n')}\n`);
      }
    }
    const moved = wanted.filter(({ ip: address, node }) =>
      this.#known.every((before) => before.ip !== address || before.node !== node),
    );
    for (const { ip: address, node, service } of moved) {
      // The machine may still know whose the address was before.
      await execOk('ip', ['neigh', 'flush', 'to', address, 'dev', this.#options.bridge]);
      say(`${address} of the Service ${service} is announced on ${this.#options.bridge} by ${node}`);
    }
    this.#known = wanted;
    this.#inPlace = text;
  }
}

function ip({ netns }: AnnouncingNode, args: readonly string[], stdin = ''): Promise<string> {
  const program = { command: 'ip', args };
  const { command, args: all } = netns === undefined ? program : inNetns(netns, program);
  return execOk(command, all, { stdin });
}

/** None where there is no such device yet. */
async function addressesOf(node: AnnouncingNode): Promise<readonly string[]> {
  if (node.netns === undefined && (await exec('ip', ['link', 'show', node.device])).code !== 0) return [];
  const shown: unknown = JSON.parse(await ip(node, ['-json', '-4', 'address', 'show', 'dev', node.device]));
  if (!Array.isArray(shown)) throw new Error(`ip shows no addresses of ${node.device}`);
  return shown.flatMap((each: { readonly addr_info?: readonly { readonly local?: string }[] }) =>
    (each.addr_info ?? []).flatMap(({ local }) => local ?? []),
  );
}
