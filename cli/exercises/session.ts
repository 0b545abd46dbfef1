// One exercise in one lab: where its files are, and the connections that its checks use. Changes nothing.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createCriClient } from '../../agent/runtime/grpc-cri-client.ts';
import { ApiClient } from '../../client/api.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import type { Exercise, Ground, Machine } from '../../labs/exercises/model.ts';
import { systemClock } from '../../lib/clock.ts';
import { Tracer } from '../../lib/trace.ts';
import type { LabPaths } from '../lab/paths.ts';
import { labEnvironment } from '../lab/processes.ts';
import { type LabState, runtimeSocket } from '../lab/state.ts';

/** Texts, manifests and solutions. */
export const EXERCISES_SOURCE = fileURLToPath(new URL('../../labs/exercises/', import.meta.url));

/** README.md, solution.sh and manifests of an exercise. */
export function sourceOf(exercise: Pick<Exercise, 'name'>): string {
  return join(EXERCISES_SOURCE, exercise.name);
}

/** `state`: of the lab, undefined where it is lost. */
export function groundOf(
  paths: LabPaths,
  name: string,
  state: Pick<LabState, 'cgroupDriver' | 'runtime'> = {},
): Ground {
  return {
    root: paths.root,
    hash: paths.hash,
    directory: join(paths.exercisesDir, name),
    runDir: paths.runDir,
    runtimeSocket: runtimeSocket(paths, state),
    kubeletDir: paths.kubeletDir,
    kubeletConfig: paths.kubeletConfig,
    podLogsDir: paths.podLogsDir,
    cgroupRoot: paths.cgroupRoot,
    cgroupDriver: state.cgroupDriver ?? 'cgroupfs',
    cniConfDir: paths.cni.confDir,
    cniBinDir: paths.cni.binDir,
    environment: labEnvironment(paths.root),
  };
}

/** The namespace of an exercise. Users' own are not called so. */
export function namespaceOf(name: string): string {
  return `exercise-${name}`;
}

export interface Session {
  readonly exercise: Exercise;
  readonly paths: LabPaths;
  readonly machine: Machine;
  close(): void;
}

export async function openSession(exercise: Exercise, paths: LabPaths, state: LabState): Promise<Session> {
  const access = await loadKubeconfig(paths.kubeconfig);
  const client = new ApiClient(access, { tracer: new Tracer(), clock: systemClock, userAgent: 'nodelet-lab' });
  const ground = groundOf(paths, exercise.name, state);
  const endpoint = `unix://${ground.runtimeSocket}`;
  const cri = createCriClient(endpoint, endpoint, new Tracer());
  return {
    exercise,
    paths,
    machine: { ...ground, client, cri, namespace: namespaceOf(exercise.name), nodeName: state.nodeName },
    close: () => {
      client.close();
      cri.close();
    },
  };
}
