// The cgroup driver: makes and removes cgroups by path, in the kernel's files and, with driver systemd, as slices too. Knows nothing of
// pods or QoS classes.

import type { Clock } from '../../lib/clock.ts';
import { poll } from '../../lib/retry.ts';
import type { CgroupHierarchy } from './cgroup-hierarchy.ts';
import type { CgroupLimits } from './cgroup-limits.ts';
import type { SystemdSlices } from './systemd-slices.ts';

/** How long killed processes may take to leave their cgroup, and the longest wait between checks. ms. */
const REMOVE_LIMIT_MS = 10_000;
const REMOVE_STEP_MS = 50;

export class CgroupDriver {
  readonly #hierarchy: CgroupHierarchy;
  readonly #slices: SystemdSlices | undefined;
  readonly #clock: Clock;

  constructor(hierarchy: CgroupHierarchy, slices: SystemdSlices | undefined, clock: Clock) {
    this.#hierarchy = hierarchy;
    this.#slices = slices;
    this.#clock = clock;
  }

  /** systemd first: it removes a directory that is no unit of its own as a leftover. */
  async ensure(path: string, limits: CgroupLimits): Promise<void> {
    await this.#slices?.ensure(path, limits);
    // Written here as well: systemd supports fewer controllers than pods need, and applies limits after it has replied.
    this.#hierarchy.ensure(path, limits);
  }

  /** With all below it and their processes, which are killed. Rejects when they do not end. */
  async remove(path: string): Promise<void> {
    // Mostly nothing is left in it, and a look for processes costs more. A unit is for systemd to end.
    if (this.#slices === undefined && this.#hierarchy.remove(path)) return;
    this.#hierarchy.kill(path);
    await this.#stopSlices(path);
    // A killed process leaves its cgroup when the kernel has torn it down: mostly at the first check or the second.
    const isRemoved = (): boolean => {
      this.#hierarchy.kill(path);
      return this.#hierarchy.remove(path);
    };
    const limits = { clock: this.#clock, firstMs: 1, everyMs: REMOVE_STEP_MS, limitMs: REMOVE_LIMIT_MS };
    if (await poll(isRemoved, limits)) return;
    const pids = this.#hierarchy.processes(path);
    throw new Error(`cgroup ${path} is still in use after ${REMOVE_LIMIT_MS} ms by pids ${pids.join(' ')}`);
  }

  /** One without children or processes; does nothing where it has some. */
  async removeEmpty(path: string): Promise<void> {
    if (this.#hierarchy.children(path).length > 0) return;
    if (this.#hierarchy.exists(path)) await this.#slices?.stop(path);
    this.#hierarchy.remove(path);
  }

  /** Ends the units of a tree, those below first. A directory is a slice's, a scope's of the runtime, or without a unit. */
  async #stopSlices(path: string): Promise<void> {
    if (this.#slices === undefined) return;
    const names = this.#hierarchy.children(path).filter((name) => name.endsWith('.slice'));
    for (const name of names) await this.#stopSlices(`${path}/${name}`);
    await this.#slices.stop(path);
  }
}
