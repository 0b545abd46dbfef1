// One event of a stream, whichever stream it came by. Types only.

import type { EpochMs } from '../../../lib/clock.ts';

export interface RuntimeEvent {
  readonly kind: 'started' | 'exited' | 'removed' | 'oom';
  /** A container's or a sandbox's id; the stream may not know which. */
  readonly id: string;
  /** Epoch ms, by the runtime's clock. */
  readonly at: EpochMs;
  /** Of an exit, where the stream has it. */
  readonly exitCode?: number;
}
