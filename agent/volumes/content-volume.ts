// The implementation that configMap, secret, downwardAPI and projected volumes share: a directory or tmpfs, filled by the
// atomic writer from sources. Knows sources only in their normalised form. Keeps no contents: big ones are written as they
// come, a few at a time, and only the versions that a volume shows are kept.

import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { ConfigMap, Pod, Secret } from '../../client/types.ts';
import { aggregate } from '../../lib/aggregate.ts';
import { errorMessage } from '../../lib/errors.ts';
import { BIG_BYTES } from '../model/big-objects.ts';
import { objectVersion } from '../model/object-version.ts';
import { type Payload, type PayloadFile, Staging, type WriteOptions, writePayload } from './atomic-writer.ts';
import { makeDirectory, makeTmpfs, tmpfsSize } from './directories.ts';
import { applyFsGroup } from './ownership.ts';
import { type ContentSource, commonUser, downwardFiles, type Files, objectFiles, ownedFile } from './projection.ts';
import { type PlanInput, type VolumeHost, type VolumePlan, volumeDir } from './volume-type.ts';

export interface ContentPlan extends VolumePlan {
  readonly medium: 'disk' | 'memory';
  /** Bytes of the tmpfs; undefined is the kernel's default. */
  readonly sizeBytes: number | undefined;
  readonly sources: readonly ContentSource[];
  readonly defaultMode: number;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  readonly allocatable: Readonly<Record<string, string>>;
  /** What this agent wrote last: of each source its version or hash; undefined before the first time. */
  readonly shown: { versions: readonly string[] | undefined };
}

/** Of one volume's files at most this many bytes are in memory together; the rest is on disk when the last one comes. */
const IN_MEMORY_BYTES = 1024 * 1024;

/** What one source gave. */
interface Collected {
  readonly files: readonly (readonly [path: string, file: PayloadFile])[];
  /** Of an object its version; of anything else a hash of its files. Equal texts: equal files. */
  readonly version: string;
}

export function contentPlan(
  input: PlanInput,
  plugin: string,
  medium: ContentPlan['medium'],
  sources: readonly ContentSource[],
  defaultMode: number | undefined,
): ContentPlan {
  return {
    path: volumeDir(input.podDir, plugin, input.volume.name),
    readOnly: true,
    managed: true,
    medium,
    sizeBytes: medium === 'memory' ? tmpfsSize(input, undefined) : undefined,
    sources,
    defaultMode: defaultMode ?? 0o644,
    uid: commonUser(input.pod),
    gid: input.pod.spec.securityContext?.fsGroup,
    allocatable: input.allocatable,
    shown: { versions: undefined },
  };
}

/** Directory and content are prepared side by side; the files come last. */
export async function mountContent(plan: ContentPlan, pod: Pod, host: VolumeHost): Promise<void> {
  const place = plan.medium === 'memory' ? makeTmpfs(plan.path, plan.sizeBytes, host) : makeDirectory(plan.path, 0o777);
  const placed = place.then(async (isNew) => {
    // Only the root exists yet; the writer sets the group of the files itself.
    if (isNew && plan.gid !== undefined) await applyFsGroup(plan.path, { gid: plan.gid });
  });
  await fill(plan, pod, host, placed);
}

export async function updateContent(plan: ContentPlan, pod: Pod, host: VolumeHost): Promise<void> {
  if (await showsCurrent(plan, pod, host)) return;
  await fill(plan, pod, host, Promise.resolve());
}

/** True when no source has become another since the volume was written; big objects are not read for that. */
async function showsCurrent(plan: ContentPlan, pod: Pod, host: VolumeHost): Promise<boolean> {
  const { versions } = plan.shown;
  if (versions === undefined) return false;
  for (const [index, source] of plan.sources.entries()) {
    const version = isObject(source)
      ? host.objects.version?.(source.kind, pod.metadata.namespace, source.name)
      : (await read(source, plan, pod, host)).version;
    if (version === undefined || version !== versions[index]) return false;
  }
  return true;
}

