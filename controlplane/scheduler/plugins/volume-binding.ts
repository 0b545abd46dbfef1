// VolumeBinding (PreFilter, Filter, Reserve, PreBind): the pod's claims are bound, or can be on this node, to volumes that it
// reaches. Reserve takes the volumes for given, PreBind has them bound and waits for it. Pure but for PreBind.

import { isBound } from '../../storage/objects.ts';
import { isNodeChange } from '../events.ts';
import { StateKey } from '../framework/cycle-state.ts';
import { GO, type Plugin, SKIP } from '../framework/plugin.ts';
import { unresolvable } from '../framework/status.ts';
import type { AssumedStorage } from '../storage-assumptions.ts';
import type { VolumeWrites } from '../volume-writes.ts';
import { fitVolumes, type PodVolumes, podVolumes, type VolumeFit, volumeKey } from '../volumes.ts';

/** Seconds until an attempt to have volumes bound is given up. */
export const BIND_TIMEOUT_SECONDS = 600;

interface State {
  readonly volumes: PodVolumes;
  /** Node → what it would take there. */
  readonly fits: Map<string, VolumeFit>;
}

export function volumeBinding(
  storage: AssumedStorage,
  writes: Pick<VolumeWrites, 'bind'>,
  timeoutSeconds = BIND_TIMEOUT_SECONDS,
): Plugin {
  const key = new StateKey<State>();
  return {
    name: 'VolumeBinding',
    preFilter: (state, { pod, claims }) => {
      if (claims.length === 0) return SKIP;
      const volumes = podVolumes(pod, storage);
      if (volumes.kind === 'blocked') return { kind: 'reject', rejection: unresolvable(volumes.message) };
      key.write(state, { volumes, fits: new Map() });
      return GO;
    },
    filter: (state, _pod, { name, node }) => {
      const found = key.read(state);
      if (found === undefined) return undefined;
      const fit = fitVolumes(found.volumes, node, storage);
      found.fits.set(name, fit);
      return fit.reasons.length === 0 ? undefined : unresolvable(...fit.reasons);
    },
    reserve: (state, pod, { name }) => {
      storage.assume(pod.uid, name, key.read(state)?.fits.get(name)?.steps ?? []);
      return undefined;
    },
    unreserve: (_state, pod) => storage.forget(pod.uid),
    preBind: async (state, pod, node) => {
      const found = key.read(state);
      if (found === undefined || found.volumes.kind === 'blocked') return;
      if (found.volumes.claims.every(isBound)) return;
      const steps = found.fits.get(node)?.steps ?? [];
      try {
        await writes.bind(steps, pod.claims, node, timeoutSeconds * 1000);
      } catch (error) {
        throw new Error(`binding volumes: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
      }
    },
    postBind: (_state, pod) => storage.forget(pod.uid),
    worthRetrying: (event, pod) => {
      switch (event.resource) {
        case 'PersistentVolumeClaim':
          return pod.claims.includes(`${event.object.metadata.namespace}/${event.object.metadata.name}`);
        case 'PersistentVolume':
          return event.action !== 'update' || volumeKey(event.old) !== volumeKey(event.object);
        case 'StorageClass':
        case 'CSINode':
        case 'CSIDriver':
        case 'CSIStorageCapacity':
          return event.action !== 'delete';
        default:
          return isNodeChange(event, 'labels');
      }
    },
  };
}
