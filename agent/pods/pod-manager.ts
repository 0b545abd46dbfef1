// Merges the pod sources and owns one PodWorker per pod. Never decides what happens to a pod: its worker does.

import type { Pod, PodStatus } from '../../client/types.ts';
import type { ContainerId, PodSnapshot, PodUID } from '../ports/runtime.ts';
import type { PodsAgent, PodsAgentOptions } from './options.ts';

export class PodManager implements PodsAgent {
  readonly #options: PodsAgentOptions;
  constructor(options: PodsAgentOptions) {
    this.#options = options;
  }
  start(): void {
    for (const source of this.#options.sources) source.start(() => undefined);
  }
  stop(): void {
    for (const source of this.#options.sources) source.stop();
  }
  getPod(_namespace: string, _name: string): Pod | undefined {
    return undefined;
  }
  listPods(): readonly Pod[] {
    return [];
  }
  statusOf(_uid: PodUID): PodStatus | undefined {
    return undefined;
  }
  snapshotOf(_uid: PodUID): PodSnapshot | undefined {
    return undefined;
  }
  containerIdFor(_namespace: string, _name: string, _container: string): ContainerId | undefined {
    return undefined;
  }
  wake(_uid: PodUID, _cause: string): void {}
}
