// The kubelet's checkpoints of pod resources: `allocated_pods_state` (the resources allocated to each container) and
// `actuated_pods_state` (those of its last start or update), so that a kubelet and nodelet can take over each
// other's root directory. Only the text; the store reads and writes the files. Pure.
//
// Kubelets 1.33 to 1.35 read and write one format: {"data": "<JSON as a string>", "checksum": N}, where data is
// {"entries": {<pod uid>: {"ContainerResources": {<container>: {limits, requests, claims}}}}}. 1.35 adds
// "PodLevelResources" beside it, which older ones skip and which may be missing. A kubelet that reads a wrong checksum
// ends with a panic.

import { errorMessage } from '../../../lib/errors.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { fnv32a } from '../hash.ts';
import type { PodAllocation, Resources } from './allocation.ts';

/** Resources by pod uid and container name: the content of one file. */
export type PodResourceEntries = ReadonlyMap<string, PodAllocation>;

/** The texts of both files; undefined where there is none. */
export interface CheckpointTexts {
  readonly allocated: string | undefined;
  readonly actuated: string | undefined;
}

/** What one instance was made or last updated with. */
export interface ActuatedResources {
  /** The instance that has them; undefined where the file does not tell, as the kubelet's does not: the newest one. */
  readonly id: string | undefined;
  readonly resources: Resources;
}

export interface SavedPod {
  readonly allocated: PodAllocation;
  /** By container name; a container that is missing has what is allocated. */
  readonly actuated: Readonly<Record<string, ActuatedResources>>;
}

/** FNV-32a over the string as Go's spew prints it with its type: the kubelet's checksum of a checkpoint's data. */
export function checkpointChecksum(data: string): number {
  return fnv32a(`(string)${data}`);
}

/** The text of one file. */
export function printCheckpoint(entries: PodResourceEntries): string {
  const pods = Object.fromEntries([...entries].map(([uid, pod]) => [uid, { ContainerResources: pod }]));
  const data = JSON.stringify({ entries: pods });
  return JSON.stringify({ data, checksum: checkpointChecksum(data) });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Absent, and null as Go writes what is empty, is an empty object. */
function readRecord(value: unknown, what: string): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (!isRecord(value)) throw new Error(`${what} is no object`);
  return value;
}

function readQuantities(value: unknown): Record<string, string> | undefined {
  if (!isRecord(value)) return undefined;
  return Object.fromEntries(Object.entries(value).map(([name, quantity]) => [name, String(quantity)]));
}

function readClaims(value: unknown): NonNullable<Resources['claims']> | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.filter(isRecord).map(({ name, request }) => ({
    name: String(name),
    ...(request === undefined ? {} : { request: String(request) }),
  }));
}

function readResources(value: unknown, container: string): Resources {
  if (!isRecord(value)) throw new Error(`container ${container} has resources that are no object`);
  const requests = readQuantities(value['requests']);
  const limits = readQuantities(value['limits']);
  const claims = readClaims(value['claims']);
  return {
    ...(limits === undefined ? {} : { limits }),
    ...(requests === undefined ? {} : { requests }),
    ...(claims === undefined ? {} : { claims }),
  };
}

function readAllocation(value: unknown, what: string): PodAllocation {
  return Object.fromEntries(
    Object.entries(readRecord(value, what)).map(([name, resources]) => [name, readResources(resources, name)]),
  );
}

function parseJson(text: string): Record<string, unknown> {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value)) throw new Error('it is no object');
  return value;
}

function readEntries({ data, checksum }: Record<string, unknown>): Map<string, PodAllocation> {
  if (typeof data !== 'string') throw new Error('it has no data');
  const expected = checkpointChecksum(data);
  if (checksum !== expected) throw new Error(`checkpoint is corrupted: its checksum is ${checksum}, not ${expected}`);
  const entries = readRecord(parseJson(data)['entries'], 'entries');
  return new Map(
    Object.entries(entries).map(([uid, pod]) => {
      const { ContainerResources } = readRecord(pod, `pod ${uid}`);
      return [uid, readAllocation(ContainerResources, `ContainerResources of pod ${uid}`)];
    }),
  );
}

/** The format of `allocated_pods_state` before it was the kubelet's: both files' content in one, and ids of instances. */
const FORMER_VERSION = 1;

function readFormerPod(value: unknown): SavedPod {
  if (!isRecord(value) || !isRecord(value['allocated'])) throw new Error('a pod without "allocated"');
  const actuated = Object.entries(readRecord(value['actual'], 'actual')).map(([name, entry]) => {
    if (!isRecord(entry) || typeof entry['id'] !== 'string') throw new Error(`container ${name} without an id`);
    return [name, { id: entry['id'], resources: readResources(entry['resources'], name) }] as const;
  });
  return { allocated: readAllocation(value['allocated'], 'allocated'), actuated: Object.fromEntries(actuated) };
}

function readFormer(value: Record<string, unknown>): Map<string, SavedPod> {
  if (value['version'] !== FORMER_VERSION) throw new Error(`version ${value['version']} is not known`);
  const pods = Object.entries(readRecord(value['pods'], 'pods'));
  return new Map(pods.map(([uid, pod]) => [uid, readFormerPod(pod)]));
}

function savedPod(allocated: PodAllocation, actuated: PodAllocation | undefined): SavedPod {
  return {
    allocated,
    actuated: Object.fromEntries(
      Object.keys(allocated).flatMap((name) => {
        const resources = getOwn(actuated, name);
        return resources === undefined ? [] : [[name, { id: undefined, resources }]];
      }),
    ),
  };
}

function within<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${file}: ${errorMessage(error)}`, { cause: error });
  }
}

/** By pod uid. Throws with what is wrong, and in which file. */
export function parseCheckpoints({ allocated, actuated }: CheckpointTexts): Map<string, SavedPod> {
  const first = within('allocated_pods_state', () => (allocated === undefined ? {} : parseJson(allocated)));
  if ('version' in first) return within('allocated_pods_state', () => readFormer(first));
  const allocations = within('allocated_pods_state', () =>
    allocated === undefined ? new Map<string, PodAllocation>() : readEntries(first),
  );
  const applied = within('actuated_pods_state', () =>
    actuated === undefined ? undefined : readEntries(parseJson(actuated)),
  );
  return new Map([...allocations].map(([uid, pod]) => [uid, savedPod(pod, applied?.get(uid))]));
}
