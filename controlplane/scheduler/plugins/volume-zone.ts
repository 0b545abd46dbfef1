// VolumeZone (PreFilter, Filter): a bound volume with a zone or region label is used on nodes with the same. It is how volumes
// of in-tree cloud providers are placed; others have node affinity (VolumeBinding). Pure.

import { getOwn } from '../../../lib/own-property.ts';
import type { PersistentVolume } from '../../storage/objects.ts';
import { isNodeChange } from '../events.ts';
import { StateKey } from '../framework/cycle-state.ts';
import { GO, type Plugin, SKIP } from '../framework/plugin.ts';
import { unresolvable } from '../framework/status.ts';
import type { StorageView } from '../volumes.ts';

const CONFLICT = unresolvable('node(s) had no available volume zone');

/** Label → the one that took its place. */
const LABELS: ReadonlyMap<string, string> = new Map([
  ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['failure-domain.beta.kubernetes.io/region', 'topology.kubernetes.io/region'],
  ['topology.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['topology.kubernetes.io/region', 'topology.kubernetes.io/region'],
]);

interface Topology {
  readonly label: string;
  readonly values: readonly string[];
}

/** A label of several zones has "__" between them. */
function topologiesOf(volume: PersistentVolume): readonly Topology[] {
  return [...LABELS.keys()].flatMap((label) => {
    const value = getOwn(volume.metadata.labels, label);
    return value === undefined ? [] : [{ label, values: value.split('__') }];
  });
}

export function volumeZone(view: StorageView): Plugin {
  const key = new StateKey<readonly Topology[]>();
  return {
    name: 'VolumeZone',
    preFilter: (state, { claims }) => {
      const topologies = claims.flatMap((claim) => {
        const volume = view.volume(view.claim(claim)?.spec?.volumeName ?? '');
        return volume === undefined ? [] : topologiesOf(volume);
      });
      if (topologies.length === 0) return SKIP;
      key.write(state, topologies);
      return GO;
    },
    filter: (state, _pod, { labels }) => {
      // A cluster without zones.
      if (![...LABELS.keys()].some((label) => getOwn(labels, label) !== undefined)) return undefined;
      const fits = (key.read(state) ?? []).every(({ label, values }) => {
        const value = getOwn(labels, label) ?? getOwn(labels, LABELS.get(label) ?? label);
        return value !== undefined && values.includes(value);
      });
      return fits ? undefined : CONFLICT;
    },
    worthRetrying: (event, pod) => {
      if (event.resource === 'PersistentVolumeClaim') {
        return pod.claims.includes(`${event.object.metadata.namespace}/${event.object.metadata.name}`);
      }
      return (event.resource === 'PersistentVolume' && event.action !== 'delete') || isNodeChange(event, 'labels');
    },
  };
}
