// The mechanics that configMap, secret, downwardAPI and projected volumes share: a directory or tmpfs, filled by the
// atomic writer from sources. Knows sources only in their normalised form.

import type { ConfigMap, Pod, Secret } from '../../client/types.ts';
import { errorMessage } from '../../lib/errors.ts';
import { type Payload, writePayload } from './atomic-writer.ts';
import { makeDirectory, makeTmpfs, tmpfsSize } from './directories.ts';
import { applyFsGroup } from './ownership.ts';
import {
  aggregate,
  type ContentSource,
  commonUser,
  downwardFiles,
  type Files,
  objectFiles,
  ownedFile,
} from './projection.ts';
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
  };
}

/** Directory and content are prepared side by side; the files come last. */
export async function mountContent(plan: ContentPlan, pod: Pod, host: VolumeHost): Promise<void> {
  const place = plan.medium === 'memory' ? makeTmpfs(plan.path, plan.sizeBytes, host) : makeDirectory(plan.path, 0o777);
  const [placed, content] = await Promise.allSettled([place, collect(plan, pod, host)]);
  if (placed.status === 'rejected') throw placed.reason;
  if (content.status === 'rejected') throw content.reason;
  // Only the root is there yet; the writer gives the files to the group itself.
  if (placed.value && plan.gid !== undefined) await applyFsGroup(plan.path, plan.gid);
  await write(plan, content.value, host);
}

export async function updateContent(plan: ContentPlan, pod: Pod, host: VolumeHost): Promise<void> {
  await write(plan, await collect(plan, pod, host), host);
}

async function write(plan: ContentPlan, payload: Payload, host: VolumeHost): Promise<void> {
  await writePayload(plan.path, payload, { gid: plan.gid, now: host.clock.now() });
}

/** The files of all sources; of two files with one path the later source's counts. */
async function collect(plan: ContentPlan, pod: Pod, host: VolumeHost): Promise<Payload> {
  const results = await Promise.allSettled(plan.sources.map((source) => read(source, plan, pod, host)));
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [errorMessage(result.reason)] : []));
  if (failures.length > 0) throw new Error(aggregate(failures));
  return new Map(results.flatMap((result) => (result.status === 'fulfilled' ? result.value : [])));
}

async function read(
  source: ContentSource,
  plan: ContentPlan,
  pod: Pod,
  { objects, tokens }: VolumeHost,
): Promise<Files> {
  const { namespace } = pod.metadata;
  switch (source.kind) {
    case 'configMap':
    case 'secret': {
      const read: Promise<ConfigMap | Secret | undefined> =
        source.kind === 'configMap'
          ? objects.configMap(namespace, source.name)
          : objects.secret(namespace, source.name);
      return objectFiles(source, await read, plan.defaultMode);
    }
    case 'downwardAPI':
      return downwardFiles(source.items, pod, plan.allocatable, plan.defaultMode);
    case 'token': {
      const { audience, expirationSeconds } = source;
      const token = await tokens.token(pod, { expirationSeconds, ...(audience === undefined ? {} : { audience }) });
      return [ownedFile(source, token, plan, plan.defaultMode)];
    }
    case 'clusterTrustBundle': {
      if (objects.trustAnchors === undefined) {
        throw new Error('ClusterTrustBundle projection is not supported in static kubelet mode');
      }
      return [ownedFile(source, await objects.trustAnchors(source), plan, plan.defaultMode)];
    }
  }
}
