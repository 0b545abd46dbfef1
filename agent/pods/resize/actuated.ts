// The actuated resources of one pod: those that each instance was created or last updated with, as far as this agent knows
// them. A call whose response is lost leaves more than one possibility, and each that differs from the allocated resources has
// to be actuated. It decides nothing about pods.

import { getOwn } from '../../../lib/own-property.ts';
import type { ContainerId, ContainerSnapshot } from '../../ports/runtime.ts';
import { type PodAllocation, type Resources, sameResources } from './allocation.ts';
import type { ActuatedResources } from './checkpoint.ts';

/** A start whose instance is not known by its id. */
interface StartingContainer {
  readonly resources: Resources;
  /** Its start is under way; otherwise the start failed, and may have left an instance. */
  readonly underWay: boolean;
  /** The other resources of failed starts before it, one of which may have created the instance. */
  readonly earlier: readonly Resources[];
}

/** Further resources that an instance may have. */
interface Uncertain {
  readonly id: string;
  readonly resources: readonly Resources[];
}

function without(all: readonly Resources[], one: Resources): readonly Resources[] {
  return all.filter((each) => !sameResources(each, one));
}

/** What has to be known of each instance, newest first. */
type ObservedInstance = Pick<ContainerSnapshot, 'id' | 'name' | 'state'>;

export class ActuatedPod {
  /** By container name: the newest instance, and what it runs with. */
  readonly #actual: Map<string, ActuatedResources>;
  /** By container name: of the newest instance, where a call may have been executed although it failed. */
  readonly #uncertain = new Map<string, Uncertain>();
  /** By container name. */
  readonly #starting = new Map<string, StartingContainer>();

  /** `saved`: what the checkpoint of an earlier agent has of the instances. */
  constructor(saved: Readonly<Record<string, ActuatedResources>> = {}) {
    this.#actual = new Map(Object.entries(saved));
  }

  /**
   * The instances that there are. One that is observed for the first time has the resources of its start; where no start of
   * this agent created it, the saved or the allocated ones.
   */
  observed(instances: readonly ObservedInstance[], allocated: PodAllocation): void {
    for (const [name, resources] of Object.entries(allocated)) {
      const newest = instances.find((container) => container.name === name);
      if (newest === undefined || newest.state === 'exited') this.#actual.delete(name);
      else if (this.#actual.get(name)?.id !== newest.id) this.#appeared(name, newest.id, resources);
    }
  }

  #appeared(name: string, id: ContainerId, allocated: Resources): void {
    const known = this.#actual.get(name);
    const unnamed = known !== undefined && known.id === undefined ? known.resources : undefined;
    const start = this.#starting.get(name);
    this.#starting.delete(name);
    this.#actual.set(name, { id, resources: start?.resources ?? unnamed ?? allocated });
    if (start !== undefined && start.earlier.length > 0) this.#uncertain.set(name, { id, resources: start.earlier });
  }

  /** From now on, and until its start has ended, an instance may be created with these resources. */
  starting(name: string, resources: Resources): void {
    const before = this.#starting.get(name);
    const earlier = before === undefined ? [] : without([before.resources, ...before.earlier], resources);
    this.#starting.set(name, { resources, underWay: true, earlier });
  }

  /** The start failed. `attempted`: CreateContainer was called and may have created an instance: its response may have been lost. */
  startFailed(name: string, attempted: boolean): void {
    const start = this.#starting.get(name);
    if (start === undefined) return;
    const [last, ...earlier] = start.earlier;
    if (attempted) this.#starting.set(name, { ...start, underWay: false });
    else if (last === undefined) this.#starting.delete(name);
    else this.#starting.set(name, { resources: last, underWay: false, earlier });
  }

  /** An instance was created with these resources, and started. Resources that are recorded for it already stay. */
  created(name: string, id: ContainerId, resources: Resources): void {
    this.#starting.delete(name);
    if (this.#actual.get(name)?.id !== id) this.#actual.set(name, { id, resources });
  }

  /** UpdateContainerResources is about to be called; until it returns, the instance may have the old or the new resources. */
  updating(name: string, id: ContainerId, resources: Resources): void {
    const before = without(this.uncertain(name, id), resources);
    this.#uncertain.set(name, { id, resources: [resources, ...before] });
  }

  /** UpdateContainerResources has set every figure. */
  updated(name: string, id: ContainerId, resources: Resources): void {
    if (this.#actual.get(name)?.id !== id) return;
    this.#actual.set(name, { id, resources });
    this.#uncertain.delete(name);
  }

  /** Further resources that the instance may have. */
  uncertain(name: string, id: ContainerId): readonly Resources[] {
    const uncertain = this.#uncertain.get(name);
    return uncertain?.id === id ? uncertain.resources : [];
  }

  /** Instances whose actuated resources differ, or may differ, from the allocated ones, with the former. */
  differing(allocated: PodAllocation): [string, ActuatedResources][] {
    return [...this.#actual].flatMap(([name, { id, resources }]): [string, ActuatedResources][] => {
      const wanted = getOwn(allocated, name) ?? {};
      const uncertain = this.#uncertain.get(name);
      const possible = [resources, ...(uncertain !== undefined && uncertain.id === id ? uncertain.resources : [])];
      const other = possible.find((candidate) => !sameResources(candidate, wanted));
      return other === undefined ? [] : [[name, { id, resources: other }]];
    });
  }

  /** Whether any container runs, or is being started. */
  get hasInstances(): boolean {
    return this.#actual.size > 0 || [...this.#starting.values()].some(({ underWay }) => underWay);
  }

  /** Starts under way whose instances will not have the allocated resources. */
  outdatedStarts(allocated: PodAllocation): [string, { readonly resources: Resources }][] {
    return [...this.#starting].filter(
      ([name, { resources, underWay }]) => underWay && !sameResources(resources, getOwn(allocated, name) ?? {}),
    );
  }

  /**
   * The actuated resources of each container for the checkpoint; of one that does not run, the allocated ones. Where several
   * are possible, others than the allocated ones: the next agent then actuates these.
   */
  saved(allocated: PodAllocation): PodAllocation {
    const differing = new Map(this.differing(allocated));
    return Object.fromEntries(
      Object.entries(allocated).map(([name, resources]) => {
        const start = this.#starting.get(name);
        const possible = start === undefined ? [] : [start.resources, ...start.earlier];
        const other = possible.find((candidate) => !sameResources(candidate, resources)) ?? possible[0];
        return [name, other ?? (differing.get(name) ?? this.#actual.get(name))?.resources ?? resources];
      }),
    );
  }
}
