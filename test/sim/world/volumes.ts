// The volumes of a simulated node behind the agent's port: whether each pod's are mounted, and a line to them that may be
// bad.

import type { PodVolumes } from '../../../agent/ports/node.ts';
import type { PodRef, PodUID } from '../../../agent/ports/runtime.ts';
import type { Pod } from '../../../client/types.ts';
import type { Line } from './line.ts';

const DEADLINE_MS = 122_000;

export class SimVolumes implements PodVolumes {
  readonly mounted = new Set<PodUID>();
  readonly #line: Line;
  readonly #onUnmount: (uid: PodUID) => void;

  constructor(line: Line, onUnmount: (uid: PodUID) => void) {
    this.#line = line;
    this.#onUnmount = onUnmount;
  }

  mountAll(pod: Pod): Promise<void> {
    const { uid, name } = pod.metadata;
    return this.#line.perform('mountAll', name, DEADLINE_MS, () => void this.mounted.add(uid as PodUID));
  }

  containerMounts() {
    return this.#line.perform('containerMounts', '', DEADLINE_MS, () => ({ mounts: [], devices: [] }));
  }

  unmountAll(pod: PodRef): Promise<void> {
    return this.#line.perform('unmountAll', pod.uid, DEADLINE_MS, () => {
      this.#onUnmount(pod.uid);
      this.mounted.delete(pod.uid);
    });
  }

  listPods(): Promise<readonly PodUID[]> {
    return this.#line.perform('listPods', '', DEADLINE_MS, () => [...this.mounted]);
  }
}
