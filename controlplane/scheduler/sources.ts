// The informers that the scheduler reads, and how their changes reach its cache and its queue: as what plugins' hints know as
// events. Decides nothing of where a pod goes.

import type { Change, ReadableStore } from '../../client/store.ts';
import type { Pod } from '../../client/types.ts';
import { sameJson } from '../../lib/same-json.ts';
import type { Informers } from '../informers.ts';
import { isFinished } from '../storage/objects.ts';
import type { SchedulerCache } from './cache/cache.ts';
import { podInfo } from './cache/pod-info.ts';
import { defaultSelector, type KindSources } from './default-selector.ts';
import { type ClusterEvent, nodeChanges, podChanges } from './events.ts';
import type { Nominator } from './nominator.ts';
import type { DefaultSelector } from './plugins/pod-topology-spread.ts';
import type { SchedulingQueue } from './queue/queue.ts';
import type { StorageView } from './volumes.ts';

export type SchedulerInformers = Pick<
  Informers,
  | 'pods'
  | 'nodes'
  | 'namespaces'
  | 'services'
  | 'replicaSets'
  | 'statefulSets'
  | 'replicationControllers'
  | 'podDisruptionBudgets'
  | 'persistentVolumes'
  | 'persistentVolumeClaims'
  | 'storageClasses'
  | 'csiDrivers'
  | 'csiNodes'
  | 'csiStorageCapacities'
>;

export function storageView(informers: SchedulerInformers): StorageView {
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

export function defaultSelectorFrom(informers: SchedulerInformers): DefaultSelector {
  const sources: KindSources = {
    services: (namespace) => informers.services.list().filter(({ metadata }) => metadata.namespace === namespace),
    replicaSet: (key) => informers.replicaSets.get(key),
    statefulSet: (key) => informers.statefulSets.get(key),
    replicationController: (key) => informers.replicationControllers.get(key),
  };
  return (pod) => defaultSelector(pod, sources);
}

/** To be scheduled by one of these schedulers: without a node, not deleted, not ended. */
export function isPending(pod: Pod, schedulers: ReadonlySet<string>, byDefault: string): boolean {
  return (
    (pod.spec.nodeName ?? '') === '' &&
    pod.metadata.deletionTimestamp === undefined &&
    schedulers.has(pod.spec.schedulerName ?? byDefault) &&
    !isFinished(pod)
  );
}

export interface Watched {
  readonly cache: SchedulerCache;
  readonly queue: SchedulingQueue;
  readonly nominator: Nominator;
  isPending(pod: Pod): boolean;
}

/** Keeps cache and queue up to date from now on. */
export function watchSources(informers: SchedulerInformers, watched: Watched): void {
  const { cache, queue } = watched;
  informers.nodes.onChange((changes) => {
    for (const change of changes) {
      const { object } = change;
      if (change.type === 'removed') cache.removeNode(object.metadata.name);
      else cache.setNode(object);
      if (change.type !== 'modified') queue.onEvent({ resource: 'Node', action: actionOf(change), object });
      else {
        const changed = nodeChanges(change.old, object);
        if (changed.size > 0) queue.onEvent({ resource: 'Node', action: 'update', object, old: change.old, changed });
      }
    }
  });
  informers.pods.onChange((changes) => {
    for (const change of changes) podChanged(change, watched);
  });
  informers.namespaces.onChange((changes) => {
    for (const change of changes) {
      if (change.type === 'modified' && sameJson(change.old.metadata.labels, change.object.metadata.labels)) continue;
      cache.namespacesChanged();
      queue.onEvent({ resource: 'Namespace', action: 'update', name: change.object.metadata.name });
    }
  });
  const forward = <T extends { readonly metadata: { readonly resourceVersion: string } }>(
    store: ReadableStore<T>,
    event: (change: Change<T>) => ClusterEvent,
  ): void => {
    store.onChange((changes) => {
      for (const change of changes) queue.onEvent(event(change));
    });
  };
  forward(informers.persistentVolumeClaims, (change) => stored('PersistentVolumeClaim', change));
  forward(informers.persistentVolumes, (change) => stored('PersistentVolume', change));
  forward(informers.storageClasses, (change) => stored('StorageClass', change));
  forward(informers.csiNodes, (change) => stored('CSINode', change));
  forward(informers.csiDrivers, (change) => stored('CSIDriver', change));
  forward(informers.csiStorageCapacities, (change) => stored('CSIStorageCapacity', change));
}

function actionOf<T>(change: Change<T>): 'add' | 'delete' {
  return change.type === 'removed' ? 'delete' : 'add';
}

function stored<R extends string, T>(resource: R, change: Change<T>) {
  const { object } = change;
  return change.type === 'modified'
    ? ({ resource, action: 'update', object, old: change.old } as const)
    : ({ resource, action: actionOf(change), object } as const);
}

const holdsRoom = (pod: Pod): boolean => (pod.spec.nodeName ?? '') !== '' && !isFinished(pod);

function podChanged(change: Change<Pod>, { cache, queue, nominator, isPending: pending }: Watched): void {
  const pod = change.object;
  const { uid } = pod.metadata;
  const old = change.type === 'modified' ? change.old : undefined;
  const had = old === undefined ? change.type === 'removed' && holdsRoom(pod) : holdsRoom(old);
  const has = change.type !== 'removed' && holdsRoom(pod);
  if (has) {
    queue.delete(uid);
    nominator.delete(uid);
    cache.setPod(pod);
    if (!had || old === undefined) queue.onEvent({ resource: 'AssignedPod', action: 'add', object: pod });
    else {
      const changed = podChanges(old, pod);
      if (changed.size > 0) queue.onEvent({ resource: 'AssignedPod', action: 'update', object: pod, old, changed });
    }
    return;
  }
  if (had || (change.type === 'removed' && cache.isAssumed(uid))) {
    cache.removePod(uid);
    queue.onEvent({ resource: 'AssignedPod', action: 'delete', object: pod });
  }
  if (change.type === 'removed' || !pending(pod)) {
    queue.delete(uid);
    nominator.delete(uid);
  } else {
    const nominated = pod.status?.nominatedNodeName ?? '';
    if (nominated !== '' && !cache.isAssumed(uid)) nominator.set(podInfo(pod), nominated);
    if (queue.isInFlight(uid)) {
      if (old !== undefined) queue.changedInFlight(old, pod);
    } else if (!cache.isAssumed(uid)) queue.set(pod);
  }
}
