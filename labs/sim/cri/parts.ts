// What a simulated container runtime is made of. Types only.

import type { Clock } from '../../../lib/clock.ts';
import type { Dice } from '../dice.ts';
import type { SimDiskSpace } from '../disk-space.ts';
import type { Faults } from '../faults.ts';
import type { SimImages } from '../images.ts';
import type { Journal } from '../journal.ts';
import type { MeantContainers } from '../meant.ts';
import type { SimMemory } from '../memory.ts';
import type { ProcessTable } from '../processes.ts';
import type { SimShim } from '../shim.ts';
import type { Weather } from '../weather.ts';
import type { ContainerWitness, Prerequisites, RuntimeRules, RuntimeWitness } from '../witness.ts';
import type { RuntimeKind } from './kinds.ts';

export interface SimCriParts {
  readonly kind: RuntimeKind;
  readonly clock: Clock;
  readonly dice: Dice;
  readonly journal: Journal;
  readonly rules: RuntimeRules;
  readonly network: SimShim;
  readonly processes: ProcessTable;
  readonly prerequisites: Prerequisites;
  readonly meant: MeantContainers;
  readonly timing: ContainerWitness;
  readonly nodeRules: RuntimeWitness;
  readonly weather: Weather;
  readonly memory: SimMemory;
  readonly faults: Faults;
  /** False: containers write no termination message but their own. */
  readonly lastWords?: boolean;
  readonly images?: SimImages;
  /** What containers write is counted. */
  readonly space?: SimDiskSpace;
}
