// What a simulated machine reports to those who check it or write down what happened. Types only.

import type { ContainerSpec, PodUID } from '../../agent/ports/runtime.ts';
import type { Pod } from '../../client/types.ts';
import type { Instance, RuledInstance } from './cri/state.ts';

/** Where a broken rule is noted. */
export interface Breakable {
  break(what: string): void;
}

/** What a pod must have before a container of it may start. */
export interface Prerequisites {
  hasVolumes(pod: Pod): boolean;
  hasCgroup(uid: PodUID): boolean;
}

/** What is checked in the moment that the runtime does it. */
export interface RuntimeRules extends Breakable {
  mayRunAgain(uid: PodUID, container: string): void;
  containerCreated(instance: Instance): void;
  containerStarts(
    spec: ContainerSpec,
    sandboxId: string,
    instances: readonly RuledInstance[],
    has: Prerequisites,
  ): void;
}

/** The life of containers, and what the agent has requested of them. */
export interface ContainerWitness {
  stopRequested(id: string): void;
  execRequested(id: string, command: readonly string[]): void;
  started(instance: Instance): void;
  ended(instance: Instance): void;
  /** Its grace period is over. */
  killed(instance: Instance): void;
  killedWithSandbox(instance: Instance): void;
  created?(instance: Instance): void;
  removed?(instance: Instance): void;
}

export interface RuntimeWitness {
  runtimeGoes(): void;
  runtimeIsBack(): void;
}
