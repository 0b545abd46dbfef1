// The Node and its Lease at a simulated API server: registration, status patches, optimistic concurrency, and the watch
// on the Node. What others write into them is here, too. It checks nothing: node-rules.ts does.

import { requestInfo } from '../../client/paths.ts';
import type { Lease, Node, NodeStatus } from '../../client/types.ts';
import type { MonotonicMs } from '../../lib/clock.ts';
import { problem } from './api-problem.ts';
import { FOREIGN_NODE_CONDITION } from './foreign.ts';
import type { WatchLog } from './watch-log.ts';

/** What the rules want to know of the agent's writes; `sentAt` is when the agent sent the request (monotonic ms). */
export interface NodeWitness {
  /** The agent has registered the Node, or written its status. */
  nodeWritten(before: Node | undefined, after: Node, sentAt: MonotonicMs): void;
  leaseWritten(before: Lease | undefined, after: Lease, sentAt: MonotonicMs): void;
}

type Keyed = Readonly<Record<string, unknown>>;

/** A JSON merge patch (RFC 7386). */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const base: Keyed = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {};
  const result = new Map(Object.entries(base));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, merged(result.get(key), value));
  }
  return Object.fromEntries(result);
}

/** A strategic merge patch of a Node's status: conditions are merged by type, addresses replaced where it says so. */
export function applyNodeStatus(status: NodeStatus, patch: NodeStatus): NodeStatus {
  const { conditions = [], addresses, ...rest } = patch;
  const kept = new Map((status.conditions ?? []).map((condition) => [condition.type, condition]));
  for (const condition of conditions) kept.set(condition.type, { ...kept.get(condition.type), ...condition });
  const next = merged(status, rest) as NodeStatus;
  if (addresses !== undefined) next.addresses = addresses.filter((address) => !Object.hasOwn(address, '$patch'));
  return { ...next, conditions: [...kept.values()] };
}

export class SimNodeObjects {
  node: Node | undefined;
  lease: Lease | undefined;
  readonly log: WatchLog<Node>;
  readonly #newLeaseLog: () => WatchLog<Lease>;
  /** Undefined until a client watches leases: the agent does not. */
  #leaseLog: WatchLog<Lease> | undefined;
  readonly #witness: NodeWitness;
  readonly #nextVersion: () => string;

  constructor(
    { log, leaseLog }: { readonly log: WatchLog<Node>; readonly leaseLog: () => WatchLog<Lease> },
    witness: NodeWitness,
    nextVersion: () => string,
  ) {
    this.log = log;
    this.#newLeaseLog = leaseLog;
    this.#witness = witness;
    this.#nextVersion = nextVersion;
  }

  /** Whether a path is about them. */
  static has(path: string): boolean {
    return /^(nodes|leases)(\/|$)/.test(requestInfo(path).resource);
  }

  /** What a user or a controller does; nothing where there is no Node. */
  updateNode(change: (node: Node) => Node): void {
    if (this.node !== undefined) this.#storeNode(change(this.node), 'MODIFIED');
  }

  /** Another client writes the Lease, or deletes it: what was known of it is old. */
  disturbLease(change: 'touch' | 'delete'): void {
    if (this.lease === undefined) return;
    if (change === 'delete') this.lease = undefined;
    else this.#storeLease(this.lease);
  }

  /** "nodes" or "leases". */
  list(resource: string): readonly (Node | Lease)[] {
    const found = resource === 'leases' ? this.lease : this.node;
    if (found === undefined) return [];
    return found === this.node ? [this.#shown(this.node)] : [found];
  }

  get logs(): readonly (WatchLog<Node> | WatchLog<Lease>)[] {
    return this.#leaseLog === undefined ? [this.log] : [this.log, this.#leaseLog];
  }

  logOf(resource: string): WatchLog<Node> | WatchLog<Lease> {
    if (resource !== 'leases') return this.log;
    this.#leaseLog ??= this.#newLeaseLog();
    return this.#leaseLog;
  }

  /** A copy: the agent's store changes what it is given. */
  #shown(node: Node): Node {
    return { ...node, metadata: { ...node.metadata }, status: { ...node.status } };
  }

  get(path: string): unknown {
    const found = isLease(path) ? this.lease : this.node;
    if (found === undefined) throw problem(404, 'NotFound', `${path} not found`);
    return found;
  }

  create(path: string, body: unknown, sentAt: MonotonicMs): unknown {
    if ((isLease(path) ? this.lease : this.node) !== undefined) {
      throw problem(409, 'AlreadyExists', `${path} already exists`);
    }
    if (isLease(path)) return this.#writeLease(body as Lease, sentAt);
    const { metadata, status, ...rest } = body as Node;
    const others = { type: FOREIGN_NODE_CONDITION, status: 'False', reason: 'RouteCreated' };
    const node = {
      ...rest,
      metadata: { ...metadata, uid: 'uid-node' },
      status: { ...status, conditions: [...(status?.conditions ?? []), others] },
    };
    this.#witness.nodeWritten(undefined, node, sentAt);
    return this.#storeNode(node, 'ADDED');
  }

  replace(path: string, body: unknown, sentAt: MonotonicMs): unknown {
    if (!isLease(path)) throw problem(405, 'MethodNotAllowed', `${path} is not replaced by any client`);
    const lease = body as Lease;
    if (this.lease === undefined) throw problem(404, 'NotFound', `${path} not found`);
    if (lease.metadata.resourceVersion !== this.lease.metadata.resourceVersion) {
      throw problem(409, 'Conflict', `Operation cannot be fulfilled on ${path}: the object has been modified`);
    }
    return this.#writeLease(lease, sentAt);
  }

  patch(path: string, body: unknown, sentAt: MonotonicMs): unknown {
    const before = this.node;
    if (before === undefined) throw problem(404, 'NotFound', `${path} not found`);
    const { status, ...rest } = body as Partial<Node>;
    const wanted = rest.metadata?.resourceVersion;
    if (wanted !== undefined && wanted !== before.metadata.resourceVersion) {
      throw problem(409, 'Conflict', `Operation cannot be fulfilled on ${path}: the object has been modified`);
    }
    const changed = merged(before, rest) as Node;
    if (status === undefined) return this.#storeNode(changed, 'MODIFIED');
    const after = { ...changed, status: applyNodeStatus(before.status ?? {}, status) };
    this.#witness.nodeWritten(before, after, sentAt);
    return this.#storeNode(after, 'MODIFIED');
  }

  #writeLease(lease: Lease, sentAt: MonotonicMs): Lease {
    this.#witness.leaseWritten(this.lease, lease, sentAt);
    return this.#storeLease(lease);
  }

  #storeLease(lease: Lease): Lease {
    const isNew = this.lease === undefined;
    const stored = { ...lease, metadata: { ...lease.metadata, resourceVersion: this.#nextVersion() } };
    this.lease = stored;
    this.#leaseLog?.append(isNew ? 'ADDED' : 'MODIFIED', stored);
    return stored;
  }

  #storeNode(node: Node, type: 'ADDED' | 'MODIFIED'): Node {
    const stored = { ...node, metadata: { ...node.metadata, resourceVersion: this.#nextVersion() } };
    this.node = stored;
    this.log.append(type, this.#shown(stored));
    return stored;
  }
}

function isLease(path: string): boolean {
  return requestInfo(path).resource === 'leases';
}
