// What all random events choose from: the pods, processes and sandboxes that there are at the moment.

import { isMirrorPod } from '../../../agent/model/static-pods.ts';
import type { Pod } from '../../../client/types.ts';
import type { Instance, Sandbox } from '../../../labs/sim/cri/state.ts';
import type { Dice } from '../../../labs/sim/dice.ts';

import type { World } from './world.ts';

/** Something that may happen. What it was, in words; undefined when there was nothing that it could happen to. */
export type Happening = () => string | undefined;

export class Chooser {
  readonly world: World;
  readonly dice: Dice;

  constructor(world: World, dice: Dice) {
    this.world = world;
    this.dice = dice;
  }

  pod(which: (pod: Pod) => boolean = () => true): Pod | undefined {
    return this.dice.pick([...this.world.api.pods.values()].filter((pod) => !isMirrorPod(pod) && which(pod)));
  }

  /** One that is not deleted. */
  livePod(): Pod | undefined {
    return this.pod(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  runningInstance(): Instance | undefined {
    return this.dice.pick([...this.world.runtime.state.instances()].filter(({ process }) => process !== undefined));
  }

  liveSandbox(): Sandbox | undefined {
    const sandboxes = [...this.world.runtime.state.sandboxes()];
    return this.dice.pick(sandboxes.filter(({ state }) => state === 'ready'));
  }
}
