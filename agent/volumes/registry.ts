// Which volume type serves a volume of a pod. A type that is not here is refused with its name.

import type { Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import { configMapVolume } from './config-map.ts';
import { downwardAPIVolume } from './downward-api.ts';
import { emptyDirVolume } from './empty-dir.ts';
import { hostPathVolume } from './host-path.ts';
import { imageVolume } from './image.ts';
import { nfsVolume } from './nfs.ts';
import { projectedVolume } from './projected.ts';
import { secretVolume } from './secret.ts';
import type { PlanInput, Volume, VolumeHost, VolumePlan, VolumeType } from './volume-type.ts';

/** Where a device was mapped to. */
export interface MappedDevice {
  /** What containers get: below the pod's own directory. */
  readonly podMap: string;
  /** Where each pod's use of the device is seen. */
  readonly globalMap: string;
}

/** One volume of one pod with its type and plan settled: what the manager works with. */
export interface PreparedVolume {
  readonly name: string;
  readonly plugin: string;
  readonly plan: VolumePlan;
  mount(pod: Pod, host: VolumeHost): Promise<void>;
  /** Undefined where content never changes. */
  readonly update: ((pod: Pod, host: VolumeHost) => Promise<void>) | undefined;
  /** Of a volume in block mode; there is nothing to mount then. */
  readonly device?: MappedDevice;
  /** Every container of the pod has this group, so that it can use the volume. */
  readonly group?: number;
}

/** Volumes that must be looked up before it is known what they are. Their parts are loaded with the first of them. */
const PERSISTENT: ReadonlySet<string> = new Set(['persistentVolumeClaim', 'ephemeral', 'csi']);

export function isPersistent(volume: Volume): boolean {
  return PERSISTENT.has(sourceField(volume));
}

/** One type's plan for one volume. */
export function settle<P extends VolumePlan>(type: VolumeType<P>, input: PlanInput): PreparedVolume {
  const plan = type.plan(input);
  const { update } = type;
  return {
    name: input.volume.name,
    plugin: type.plugin,
    plan,
    mount: (pod, host) => type.mount(plan, pod, host),
    update: update === undefined ? undefined : (pod, host) => update(plan, pod, host),
  };
}

interface Preparation {
  readonly plugin: string;
  readonly prepare: (input: PlanInput) => PreparedVolume;
}

function preparation<P extends VolumePlan>(type: VolumeType<P>): Preparation {
  return { plugin: type.plugin, prepare: (input) => settle(type, input) };
}

const TYPES: Readonly<Partial<Record<string, Preparation>>> = {
  emptyDir: preparation(emptyDirVolume),
  hostPath: preparation(hostPathVolume),
  configMap: preparation(configMapVolume),
  secret: preparation(secretVolume),
  downwardAPI: preparation(downwardAPIVolume),
  projected: preparation(projectedVolume),
  nfs: preparation(nfsVolume),
  image: preparation(imageVolume),
};

/** The plugin that serves a volume; undefined for those that must be looked up, and those that none serves. */
export function pluginOf(volume: Volume): string | undefined {
  return getOwn(TYPES, sourceField(volume))?.plugin;
}

/** The field of the volume that names its source; no source at all is an emptyDir, as in the API. */
export function sourceField(volume: Volume): string {
  return Object.entries(volume).find(([field, value]) => field !== 'name' && value !== undefined)?.[0] ?? 'emptyDir';
}

/** Pure. Throws an Error whose message ends a FailedMount event. */
export function prepareVolume(input: PlanInput): PreparedVolume {
  const field = sourceField(input.volume);
  const type = getOwn(TYPES, field);
  if (type === undefined) throw new Error(`volume type ${field} is not supported`);
  return type.prepare(input);
}
