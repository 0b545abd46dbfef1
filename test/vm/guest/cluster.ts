// A lab in the virtual machine as the checks use it: pods made in few words, waited for, and found among the cgroups.

import { type CgroupDriver, cgroupParent } from '../../../agent/model/cgroup-names.ts';
import type { RunningLab } from '../../../cli/lab/lab.ts';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Container, ContainerStatus, Pod, PodSpec } from '../../../client/types.ts';
import { cgroupChildren, eventually } from './machine-state.ts';

export const NAMESPACE = 'default';
/** Runs until TERM. */
export const FOREVER = 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done';

export class Cluster {
  readonly lab: RunningLab;
  readonly driver: CgroupDriver;
  /** What its checks' names begin with. */
  readonly label: string;

  constructor(lab: RunningLab, driver: CgroupDriver, label: string = driver) {
    this.lab = lab;
    this.driver = driver;
    this.label = label;
  }

  get layout() {
    return { root: this.lab.paths.cgroupRoot, driver: this.driver };
  }

  path(name: string): string {
    return resourcePath('v1', 'pods', { namespace: NAMESPACE, name });
  }

  create(name: string, script: string, resources?: Container['resources'], spec: Partial<PodSpec> = {}): Promise<Pod> {
    const container = { name: 'main', image: 'busybox:stable', command: ['sh', '-c', script] };
    return this.lab.client.create<Pod>(resourcePath('v1', 'pods', { namespace: NAMESPACE }), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: NAMESPACE },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [resources === undefined ? container : { ...container, resources }],
        ...spec,
      },
    } as Pod);
  }

  when(name: string, what: string, accept: (status: ContainerStatus, pod: Pod) => boolean): Promise<Pod> {
    return eventually(`pod ${name} to be ${what}`, async () => {
      const pod = await this.lab.client.get<Pod>(this.path(name));
      const status = pod.status?.containerStatuses?.[0];
      return status !== undefined && accept(status, pod) ? pod : undefined;
    });
  }

  whenPod(name: string, what: string, accept: (pod: Pod) => boolean): Promise<Pod> {
    return eventually(`pod ${name} to be ${what}`, async () => {
      const pod = await this.lab.client.get<Pod>(this.path(name));
      return accept(pod) ? pod : undefined;
    });
  }

  running(name: string): Promise<Pod> {
    return this.when(name, 'running', (status) => status.state?.running !== undefined);
  }

  async delete(name: string): Promise<void> {
    await this.lab.client.delete(this.path(name));
    await eventually(`pod ${name} to be gone`, async () => {
      try {
        await this.lab.client.get<Pod>(this.path(name));
        return undefined;
      } catch (error) {
        if (isNotFound(error)) return true;
        throw error;
      }
    });
  }

  /** The pod's cgroup, and its only container's below it, by the names that the runtime gives them. */
  cgroups(pod: Pod): { readonly pod: string; readonly container: string } {
    const parent = cgroupParent(this.layout, pod);
    const id = pod.status?.containerStatuses?.[0]?.containerID?.replace(/^.*:\/\//, '') ?? '';
    const name = cgroupChildren(parent).find((child) => id !== '' && child.includes(id));
    if (name === undefined) throw new Error(`container ${id} is not in ${parent}: ${cgroupChildren(parent).join(' ')}`);
    return { pod: parent, container: `${parent}/${name}` };
  }
}
