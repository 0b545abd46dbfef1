// The node IPAM controller: gives each node its podCIDR, a block of the cluster's range (or two, of IPv4 and IPv6). What nodes have
// already stays theirs. cidr-set.ts counts.

import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Change } from '../../../client/store.ts';
import type { Node } from '../../../client/types.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { parseRange, type Range, rangeText } from '../../../lib/ip-range.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { CidrSet } from './cidr-set.ts';

export interface NodeIpamSettings {
  /** One, or one of each family. */
  readonly cluster: readonly { readonly range: Range; readonly prefix: number }[];
  /** Addresses of Services, which no node gets. */
  readonly services: readonly Range[];
}

type Needed = Pick<Informers, 'nodes'>;

const podCidrs = ({ spec }: Node): readonly string[] =>
  spec?.podCIDRs ?? (spec?.podCIDR === undefined || spec.podCIDR === '' ? [] : [spec.podCIDR]);

/** Keys are those of nodes. */
export class NodeIpamController implements Controller {
  readonly name = 'node-ipam';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #nodes: Needed['nodes'];
  readonly #sets: readonly CidrSet[];
  /** What each node has, or is about to get. */
  readonly #blocks = new Map<string, readonly string[]>();

  constructor(context: ControllerContext, { nodes }: Needed, { cluster, services }: NodeIpamSettings) {
    this.#context = context;
    this.#nodes = nodes;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#sets = cluster.map(({ range, prefix }) => new CidrSet(range, prefix));
    for (const set of this.#sets) for (const range of services) set.occupy(range);
    nodes.onChange((changes) => {
      for (const change of changes) this.#nodeChanged(change);
    });
  }

  #nodeChanged({ type, object }: Change<Node>): void {
    const { name } = object.metadata;
    const cidrs = podCidrs(object);
    if (type === 'removed') this.#keep(name, []);
    else if (cidrs.length > 0) this.#keep(name, cidrs);
    else this.queue.add(name);
  }

  /** Takes the node's blocks, and gives back what it had before. */
  #keep(name: string, cidrs: readonly string[]): void {
    const before = this.#blocks.get(name) ?? [];
    if (before.join() === cidrs.join()) return;
    this.#count(name, before, 'release');
    this.#count(name, cidrs, 'occupy');
    if (cidrs.length === 0) this.#blocks.delete(name);
    else this.#blocks.set(name, cidrs);
  }

  #count(name: string, cidrs: readonly string[], change: 'occupy' | 'release'): void {
    for (const [index, cidr] of cidrs.entries()) {
      const range = parseRange(cidr);
      const set = this.#sets[index];
      const isKnown = range !== undefined && set?.[change](range) === true;
      if (isKnown || change === 'release') continue;
      this.#context.log(
        set === undefined
          ? `${this.name}: node:${name} has an allocated cidr: ${cidr} at index:${index} that does not exist in cluster cidrs configuration`
          : `${this.name}: node:${name}: cidr ${cidr} is out the range of cluster cidr ${set}`,
      );
    }
  }

  async sync(name: string): Promise<void> {
    const node = this.#nodes.get(name);
    if (node === undefined || node.metadata.deletionTimestamp !== undefined || podCidrs(node).length > 0) return;
    // After a failure the same ones: whether the request got through is not always known.
    const podCIDRs = this.#blocks.get(name) ?? this.#allocate(node);
    this.#blocks.set(name, podCIDRs);
    const patch = { spec: { podCIDR: podCIDRs[0], podCIDRs } };
    try {
      await this.#context.client.patch(resourcePath('v1', 'nodes', { name }), patch, 'strategic');
    } catch (error) {
      if (isNotFound(error)) return;
      this.#event(node, 'CIDRAssignmentFailed');
      throw error;
    }
  }

  /** One of each range. Throws where one of them has none left. */
  #allocate(node: Node): readonly string[] {
    const blocks: Range[] = [];
    for (const [index, set] of this.#sets.entries()) {
      const block = set.allocate();
      if (block !== undefined) {
        blocks.push(block);
        continue;
      }
      for (const [at, other] of blocks.entries()) this.#sets[at]?.release(other);
      this.#event(node, 'CIDRNotAvailable');
      throw new Error(
        `failed to allocate cidr from cluster cidr at idx:${index}: CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range`,
      );
    }
    return blocks.map(rangeText);
  }

  #event({ metadata: { name, uid } }: Node, reason: string): void {
    const subject = { kind: 'Node', apiVersion: 'v1', metadata: { name, uid } };
    this.#context.recorder.event(subject, 'Normal', reason, `Node ${name} status is now: ${reason}`);
  }
}
