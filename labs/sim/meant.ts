// What the agent meant each container to be, as it handed it to its runtime adapter: CRI's config does not tell the pod's
// policies, by which the rules decide.

import type { ContainerRuntime, ContainerSpec } from '../../agent/ports/runtime.ts';

export class MeantContainers {
  readonly #specs = new Map<string, ContainerSpec>();

  /** The adapter, with what it is to create written down. `onCreate`: called before each attempt, whatever becomes of it. */
  witness<R extends ContainerRuntime>(runtime: R, onCreate: (spec: ContainerSpec) => void): R {
    const createContainer: ContainerRuntime['createContainer'] = (spec) => {
      onCreate(spec);
      this.#specs.set(key(spec.pod.metadata.uid, spec.container.name, spec.hash), spec);
      return runtime.createContainer(spec);
    };
    return { ...runtime, createContainer };
  }

  /** Throws when no pod has such a container. */
  find(uid: string, name: string, hash: string): ContainerSpec {
    const spec = this.#specs.get(key(uid, name, hash));
    if (spec === undefined) throw new Error(`no version of pod ${uid} has a container ${name} with hash ${hash}`);
    return spec;
  }
}

function key(uid: string, name: string, hash: string): string {
  return `${uid}/${name}/${hash}`;
}
