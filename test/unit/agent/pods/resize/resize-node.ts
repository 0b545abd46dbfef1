// A simulated node on a virtual clock whose agent keeps checkpoints of resizes, for the tests of pods that are resized in place.

import type { Container, Pod } from '../../../../../client/types.ts';
import { FakeNode, makePod } from '../../../../sim/fakes.ts';

/** Of one test. */
export class ResizeNode {
  /** The checkpoints on disk. */
  files: { allocated: string | undefined; actuated: string | undefined } = {
    allocated: undefined,
    actuated: undefined,
  };
  /** Every text that was written, in order. */
  readonly written: { readonly file: string; readonly text: string }[] = [];
  /** Writes of checkpoints fail. */
  full = false;
  /** Whether the server counts generations of pods, as it does since 1.33. */
  counting = true;
  readonly node: FakeNode;

  constructor() {
    this.node = new FakeNode(() => ({
      allocations: {
        initial: { ...this.files },
        save: (file, text) => {
          if (this.full) return Promise.reject(Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }));
          this.files[file] = text;
          this.written.push({ file, text });
          return Promise.resolve();
        },
      },
    }));
  }

  async running(pod: Pod): Promise<void> {
    this.node.api.put(pod);
    await this.node.clock.until(() => this.node.api.status(pod.metadata.name).phase === 'Running');
  }

  /** What a PATCH of pods/resize leaves at the server. */
  resize(name: string, resources: NonNullable<Container['resources']>, more: Partial<Container> = {}): void {
    const pod = [...this.node.api.pods.values()].find(({ metadata }) => metadata.name === name);
    if (pod === undefined) throw new Error(`no pod ${name}`);
    const [first, ...rest] = pod.spec.containers;
    if (first === undefined) throw new Error(`pod ${name} has no container`);
    this.node.api.put({
      ...pod,
      metadata: { ...pod.metadata, generation: (pod.metadata.generation ?? 0) + (this.counting ? 1 : 0) },
      spec: { ...pod.spec, containers: [{ ...first, resources, ...more }, ...rest] },
    });
  }

  web(name: string) {
    return this.node.api.status(name).containerStatuses?.[0];
  }

  condition(name: string, type: string) {
    return this.node.api.condition(name, type);
  }

  /** What was reported to the runtime of the pod's cgroup, as the requests and limits of its container. */
  sandboxUpdates() {
    return this.node.runtime.calls
      .filter(({ call }) => call === 'updatePodSandboxResources')
      .map(({ subject, detail }) => [subject, (detail as Pod['spec']).containers[0]?.resources]);
  }

  lastUpdate(name = 'web') {
    return [...this.node.runtime.containers.values()].find((one) => one.name === name)?.resources;
  }
}

export function burstable(name: string, cpu: string, more: Partial<Container> = {}, memory?: string): Pod {
  const pod = makePod(name, {
    containers: [
      {
        name: 'web',
        image: 'nginx:stable',
        imagePullPolicy: 'IfNotPresent',
        resources: { requests: { cpu }, limits: { cpu: '2', ...(memory === undefined ? {} : { memory }) } },
        ...more,
      },
    ],
  });
  return { ...pod, status: { phase: 'Pending', qosClass: 'Burstable' } };
}