/** Writes the files of all sources; of two files with one path the later source's counts. */
async function fill(plan: ContentPlan, pod: Pod, host: VolumeHost, placed: Promise<void>): Promise<void> {
  const options: WriteOptions = { gid: plan.gid, now: host.clock.now() };
  let opening: Promise<Staging> | undefined;
  let inMemory = 0;
  const stage = async ({ files, version }: Collected): Promise<Collected> => {
    const bytes = bytesOf(files);
    if (bytes < BIG_BYTES && inMemory + bytes < IN_MEMORY_BYTES) {
      inMemory += bytes;
      return { files, version };
    }
    await placed;
    opening ??= Staging.open(plan.path, options);
    const staging = await opening;
    const stored: (readonly [string, PayloadFile])[] = [];
    for (const [path, file] of files) {
      const data = file.data instanceof Uint8Array ? staging.put(path, file.data) : file.data;
      stored.push([path, { ...file, data }]);
    }
    // Many pods may have waited for the same object: other work comes between their writes.
    await setImmediate();
    return { files: stored, version };
  };
  const collect = (source: ContentSource): Promise<Collected> =>
    isObject(source)
      ? host.bigContents.run(async () => stage(await read(source, plan, pod, host)))
      : read(source, plan, pod, host);
  const [place, ...results] = await Promise.allSettled([placed, ...plan.sources.map(collect)]);
  try {
    if (place.status === 'rejected') throw place.reason;
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [errorMessage(result.reason)] : []));
    if (failures.length > 0) throw new Error(aggregate(failures));
    const collected = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const payload: Payload = new Map(collected.flatMap(({ files }) => files));
    await writePayload(plan.path, payload, options);
    plan.shown.versions = collected.map(({ version }) => version);
  } catch (error) {
    // Why it could not be opened is among the failures.
    const staging = await opening?.catch(() => undefined);
    staging?.discard();
    throw error;
  }
}

type ObjectSource = Extract<ContentSource, { kind: 'configMap' | 'secret' }>;

function isObject(source: ContentSource): source is ObjectSource {
  return source.kind === 'configMap' || source.kind === 'secret';
}

function bytesOf(files: Collected['files']): number {
  return files.reduce((sum, [, { data }]) => sum + (data instanceof Uint8Array ? data.byteLength : 0), 0);
}

function hashed(files: Files): Collected {
  const hash = createHash('sha256');
  for (const [path, { data }] of files) {
    hash.update(`${path}\0`);
    hash.update(`${data.byteLength}\0`).update(data);
  }
  return { files, version: hash.digest('hex') };
}

async function read(
  source: ContentSource,
  plan: ContentPlan,
  pod: Pod,
  { objects, tokens }: VolumeHost,
): Promise<Collected> {
  const { namespace } = pod.metadata;
  switch (source.kind) {
    case 'configMap':
    case 'secret': {
      const read: Promise<ConfigMap | Secret | undefined> =
        source.kind === 'configMap'
          ? objects.configMap(namespace, source.name)
          : objects.secret(namespace, source.name);
      const object = await read;
      return { files: objectFiles(source, object, plan.defaultMode), version: objectVersion(object) };
    }
    case 'downwardAPI':
      return hashed(downwardFiles(source.items, pod, plan.allocatable, plan.defaultMode));
    case 'token': {
      const { audience, expirationSeconds } = source;
      const token = await tokens.token(pod, { expirationSeconds, ...(audience === undefined ? {} : { audience }) });
      return hashed([ownedFile(source, token, plan, plan.defaultMode)]);
    }
    case 'clusterTrustBundle': {
      if (objects.trustAnchors === undefined) {
        throw new Error('ClusterTrustBundle projection is not supported in static kubelet mode');
      }
      return hashed([ownedFile(source, await objects.trustAnchors(source), plan, plan.defaultMode)]);
    }
  }
}
