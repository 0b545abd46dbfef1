// Where the kubelet keeps what belongs to CSI volumes, and how it names them. Pure. `root` is the agent's own root.

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { podDir } from '../volume-type.ts';

export const CSI_PLUGIN = 'kubernetes.io/csi';
const ESCAPED = 'kubernetes.io~csi';
const NOTE = 'vol_data.json';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** One volume of one driver: what calls are serial for, and what is staged once. */
export function volumeKey(driver: string, handle: string): string {
  return `${driver}^${handle}`;
}

/** The name of the volume in node.status.volumesInUse. */
export function uniqueVolumeName(driver: string, handle: string): string {
  return `${CSI_PLUGIN}/${volumeKey(driver, handle)}`;
}

/** The VolumeAttachment that the attach/detach controller makes for a volume on a node. */
export function attachmentName(handle: string, driver: string, nodeName: string): string {
  return `csi-${sha256(`${handle}${driver}${nodeName}`)}`;
}

/** The volume id of an inline volume. */
export function ephemeralHandle(podUid: string, volume: string): string {
  return `csi-${sha256(`${podUid}${volume}`)}`;
}

function pluginDir(root: string): string {
  return join(root, 'plugins', CSI_PLUGIN);
}

/** What one staged volume has on disk. */
export interface StagingPlace {
  /** Holds the note; exists while the volume may be staged. */
  readonly note: string;
  /** staging_target_path */
  readonly path: string;
}

export function stagingPlace(root: string, driver: string, handle: string): StagingPlace {
  const directory = join(pluginDir(root), driver, sha256(handle));
  return { note: join(directory, NOTE), path: join(directory, 'globalmount') };
}

const blockRoot = (root: string): string => join(pluginDir(root), 'volumeDevices');

export function blockStagingPlace(root: string, specName: string): StagingPlace {
  return {
    note: join(blockRoot(root), specName, 'data', NOTE),
    path: join(blockRoot(root), 'staging', specName),
  };
}

/** What a pod's use of a volume has on disk. */
export interface PodPlace {
  readonly note: string;
  /** target_path */
  readonly target: string;
}

export function podPlace(root: string, podUid: string, specName: string): PodPlace {
  const directory = join(podDir(root, podUid), 'volumes', ESCAPED, specName);
  return { note: join(directory, NOTE), target: join(directory, 'mount') };
}

export interface PodBlockPlace extends PodPlace {
  /** A bind mount of the device, one per pod: the kubelet's count of users. */
  readonly globalMap: string;
  /** A link to the device below the pod's own directory: what containers get. */
  readonly podMap: string;
}

export function podBlockPlace(root: string, podUid: string, specName: string): PodBlockPlace {
  const pod = podDir(root, podUid);
  return {
    note: join(pod, 'plugins', ESCAPED, specName, NOTE),
    target: join(blockRoot(root), 'publish', specName, podUid),
    globalMap: join(blockRoot(root), specName, 'dev', podUid),
    podMap: join(pod, 'volumeDevices', ESCAPED, specName),
  };
}

/** Directories of a pod whose entries carry notes: mounted volumes, and mapped devices. */
export function podNoteDirs(root: string, podUid: string): readonly string[] {
  const pod = podDir(root, podUid);
  return [join(pod, 'volumes', ESCAPED), join(pod, 'plugins', ESCAPED)];
}

/** Where staged volumes' notes are found: `<driver>/<hash>/vol_data.json`, and of devices `<name>/data/vol_data.json`. */
export function stagingRoot(root: string): string {
  return pluginDir(root);
}

export const NOTE_FILE = NOTE;
export const BLOCK_DIRECTORY = 'volumeDevices';
