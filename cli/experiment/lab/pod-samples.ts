// What the kernel counts of the pods that are there, by their names, and of the agent's process: the cgroups to read are known from
// the pods that were observed so far.

import { cgroupPath, podName } from '../../../agent/model/cgroup-names.ts';
import { podQOSClass } from '../../../agent/model/pod-resources.ts';
import type { Pod } from '../../../client/types.ts';
import { readMounts } from '../../../lib/mounts.ts';
import type { RunningLab } from '../../lab/lab.ts';
import type { Observation } from '../observation.ts';
import type { ContainerWatch } from './containers.ts';
import { type Reading, Sampler } from './samples.ts';

export interface PodSamplesParts {
  readonly sampler: Sampler;
  readonly lab: RunningLab;
  readonly containers: ContainerWatch;
  /** Grows; its pods are taken from it. */
  readonly observations: readonly Observation[];
}

export class PodSamples {
  readonly #parts: PodSamplesParts;
  readonly #versions = new Map<string, Pod>();
  #read = 0;

  constructor(parts: PodSamplesParts) {
    this.#parts = parts;
  }

  /** `monotonicMs`: now; rates are since the call before. */
  read(monotonicMs: number): readonly Reading[] {
    const { sampler, lab, containers } = this.#parts;
    const layout = { root: lab.paths.cgroupRoot, driver: lab.state.cgroupDriver ?? 'cgroupfs' };
    const uids = new Set([...containers.containers.values()].map(({ podUid }) => podUid));
    const readings = [...this.#pods().values()].flatMap((pod) => {
      const { namespace, name, uid } = pod.metadata;
      if (!uids.has(uid)) return [];
      const cgroup = cgroupPath(layout, podName(layout, uid, podQOSClass(pod)));
      return sampler.readPod({ pod: `${namespace}/${name}`, cgroup }, monotonicMs);
    });
    const pid = lab.pid('agent');
    return pid === undefined ? readings : [...readings, ...sampler.readProcess('agent', pid, monotonicMs)];
  }

  /** As they are now, by uid. */
  #pods(): ReadonlyMap<string, Pod> {
    const { observations } = this.#parts;
    for (; this.#read < observations.length; this.#read++) {
      const observation = observations[this.#read];
      if (observation?.type !== 'object' || !isPod(observation.object)) continue;
      const pod = observation.object;
      if (observation.change === 'DELETED') this.#versions.delete(pod.metadata.uid);
      else this.#versions.set(pod.metadata.uid, pod);
    }
    return this.#versions;
  }
}

function isPod(object: object): object is Pod {
  return 'kind' in object && object.kind === 'Pod' && 'spec' in object;
}

/** For the cgroup version that is mounted. */
export async function newSampler(): Promise<Sampler> {
  const v2 = (await readMounts()).some((mount) => mount.path === '/sys/fs/cgroup' && mount.fsType === 'cgroup2');
  return new Sampler({ version: v2 ? 2 : 1, mountPoint: '/sys/fs/cgroup' });
}
