// Volumes: the mounter, the directories that mounts go below, storage behind claims and CSI, and the volume manager over
// them. Part of the composition: it decides nothing.

import { mkdir } from 'node:fs/promises';
import { matchesNodeSelector } from '../../client/selectors.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Mounter } from '../ports/mounter.ts';
import { hasLogs } from '../runtime/logs/sweep.ts';
import type { CriRuntime } from '../runtime/types.ts';
import { imageVolumeProblem } from '../volumes/image.ts';
import { createLinuxMounter } from '../volumes/linux-mounter.ts';
import { createPodVolumes } from '../volumes/pod-volumes.ts';
import { ensureSharedRoot } from '../volumes/shared-root.ts';
import { podsDir } from '../volumes/volume-type.ts';
import type { AgentBase } from './base.ts';
import type { Cluster } from './cluster.ts';
import type { Machine, MachineCgroups } from './machine.ts';
import { createStorage, type Storage } from './storage.ts';

export interface Volumes {
  readonly manager: ReturnType<typeof createPodVolumes>;
  readonly storage: Storage;
}

/** Makes the directories of pods and logs; rejects with what the file system has against it. */
export async function createVolumes(
  base: AgentBase,
  parts: {
    readonly machine: Machine;
    readonly cgroups: MachineCgroups;
    readonly cluster: Cluster;
    readonly runtime: CriRuntime;
  },
): Promise<Volumes> {
  const { options, clock, tracer, log, exec } = base;
  const { machine, cluster, runtime } = parts;
  const { rootDir, nodeName } = options;
  const { client, objects, recorder } = cluster;
  const mounter = createLinuxMounter({ tracer, exec });
  await makePodDirectories(base, parts.cgroups.settings.podLogsDir, mounter);
  const storage = createStorage({
    rootDir,
    nodeName,
    ...(client === undefined ? {} : { client }),
    objects,
    recorder,
    mounter,
    nodeMatches: (selector) => matchesNodeSelector(selector, cluster.node()),
    clock,
    tracer,
    log,
  });
  const manager = createPodVolumes({
    rootDir,
    mounter,
    objects,
    tracer,
    clock,
    recorder,
    ...(storage.persistent === undefined ? {} : { persistent: storage.persistent }),
    allocatable: () => machine.allocatable,
    hasLogs: (pod) => hasLogs(parts.cgroups.settings.podLogsDir, pod),
    ...(cluster.followed === undefined ? {} : { followed: cluster.followed }),
    recursiveReadOnlyMounts: async () =>
      (await runtime.status()).handlers.some(({ name, recursiveReadOnlyMounts: able }) => name === '' && able),
    imageVolumeProblem: async () => imageVolumeProblem(await runtime.version()),
  });
  return { manager, storage };
}

async function makePodDirectories(base: AgentBase, podLogsDir: string, mounter: Mounter): Promise<void> {
  const { options, log } = base;
  await ensureSharedRoot(options.rootDir, mounter).catch((error: unknown) =>
    log('warn', `mountPropagation will not work: ${errorMessage(error)}`),
  );
  const pods = podsDir(options.rootDir);
  await mkdir(pods, { recursive: true, mode: 0o750 });
  await mkdir(podLogsDir, { recursive: true, mode: 0o755 });
}
