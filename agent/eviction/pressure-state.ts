// The node's pressure, as the last round of the eviction loop found it. Made before the pods agent, which reads it at
// admission, and before the eviction manager, which alone updates it. decide.ts decides.

import type { Pod } from '../../client/types.ts';
import { Signal, type SignalSource } from '../../lib/signal.ts';
import { admitUnderPressure } from './admit.ts';
import { NO_PRESSURE_STATE, type PressureState } from './decide.ts';

/** What is scarce on the node. */
export interface NodePressure {
  readonly memory: boolean;
  readonly disk: boolean;
  readonly pid: boolean;
}

export class NodePressureState {
  #state: PressureState = NO_PRESSURE_STATE;
  readonly #changed = new Signal();

  /** The node's conditions are not what they were. */
  get changed(): SignalSource<void> {
    return this.#changed;
  }

  get current(): PressureState {
    return this.#state;
  }

  /** What the node reports as its pressure conditions. */
  conditions(): NodePressure {
    const { conditions } = this.#state;
    return {
      memory: conditions.includes('MemoryPressure'),
      disk: conditions.includes('DiskPressure'),
      pid: conditions.includes('PIDPressure'),
    };
  }

  /** Refuses pods that would make it worse. */
  readonly admit = (pod: Pod): { readonly reason: string; readonly message: string } | undefined =>
    admitUnderPressure(pod, this.#state.conditions);

  update(state: PressureState): void {
    const before = this.#state;
    this.#state = state;
    if (before.conditions.join() !== state.conditions.join()) this.#changed.emit();
  }
}
