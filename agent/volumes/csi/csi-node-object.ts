// Publishes this node's CSI drivers: the CSINode object, the annotation with the node's ids, and the
// topology labels. Objects are patched, never owned: other components' fields stay.

import type { CSINode as CoreCSINode, CSINodeDriver } from 'kubernetes-types/storage/v1';
import type { ApiClient } from '../../../client/api.ts';
import { isAlreadyExists, isConflict, isNotFound, isTransient } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Node, Stored } from '../../../client/types.ts';
import type { CsiNodeAnnouncer, CsiNodeInfo } from '../../../csi/registered-drivers.ts';
import type { BackoffPolicy } from '../../../lib/backoff.ts';
import type { Clock } from '../../../lib/clock.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { retry } from '../../../lib/retry.ts';
import { sameJson } from '../../../lib/same-json.ts';

type CSINode = Stored<CoreCSINode>;

/** `{"driver": "id of the node", …}` on the Node, as the kubelet keeps it. */
const NODE_ID_ANNOTATION = 'csi.volume.kubernetes.io/nodeid';
const API = 'storage.k8s.io/v1';
const MAX_COUNT = 2_147_483_647;
/** How long a missing Node or a conflict is retried, ms. */
const RETRY_FOR_MS = 60_000;
const RETRY: BackoffPolicy = { initialMs: 50, maxMs: 2000, factor: 2, resetMs: Number.POSITIVE_INFINITY };

export interface CsiNodeObjectOptions {
  readonly nodeName: string;
  readonly client: Pick<ApiClient, 'get' | 'create' | 'replace' | 'patch'>;
  readonly clock: Clock;
  /** Ends what is being tried again: an agent that stops waits for nothing. */
  readonly signal?: AbortSignal;
}

/** A driver's entry in CSINode. */
export function driverEntry({ driver, nodeId, maxVolumes, topology }: CsiNodeInfo): CSINodeDriver {
  return {
    name: driver,
    nodeID: nodeId,
    topologyKeys: Object.keys(topology).sort(),
    ...(maxVolumes === 0 ? {} : { allocatable: { count: Math.min(maxVolumes, MAX_COUNT) } }),
  };
}

/** The drivers with `entry` in its place or at the end; undefined when that changes nothing. */
export function withDriver(drivers: readonly CSINodeDriver[], entry: CSINodeDriver): CSINodeDriver[] | undefined {
  const at = drivers.findIndex(({ name }) => name === entry.name);
  if (at < 0) return [...drivers, entry];
  return sameEntry(drivers[at], entry) ? undefined : drivers.with(at, entry);
}

export function withoutDriver(drivers: readonly CSINodeDriver[], driver: string): CSINodeDriver[] | undefined {
  const rest = drivers.filter(({ name }) => name !== driver);
  return rest.length === drivers.length ? undefined : rest;
}

function sameEntry(a: CSINodeDriver | undefined, b: CSINodeDriver): boolean {
  const facts = (entry: CSINodeDriver | undefined): unknown => [
    entry?.nodeID,
    entry?.topologyKeys ?? [],
    entry?.allocatable?.count,
  ];
  return sameJson(facts(a), facts(b));
}

/** The ids in the annotation; one that is no JSON object counts as empty. */
function nodeIds(node: Node): Record<string, string> {
  const text = node.metadata.annotations?.[NODE_ID_ANNOTATION];
  if (text === undefined) return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
    return Object.fromEntries(Object.entries(value).filter(([, id]) => typeof id === 'string'));
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/**
 * The merge patch that puts the driver on the Node; undefined when nothing is to change. Throws when a label of the
 * topology is there with another value, as the kubelet refuses it.
 */
export function nodePatch(node: Node, { driver, nodeId, topology }: CsiNodeInfo): object | undefined {
  const labels = Object.entries(topology).filter(([key, value]) => {
    const existing = getOwn(node.metadata.labels, key);
    if (existing === undefined || existing === value) return existing === undefined;
    throw new Error(
      `detected topology value collision: driver reported "${key}":"${value}" but existing label is "${key}":"${existing}"`,
    );
  });
  const ids = nodeIds(node);
  const annotate = getOwn(ids, driver) !== nodeId;
  if (labels.length === 0 && !annotate) return undefined;
  return {
    metadata: {
      ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }),
      ...(annotate ? { annotations: { [NODE_ID_ANNOTATION]: JSON.stringify({ ...ids, [driver]: nodeId }) } } : {}),
    },
  };
}

/** The merge patch that takes the driver's id off the Node; labels stay, as the kubelet leaves them. */
export function nodePatchWithout(node: Node, driver: string): object | undefined {
  const { [driver]: gone, ...rest } = nodeIds(node);
  if (gone === undefined) return undefined;
  const left = Object.keys(rest).length === 0 ? null : JSON.stringify(rest);
  return { metadata: { annotations: { [NODE_ID_ANNOTATION]: left } } };
}

export class CsiNodeObject implements CsiNodeAnnouncer {
  readonly #options: CsiNodeObjectOptions;
  readonly #nodePath: string;
  readonly #path: string;

  constructor(options: CsiNodeObjectOptions) {
    this.#options = options;
    this.#nodePath = resourcePath('v1', 'nodes', { name: options.nodeName });
    this.#path = resourcePath(API, 'csinodes', { name: options.nodeName });
  }

  announce(info: CsiNodeInfo): Promise<void> {
    return this.#again(async () => {
      const node = await this.#options.client.get<Node>(this.#nodePath);
      await this.#patchNode(nodePatch(node, info));
      await this.#change(node, (drivers) => withDriver(drivers, driverEntry(info)));
    });
  }

  withdraw(driver: string): Promise<void> {
    return this.#again(async () => {
      const node = await this.#options.client.get<Node>(this.#nodePath);
      await this.#change(node, (drivers) => withoutDriver(drivers, driver));
      await this.#patchNode(nodePatchWithout(node, driver));
    });
  }

  /** Makes the CSINode of a node without drivers, as every kubelet has one. */
  ensure(): Promise<void> {
    return this.#again(async () => {
      await this.#change(await this.#options.client.get<Node>(this.#nodePath), () => undefined);
    });
  }

  async #patchNode(patch: object | undefined): Promise<void> {
    if (patch !== undefined) await this.#options.client.patch(this.#nodePath, patch, 'merge');
  }

  async #change(node: Node, edit: (drivers: readonly CSINodeDriver[]) => CSINodeDriver[] | undefined): Promise<void> {
    const { client } = this.#options;
    const existing = await client.get<CSINode>(this.#path).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    const drivers = edit(existing?.spec.drivers ?? []);
    if (existing !== undefined) {
      if (drivers !== undefined) await client.replace(this.#path, { ...existing, spec: { ...existing.spec, drivers } });
      return;
    }
    const { name, uid } = node.metadata;
    const created: CoreCSINode = {
      apiVersion: API,
      kind: 'CSINode',
      metadata: { name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] },
      spec: { drivers: drivers ?? [] },
    };
    await client.create(resourcePath(API, 'csinodes'), created);
  }

  /** Retries what another try may fix, for as long as a driver may wait for it. */
  #again(work: () => Promise<void>): Promise<void> {
    const { clock, signal } = this.#options;
    const mends = (error: unknown): boolean =>
      isConflict(error) || isAlreadyExists(error) || isNotFound(error) || isTransient(error);
    return retry(work, { clock, policy: RETRY, limitMs: RETRY_FOR_MS, mends, signal });
  }
}
