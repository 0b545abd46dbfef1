// What a simulated container runtime holds: sandboxes and containers by pod, newest first, and the names they have taken.
// Of each container both the truth and what CRI shows of it, which comes later. It only keeps; runtime.ts acts.

import type { RuntimeImage } from '../../../agent/ports/runtime.ts';
import { type ContainerSpec, type PodRef, type PodUID, RuntimeError } from '../../../agent/ports/runtime.ts';
import { type EpochMs, ZERO_TIME } from '../../../lib/clock.ts';
import type { ContainerConfig__Output } from '../../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { LinuxContainerResources__Output } from '../../../proto/gen/runtime/v1/LinuxContainerResources.ts';
import type { PodSandboxConfig__Output } from '../../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { Claim } from '../line.ts';
import type { Process } from '../processes.ts';

export interface Sandbox {
  readonly id: string;
  readonly pod: PodRef;
  readonly attempt: number;
  readonly config: PodSandboxConfig__Output;
  readonly handler: string;
  readonly hostNetwork: boolean;
  /** Epoch ms. */
  readonly createdAt: EpochMs;
  state: 'ready' | 'notReady';
  /** Its namespace is there; CNI has to be called with it. '' for one on the host's network, and once it is gone. */
  netns: string;
  ips: readonly string[];
}

export interface ContainerEnd {
  readonly exitCode: number;
  /** The runtime's word for it; it may learn of a kill for want of memory later. */
  reason: string;
  readonly message: string;
  /** Epoch ms. */
  readonly at: EpochMs;
}

export interface Instance {
  readonly id: string;
  readonly sandboxId: string;
  readonly pod: PodRef;
  readonly name: string;
  readonly restartCount: number;
  readonly config: ContainerConfig__Output;
  /** What the agent meant it to be. */
  readonly spec: ContainerSpec;
  readonly image: RuntimeImage;
  /** Where its log is; the runtime writes it. */
  readonly logPath: string;
  readonly createdAt: EpochMs;
  resources: LinuxContainerResources__Output | undefined;
  /** Epoch ms; 0 while it has not begun. */
  startedAt: EpochMs;
  /** The truth: it runs. */
  process: Process | undefined;
  /** The truth: how it ended. */
  end: ContainerEnd | undefined;
  /** What CRI shows. */
  shown: 'created' | 'running' | 'exited' | 'unknown';
  /** A start is under way: it can be neither stopped nor removed. */
  starting: boolean;
  /** Its removal was requested before it was started: one that starts in between is killed by it. */
  removedUnstarted: boolean;
  /** Resolves when CRI shows that it has ended. */
  readonly shownEnd: PromiseWithResolvers<void>;
}

type NewInstance = Pick<
  Instance,
  'id' | 'sandboxId' | 'pod' | 'name' | 'restartCount' | 'config' | 'spec' | 'image' | 'logPath' | 'createdAt'
>;

/** Created, and not started. */
export function newInstance(of: NewInstance): Instance {
  return {
    ...of,
    resources: of.config.linux?.resources ?? undefined,
    startedAt: ZERO_TIME,
    process: undefined,
    end: undefined,
    shown: 'created',
    starting: false,
    removedUnstarted: false,
    shownEnd: Promise.withResolvers<void>(),
  };
}

/** One instance of a container, as rules see it. */
export interface RuledInstance {
  readonly name: string;
  readonly sandboxId: string;
  /** Its process was started at some time. */
  readonly begun: boolean;
  /** Its process has not ended. */
  readonly alive: boolean;
  readonly exitCode: number;
}

/** What the runtime has of one pod, newest first. */
export interface PodRecord {
  readonly ref: PodRef;
  readonly sandboxes: Sandbox[];
  readonly instances: Instance[];
}

export class RuntimeState {
  readonly pods = new Map<PodUID, PodRecord>();
  readonly #sandboxes = new Map<string, Sandbox>();
  readonly #instances = new Map<string, Instance>();
  readonly #names = new Set<string>();

  instances(): Iterable<Instance> {
    return this.#instances.values();
  }

  sandboxes(): Iterable<Sandbox> {
    return this.#sandboxes.values();
  }

  sandbox(id: string): Sandbox | undefined {
    return this.#sandboxes.get(id);
  }

  instance(id: string): Instance | undefined {
    return this.#instances.get(id);
  }

  inSandbox(id: string): Instance[] {
    return [...this.#instances.values()].filter(({ sandboxId }) => sandboxId === id);
  }

  /** Who answers at an address and port: the one container that says it listens there. */
  listener(host: string, port: number): Instance | undefined {
    for (const instance of this.instances()) {
      if (instance.process === undefined) continue;
      if (this.sandbox(instance.sandboxId)?.ips.includes(host) !== true) continue;
      if (instance.spec.container.ports?.some(({ containerPort }) => containerPort === port)) return instance;
    }
    return undefined;
  }

  #record(ref: PodRef): PodRecord {
    let record = this.pods.get(ref.uid);
    if (record === undefined) {
      record = { ref, sandboxes: [], instances: [] };
      this.pods.set(ref.uid, record);
    }
    return record;
  }

  addSandbox(sandbox: Sandbox): void {
    const { sandboxes } = this.#record(sandbox.pod);
    sandboxes.unshift(sandbox);
    sandboxes.sort((a, b) => b.attempt - a.attempt);
    this.#sandboxes.set(sandbox.id, sandbox);
  }

  addInstance(instance: Instance): void {
    const { instances } = this.#record(instance.pod);
    instances.unshift(instance);
    instances.sort((a, b) => b.restartCount - a.restartCount);
    this.#instances.set(instance.id, instance);
  }

  dropSandbox(sandbox: Sandbox): void {
    const record = this.#record(sandbox.pod);
    record.sandboxes.splice(record.sandboxes.indexOf(sandbox), 1);
    this.#sandboxes.delete(sandbox.id);
    this.free(sandboxName(sandbox.pod.uid, sandbox.attempt));
    this.#tidy(record);
  }

  dropInstance(instance: Instance): void {
    const record = this.#record(instance.pod);
    record.instances.splice(record.instances.indexOf(instance), 1);
    this.#instances.delete(instance.id);
    this.free(containerName(instance.pod.uid, instance.name, instance.restartCount));
    this.#tidy(record);
  }

  #tidy(record: PodRecord): void {
    if (record.sandboxes.length === 0 && record.instances.length === 0) this.pods.delete(record.ref.uid);
  }

  free(name: string): void {
    this.#names.delete(name);
  }

  /** A name is taken from the beginning of the making until the removal, as in containerd. */
  claim(call: string, name: string): Claim {
    return {
      take: () => {
        if (this.#names.has(name)) {
          throw new RuntimeError(call, 'UNKNOWN', `failed to reserve name "${name}": name is reserved`);
        }
        this.#names.add(name);
      },
      drop: () => this.free(name),
    };
  }
}

/** The other instances of the pod, as the rules see them. */
export function ruledInstances({ pods }: RuntimeState, but: Instance): readonly RuledInstance[] {
  const others = (pods.get(but.pod.uid)?.instances ?? []).filter((instance) => instance !== but);
  return others.map(({ name, sandboxId, startedAt, process, end }) => ({
    name,
    sandboxId,
    begun: startedAt > 0,
    alive: process !== undefined,
    exitCode: end?.exitCode ?? 0,
  }));
}

export function sandboxName(uid: string, attempt: number): string {
  return `${uid}_${attempt}`;
}

export function containerName(uid: string, name: string, attempt: number): string {
  return `${uid}_${name}_${attempt}`;
}
