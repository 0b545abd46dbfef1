// Whether this node is shutting down. Made before the pods agent, which reads it at admission, and before the shutdown
// manager, which alone updates it.

import { Signal, type SignalSource } from '../../lib/signal.ts';

const REFUSAL = { reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' };

export class NodeShutdownState {
  #shuttingDown = false;
  readonly #changed = new Signal();

  get changed(): SignalSource<void> {
    return this.#changed;
  }

  get shuttingDown(): boolean {
    return this.#shuttingDown;
  }

  /** The node takes nothing more once it is shutting down. */
  readonly admit = (): typeof REFUSAL | undefined => (this.#shuttingDown ? REFUSAL : undefined);

  /** Why the node is not Ready, as the kubelet words it. */
  notReadyReason(): string | undefined {
    return this.#shuttingDown ? 'node is shutting down' : undefined;
  }

  update(shuttingDown: boolean): void {
    if (shuttingDown === this.#shuttingDown) return;
    this.#shuttingDown = shuttingDown;
    this.#changed.emit();
  }
}
