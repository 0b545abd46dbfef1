// The lab as the demo needs it. Types only.

import type { NodeActions } from '../lab/node/actions.ts';
import type { LabPaths } from '../lab/paths.ts';
import type { LabState } from '../lab/state.ts';
import type { Checks } from './checks.ts';

export interface DemoLab {
  readonly paths: LabPaths;
  readonly state: Pick<LabState, 'runtime'>;
  /** Of a lab with several nodes. */
  readonly nodes?: NodeActions | undefined;
  /** Returns what could not be cleaned. */
  stop(): Promise<readonly string[]>;
}

/** What is done with a lab: prints what it does, and checks what it claims. */
export type Show = (lab: DemoLab, checks: Checks, say: (line: string) => void) => Promise<void>;
