// Binds pending pods to nodes as soon as they appear; to be run once its informers are synced. filter.ts and volumes.ts
// choose the node; this file keeps what they need (pods by node, bindings in progress) and sends the bindings. A pod
// with unbound claims is bound after them.

import { isConflict, isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import { type Change, objectKey } from '../../client/store.ts';
import type { Node, Pod } from '../../client/types.ts';
import { WorkQueue } from '../../client/workqueue.ts';
import { rfc3339 } from '../../lib/rfc3339.ts';
import { sameJson } from '../../lib/same-json.ts';
import type { Informers } from '../informers.ts';
import type { Controller, ControllerContext } from '../runtime.ts';
import { ANNOTATIONS, claimNamesOf, isBound } from '../storage/objects.ts';
import { CLAIMS, patchAsRead, VOLUMES } from '../storage/write.ts';
import { type NodeView, place } from './filter.ts';
import { fitVolumes, podVolumes, type StorageView, type VolumeFit, type VolumeStep, volumeKey } from './volumes.ts';

export const SCHEDULER_NAME = 'default-scheduler';
/** A pod that fits nowhere is scheduled again after this long even without any change. */
const FLUSH_UNSCHEDULABLE_MS = 300_000;
/** Bindings under way at once. */
const WORKERS = 16;

/** To be scheduled: pending, unbound, not gated, not deleted. */
export function isPending(pod: Pod): boolean {
  return (
    (pod.spec.nodeName ?? '') === '' &&
    pod.metadata.deletionTimestamp === undefined &&
    (pod.spec.schedulerName ?? SCHEDULER_NAME) === SCHEDULER_NAME &&
    (pod.spec.schedulingGates ?? []).length === 0 &&
    !isFinished(pod)
  );
}

function isFinished(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** Whether a change of a node can make room for a pod; heartbeats do not. */
export function nodeChangeMatters(old: Node, now: Node): boolean {
  const view = (node: Node): string =>
    JSON.stringify([
      node.metadata.labels,
      node.spec?.taints,
      node.spec?.unschedulable,
      node.status?.allocatable,
      node.status?.conditions?.map(({ type, status }) => [type, status]),
    ]);
  return view(old) !== view(now);
}

type Needed = Pick<
  Informers,
  | 'pods'
  | 'nodes'
  | 'persistentVolumes'
  | 'persistentVolumeClaims'
  | 'storageClasses'
  | 'csiDrivers'
  | 'csiNodes'
  | 'csiStorageCapacities'
>;

function storageView(informers: Needed): StorageView {
  return {
    claim: (key) => informers.persistentVolumeClaims.get(key),
    volume: (name) => informers.persistentVolumes.get(name),
    volumes: () => informers.persistentVolumes.list(),
    storageClass: (name) => informers.storageClasses.get(name),
    csiDriver: (name) => informers.csiDrivers.get(name),
    csiNode: (name) => informers.csiNodes.get(name),
    capacities: () => informers.csiStorageCapacities.list(),
  };
}

export class Scheduler implements Controller {
  readonly name = 'scheduler';
  readonly workers = WORKERS;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #informers: Needed;
  readonly #storage: StorageView;
  /** Node name → pods there by key, kept with the changes so that a decision need not walk all pods. */
  readonly #byNode = new Map<string, Map<string, Pod>>();
  /** Assumed pods: bound, but not yet in the cache, or waiting for their volumes; they count on their node already. */
  readonly #assumed = new Map<string, { readonly pod: Pod; readonly node: string; readonly waits: boolean }>();
  readonly #unschedulable = new Set<string>();

  constructor(context: ControllerContext, informers: Needed) {
    this.#context = context;
    this.#informers = informers;
    this.#storage = storageView(informers);
    this.queue = new WorkQueue({ clock: context.clock, initialDelayMs: 100, maxDelayMs: 10_000 });
    informers.pods.onChange((changes) => {
      for (const change of changes) this.#podChanged(change);
    });
    informers.nodes.onChange((changes) => {
      const matters = changes.some(
        (change) =>
          change.type === 'added' || (change.type === 'modified' && nodeChangeMatters(change.old, change.object)),
      );
      if (matters) this.#retryUnschedulable();
    });
    this.#watchStorage();
  }

  /** Claims, volumes, classes, drivers: any of them can be what a pod waits for. */
  #watchStorage(): void {
    const { persistentVolumes, persistentVolumeClaims, storageClasses, csiNodes, csiDrivers, csiStorageCapacities } =
      this.#informers;
    const retry = (changes: readonly unknown[]): void => {
      if (changes.length > 0) this.#retryUnschedulable();
    };
    persistentVolumeClaims.onChange((changes) => {
      if (changes.length === 0) return;
      this.#retryUnschedulable();
      const keys = new Set(changes.map((change) => objectKey(change.object)));
      for (const [key, { pod, waits }] of this.#assumed) {
        const { namespace } = pod.metadata;
        if (waits && claimNamesOf(pod).some((name) => keys.has(`${namespace}/${name}`))) this.queue.add(key);
      }
    });
    persistentVolumes.onChange((changes) => {
      retry(changes.filter((c) => c.type !== 'modified' || volumeKey(c.old) !== volumeKey(c.object)));
    });
    for (const store of [storageClasses, csiNodes, csiDrivers, csiStorageCapacities]) store.onChange(retry);
  }

  async sync(key: string): Promise<void> {
    const pod = this.#informers.pods.get(key);
    if (pod === undefined || !isPending(pod)) return;
    const assumed = this.#assumed.get(key);
    if (assumed?.waits === false) return;
    // Whatever it waited for may have changed: it is placed anew.
    this.#assumed.delete(key);
    const state = podVolumes(pod, this.#storage);
    const nodes = this.#informers.nodes.size;
    // The reason is the same for every node: reported once.
    if (state.kind === 'blocked' && nodes > 0) {
      await this.#reject(key, pod, `0/${nodes} nodes are available: ${state.message}.`);
      return;
    }
    const fits = new Map<string, VolumeFit>();
    const placement = place(pod, this.#views(), (view) => {
      const fit = fitVolumes(pod, state, view, this.#storage);
      fits.set(view.node.metadata.name, fit);
      return fit.reasons;
    });
    if (placement.kind !== 'node') {
      await this.#reject(key, pod, placement.message);
      return;
    }
    const { node } = placement;
    if (state.kind === 'claims' && state.claims.some((claim) => !isBound(claim))) {
      this.#assumed.set(key, { pod, node, waits: true });
      await this.#bindVolumes(key, fits.get(node)?.steps ?? [], node);
    } else await this.#bind(key, pod, node);
  }

  /** Writes what the claims' controllers act on; the claims' own changes then bring the pod back here. */
  async #bindVolumes(key: string, steps: readonly VolumeStep[], node: string): Promise<void> {
    const { client } = this.#context;
    try {
      for (const step of steps) {
        if (step.kind === 'provision') {
          const annotations = { [ANNOTATIONS.selectedNode]: node };
          await patchAsRead(client, CLAIMS, step.claim, { metadata: { annotations } });
        } else {
          const { name, namespace, uid, resourceVersion } = step.claim.metadata;
          await patchAsRead(client, VOLUMES, step.volume, {
            metadata: { annotations: { [ANNOTATIONS.boundByController]: 'yes' } },
            spec: {
              claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name, namespace, uid, resourceVersion },
            },
          });
        }
      }
    } catch (error) {
      this.#assumed.delete(key);
      throw error;
    }
  }

  #views(): NodeView[] {
    return this.#informers.nodes.list().map((node) => {
      const pods = [...(this.#byNode.get(node.metadata.name)?.values() ?? [])];
      for (const assumed of this.#assumed.values()) if (assumed.node === node.metadata.name) pods.push(assumed.pod);
      return { node, pods };
    });
  }

  async #bind(key: string, pod: Pod, node: string): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    this.#assumed.set(key, { pod, node, waits: false });
    try {
      await this.#context.client.create(resourcePath('v1', 'pods', { namespace, name, subresource: 'binding' }), {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name, namespace, uid },
        target: { apiVersion: 'v1', kind: 'Node', name: node },
      });
    } catch (error) {
      this.#assumed.delete(key);
      // Gone, or bound by another scheduler: the next watch event decides.
      if (isNotFound(error) || isConflict(error)) return;
      throw error;
    }
    const message = `Successfully assigned ${key} to ${node}`;
    this.#context.recorder.event({ ...pod, kind: 'Pod', apiVersion: 'v1' }, 'Normal', 'Scheduled', message);
  }

  async #reject(key: string, pod: Pod, message: string): Promise<void> {
    this.#unschedulable.add(key);
    this.queue.addAfter(key, FLUSH_UNSCHEDULABLE_MS);
    this.#context.recorder.event({ ...pod, kind: 'Pod', apiVersion: 'v1' }, 'Warning', 'FailedScheduling', message);
    const known = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
    if (known?.status === 'False' && known.reason === 'Unschedulable' && known.message === message) return;
    const { name, namespace, uid } = pod.metadata;
    const since =
      known?.status === 'False' && known.lastTransitionTime !== undefined
        ? known.lastTransitionTime
        : rfc3339(this.#context.clock.now());
    const condition = {
      type: 'PodScheduled',
      status: 'False',
      reason: 'Unschedulable',
      message,
      lastTransitionTime: since,
    };
    try {
      await this.#context.client.patch(
        resourcePath('v1', 'pods', { namespace, name, subresource: 'status' }),
        { metadata: { uid }, status: { conditions: [condition] } },
        'strategic',
      );
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }

  #podChanged(change: Change<Pod>): void {
    const pod = change.object;
    const key = objectKey(pod);
    const before = change.type === 'modified' ? change.old : undefined;
    if (before?.spec.nodeName !== undefined) this.#byNode.get(before.spec.nodeName)?.delete(key);
    const node = pod.spec.nodeName ?? '';
    const placed = change.type !== 'removed' && node !== '' && !isFinished(pod);
    if (placed) {
      const there = this.#byNode.get(node) ?? new Map<string, Pod>();
      this.#byNode.set(node, there.set(key, pod));
    } else this.#byNode.get(node)?.delete(key);
    if (placed || change.type === 'removed') this.#assumed.delete(key);
    if (change.type === 'removed' || !isPending(pod)) this.#unschedulable.delete(key);
    else if (!this.#unschedulable.has(key) || specChanged(before, pod)) {
      this.#unschedulable.delete(key);
      this.queue.add(key);
    }
    // Room may have become free.
    if (node !== '' && !placed) this.#retryUnschedulable();
  }

  #retryUnschedulable(): void {
    const waiting = [...this.#unschedulable];
    this.#unschedulable.clear();
    for (const key of waiting) this.queue.add(key);
  }
}

/** Our own status patch must not requeue the pod; a change of its spec must. */
function specChanged(before: Pod | undefined, now: Pod): boolean {
  return before === undefined || !sameJson(before.spec, now.spec);
}
