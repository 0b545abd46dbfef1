// A container runtime in memory, behind the agent's port: sandboxes, containers, processes, images, as containerd keeps
// them. It can be restarted, forget events, and be reached over a bad line. It judges nothing: rules.ts does.

import {
  type ContainerId,
  type ContainerResourceFigures,
  type ContainerRuntime,
  type ContainerSnapshot,
  type ContainerSpec,
  type ImageAuth,
  type PodLifecycleEvent,
  type PodRef,
  type PodSnapshot,
  type PodUID,
  RuntimeError,
  type RuntimeImage,
  type SandboxId,
  type SandboxSnapshot,
  type SandboxSpec,
} from '../../../agent/ports/runtime.ts';
import type { Pod } from '../../../client/types.ts';
import type { Clock } from '../../../lib/clock.ts';
import { errorMessage } from '../../../lib/errors.ts';
import type { Dice } from './dice.ts';
import type { Faults } from './faults.ts';
import { SimImages } from './images.ts';
import type { Journal } from './journal.ts';
import { Line, type LineFailure } from './line.ts';
import type { SimNetwork } from './network.ts';
import type { Processes } from './processes.ts';
import type { Prerequisites, RuledInstance, Rules } from './rules.ts';
import { RuntimeEvents } from './runtime-events.ts';
import { containerName, type Instance, type PodRecord, RuntimeState, type Sandbox } from './runtime-state.ts';

export interface SimRuntimeParts {
  readonly clock: Clock;
  readonly dice: Dice;
  readonly journal: Journal;
  readonly rules: Rules;
  readonly network: SimNetwork;
  readonly processes: Processes;
  readonly prerequisites: Prerequisites;
  readonly faults: Faults;
}

const DEADLINE_MS = 120_000;
/** A pull without progress is given up, as containerd does. */
const PULL_MS = 300_000;
const DAY_MS = 86_400_000;
const OK = { ok: true, reason: '', message: '' };
const CODES: Readonly<Record<LineFailure, string>> = {
  refused: 'UNKNOWN',
  unavailable: 'UNAVAILABLE',
  deadline: 'DEADLINE_EXCEEDED',
};

export class SimRuntime implements ContainerRuntime {
  readonly #parts: SimRuntimeParts;
  readonly line: Line;
  readonly state = new RuntimeState();
  readonly images = new SimImages();
  readonly events: RuntimeEvents;
  #sequence = 0;

  constructor(parts: SimRuntimeParts) {
    this.#parts = parts;
    const { clock, dice, journal } = parts;
    const error = (call: string, failure: LineFailure): Error =>
      new RuntimeError(call, CODES[failure], `${call}: injected failure (${failure})`);
    this.line = new Line({ name: 'cri', clock, dice, journal, error, usualMs: 300 });
    this.events = new RuntimeEvents(clock, dice, journal);
  }

  // ---------------------------------------------------------------- what chance does to it

  /** A process ends. */
  end(instance: Instance, exitCode: number, reason: string): void {
    const { process } = instance;
    if (process === undefined) return;
    process.timer?.cancel();
    instance.process = undefined;
    const { clock, journal } = this.#parts;
    journal.note(`${instance.snapshot.id} ends ${exitCode} ${reason}`);
    instance.snapshot = { ...instance.snapshot, state: 'exited', exitCode, reason, finishedAt: clock.now() };
    this.#emit(instance.pod.uid, 'containerDied', instance.snapshot.id);
    process.resolveEnded();
  }

  /** The sandbox's own process dies, and every container with it; its network is still held. */
  killSandbox(sandbox: Sandbox): void {
    if (sandbox.snapshot.state !== 'ready') return;
    for (const instance of this.state.pods.get(sandbox.pod.uid)?.instances ?? []) {
      if (instance.snapshot.sandboxId === sandbox.snapshot.id) this.end(instance, 137, 'Error');
    }
    sandbox.snapshot = { ...sandbox.snapshot, state: 'notReady' };
    this.#emit(sandbox.pod.uid, 'containerDied', sandbox.snapshot.id);
  }

  /** The runtime's own process goes away and comes back; containers run on, some of them lost sight of. */
  restart(downMs: number): void {
    const { clock, dice } = this.#parts;
    this.line.cut();
    clock.after(downMs, () => {
      if (!this.line.down) return;
      this.line.down = false;
      for (const instance of this.state.instances()) {
        if (instance.process === undefined || !dice.chance(0.1)) continue;
        instance.snapshot = { ...instance.snapshot, state: 'unknown' };
        this.#parts.rules.mayRunAgain(instance.pod.uid, instance.snapshot.name);
      }
      for (const uid of this.state.pods.keys()) this.#emit(uid, 'podSync');
    });
  }

  removeUnusedImage(name: string): void {
    for (const { spec, process } of this.state.instances()) {
      if (process !== undefined && spec.container.image === name) return;
    }
    this.images.held.delete(name);
  }

  /** Who answers at an address and port: the one container that says it listens there. */
  listener(host: string, port: number): Instance | undefined {
    const holder = this.#parts.network.leases.get(host);
    for (const instance of this.state.instances()) {
      if (instance.process === undefined || instance.snapshot.sandboxId !== holder) continue;
      const { container } = instance.spec;
      if (container.ports?.some(({ containerPort }) => containerPort === port)) return instance;
    }
    return undefined;
  }

  // ---------------------------------------------------------------- inside

  #fail(call: string, code: string, message: string): RuntimeError {
    return new RuntimeError(call, code, message);
  }

  #emit(uid: PodUID, type: PodLifecycleEvent['type'], id?: string): void {
    if (!this.line.down) this.events.emit(uid, type, id);
  }

  // ---------------------------------------------------------------- the port

  version() {
    return Promise.resolve({ name: 'simulated', version: '1', apiVersion: 'v1' });
  }

  status() {
    const features = { supplementalGroupsPolicy: false };
    return Promise.resolve({ runtimeReady: OK, networkReady: OK, handlers: [], features });
  }

  listPods(): Promise<readonly PodSnapshot[]> {
    return this.line.perform('listPods', '', DEADLINE_MS, () =>
      [...this.state.pods.values()].map(({ ref }) => this.state.snapshot(ref, this.#parts.clock.now())),
    );
  }

  observePod(ref: PodRef): Promise<PodSnapshot> {
    return this.line.perform('observePod', ref.name, DEADLINE_MS, () =>
      this.state.snapshot(ref, this.#parts.clock.now()),
    );
  }

  runPodSandbox(spec: SandboxSpec): Promise<SandboxId> {
    const { name, uid } = spec.pod.metadata;
    const claim = this.state.claim('RunPodSandbox', `${uid}_${spec.attempt}`);
    const subject = `${name} ${spec.attempt}`;
    return this.line.perform('runPodSandbox', subject, 2 * DEADLINE_MS, () => this.#makeSandbox(spec), claim);
  }

  #makeSandbox({ pod, attempt, runtimeHandler }: SandboxSpec): SandboxId {
    const call = 'RunPodSandbox';
    const name = `${pod.metadata.uid}_${attempt}`;
    const id = `sandbox-${++this.#sequence}` as SandboxId;
    const hostNetwork = pod.spec.hostNetwork === true;
    let ips: string[] = [];
    try {
      if (!hostNetwork) ips = [this.#parts.network.add(id)];
    } catch (error) {
      this.state.names.delete(name);
      throw this.#fail(call, 'UNKNOWN', `failed to setup network for sandbox: ${errorMessage(error)}`);
    }
    const record = this.state.record(pod);
    const createdAt = this.#parts.clock.now();
    const snapshot: SandboxSnapshot = { id, attempt, state: 'ready', createdAt, ips, hostNetwork, runtimeHandler };
    record.sandboxes.unshift({ snapshot, pod: record.ref });
    if (this.#parts.faults.has('the runtime makes two sandboxes for one call')) {
      const second = { ...snapshot, id: `sandbox-${++this.#sequence}` as SandboxId, ips: [] };
      record.sandboxes.unshift({ snapshot: second, pod: record.ref });
    }
    record.sandboxes.sort((a, b) => b.snapshot.attempt - a.snapshot.attempt);
    this.#emit(record.ref.uid, 'containerStarted', id);
    return id;
  }

  stopPodSandbox(id: SandboxId): Promise<void> {
    return this.line.perform('stopPodSandbox', id, DEADLINE_MS, () => this.#stopSandbox(id));
  }

  #stopSandbox(id: SandboxId): void {
    const sandbox = this.state.sandbox(id);
    if (sandbox === undefined) return;
    // As in containerd: containers first, then the network, and only then does it count as stopped.
    for (const instance of this.state.pods.get(sandbox.pod.uid)?.instances ?? []) {
      if (instance.snapshot.sandboxId === id) this.end(instance, 137, 'Error');
    }
    try {
      if (!sandbox.snapshot.hostNetwork) this.#parts.network.delete(id);
    } catch (error) {
      throw this.#fail('StopPodSandbox', 'UNKNOWN', `failed to destroy network for sandbox: ${errorMessage(error)}`);
    }
    this.killSandbox(sandbox);
  }

  removePodSandbox(id: SandboxId): Promise<void> {
    return this.line.perform('removePodSandbox', id, DEADLINE_MS, () => {
      const sandbox = this.state.sandbox(id);
      const record = sandbox === undefined ? undefined : this.state.pods.get(sandbox.pod.uid);
      if (sandbox === undefined || record === undefined) return;
      const { name, uid } = sandbox.pod;
      if (sandbox.snapshot.state === 'ready') this.#parts.rules.break(`sandbox ${id} of ${name} removed while ready`);
      this.#stopSandbox(id);
      record.sandboxes.splice(record.sandboxes.indexOf(sandbox), 1);
      this.state.names.delete(`${uid}_${sandbox.snapshot.attempt}`);
      for (const instance of record.instances.filter(({ snapshot }) => snapshot.sandboxId === id)) {
        this.#drop(record, instance);
      }
      this.state.tidy(record);
    });
  }

  createContainer(spec: ContainerSpec): Promise<ContainerId> {
    const subject = `${spec.pod.metadata.name}/${spec.container.name} ${spec.restartCount}`;
    const claim = this.state.claim(
      'CreateContainer',
      containerName(spec.pod.metadata.uid, spec.container.name, spec.restartCount),
    );
    return this.line.perform('createContainer', subject, DEADLINE_MS, () => this.#makeContainer(spec), claim);
  }

  #makeContainer(spec: ContainerSpec): ContainerId {
    const { container, sandboxId, restartCount, pod } = spec;
    if (this.state.sandbox(sandboxId)?.snapshot.state !== 'ready') {
      this.state.names.delete(containerName(pod.metadata.uid, container.name, restartCount));
      throw this.#fail('CreateContainer', 'UNKNOWN', `sandbox ${sandboxId} is not ready`);
    }
    const record = this.state.record(pod);
    const id = `${pod.metadata.name}.${container.name}-${++this.#sequence}` as ContainerId;
    const snapshot: ContainerSnapshot = {
      id,
      sandboxId,
      name: container.name,
      type: spec.type,
      restartCount,
      hash: spec.hash,
      state: 'created',
      createdAt: this.#parts.clock.now(),
      startedAt: 0,
      finishedAt: 0,
      exitCode: 0,
      reason: '',
      message: '',
      image: container.image ?? '',
      imageId: spec.image.repoDigests[0] ?? spec.image.id,
      logPath: `/${container.name}/${restartCount}.log`,
    };
    record.instances.unshift({ snapshot, pod: record.ref, spec, process: undefined });
    record.instances.sort((a, b) => b.snapshot.restartCount - a.snapshot.restartCount);
    return id;
  }

  startContainer(id: ContainerId): Promise<void> {
    return this.line.perform('startContainer', id, DEADLINE_MS, () => this.#start(id));
  }

  #start(id: ContainerId): void {
    const call = 'StartContainer';
    const instance = this.state.instance(id);
    if (instance === undefined) throw this.#fail(call, 'NOT_FOUND', `no container ${id}`);
    const { snapshot, spec } = instance;
    if (snapshot.state !== 'created') throw this.#fail(call, 'UNKNOWN', `container is in ${snapshot.state} state`);
    if (this.state.sandbox(snapshot.sandboxId)?.snapshot.state !== 'ready') {
      throw this.#fail(call, 'UNKNOWN', 'sandbox container is not running');
    }
    const { clock, dice, processes, rules, prerequisites } = this.#parts;
    if (this.line.trouble > 0 && dice.chance(0.05)) {
      const message = 'failed to create containerd task: exec: "nothing": not found';
      const at = { startedAt: clock.now(), finishedAt: clock.now() };
      instance.snapshot = { ...snapshot, state: 'exited', exitCode: 128, reason: 'StartError', message, ...at };
      throw this.#fail(call, 'UNKNOWN', message);
    }
    rules.containerStarts(spec, this.#ruled(instance), prerequisites);
    instance.snapshot = { ...snapshot, state: 'running', startedAt: clock.now() };
    instance.process = processes.begin(spec, (exitCode, reason) => this.end(instance, exitCode, reason));
    this.#emit(instance.pod.uid, 'containerStarted', id);
  }

  /** The other instances of the pod. */
  #ruled(but: Instance): readonly RuledInstance[] {
    const all = this.state.pods.get(but.pod.uid)?.instances ?? [];
    return all
      .filter((instance) => instance !== but)
      .map(({ snapshot, process }) => ({
        name: snapshot.name,
        sandboxId: snapshot.sandboxId,
        begun: snapshot.startedAt > 0,
        alive: process !== undefined,
        exitCode: snapshot.exitCode,
      }));
  }

  stopContainer(id: ContainerId, graceSeconds: number): Promise<void> {
    return this.line.perform('stopContainer', `${id} ${graceSeconds}`, graceSeconds * 1000 + DEADLINE_MS, () => {
      const instance = this.state.instance(id);
      const { process } = instance ?? {};
      if (instance === undefined || process === undefined) return undefined;
      const { clock, faults } = this.#parts;
      if (faults.has('the runtime says that a container has ended while it runs')) {
        instance.snapshot = { ...instance.snapshot, state: 'exited', exitCode: 143, finishedAt: clock.now() };
        return undefined;
      }
      const kill = clock.after(graceSeconds * 1000, () => this.end(instance, 137, 'Error'));
      const { termMs } = process;
      const reacts = termMs === undefined ? undefined : clock.after(termMs, () => this.end(instance, 143, 'Error'));
      return process.ended.then(() => {
        kill.cancel();
        reacts?.cancel();
      });
    });
  }

  removeContainer(id: ContainerId): Promise<void> {
    return this.line.perform('removeContainer', id, DEADLINE_MS, () => {
      const instance = this.state.instance(id);
      const record = instance === undefined ? undefined : this.state.pods.get(instance.pod.uid);
      if (instance === undefined || record === undefined) return;
      if (instance.process !== undefined) this.#parts.rules.break(`container ${id} removed while it runs`);
      this.#drop(record, instance);
      this.state.tidy(record);
    });
  }

  #drop(record: PodRecord, instance: Instance): void {
    this.end(instance, 137, 'Error');
    record.instances.splice(record.instances.indexOf(instance), 1);
    this.state.names.delete(containerName(record.ref.uid, instance.snapshot.name, instance.snapshot.restartCount));
    this.#emit(record.ref.uid, 'containerRemoved', instance.snapshot.id);
  }

  updateContainerResources(id: ContainerId, resources: ContainerResourceFigures): Promise<void> {
    return this.line.perform('updateContainerResources', id, DEADLINE_MS, () => {
      const instance = this.state.instance(id);
      if (instance !== undefined) instance.snapshot = { ...instance.snapshot, resources };
    });
  }

  imageStatus(image: string): Promise<RuntimeImage | undefined> {
    return this.line.perform('imageStatus', image, DEADLINE_MS, () => this.images.held.get(image));
  }

  async pullImage(image: string, _auth: ImageAuth | undefined, _pod: Pod, signal?: AbortSignal): Promise<RuntimeImage> {
    const { clock, dice } = this.#parts;
    return await this.line.perform('pullImage', image, PULL_MS, async () => {
      await clock.sleep(dice.pick([10, 400, 9_000]), signal);
      if (!this.images.canBePulled(image)) {
        throw this.#fail('PullImage', 'NOT_FOUND', `failed to resolve reference "${image}": not found`);
      }
      return this.images.add(image);
    });
  }

  listImages(): Promise<readonly RuntimeImage[]> {
    return Promise.resolve([...this.images.held.values()]);
  }

  removeImage(id: string): Promise<void> {
    return Promise.resolve(this.images.removeById(id));
  }

  execSync(id: ContainerId, command: readonly string[], timeoutMs: number) {
    const limit = timeoutMs > 0 ? timeoutMs : DAY_MS;
    const deadlineMs = timeoutMs > 0 ? timeoutMs + DEADLINE_MS : Number.POSITIVE_INFINITY;
    return this.line.perform('execSync', `${id} ${command.join(' ')}`, deadlineMs, async () => {
      const process = this.state.instance(id)?.process;
      if (process === undefined) throw this.#fail('ExecSync', 'UNKNOWN', 'container is not running');
      return await this.#parts.processes.exec(process, command[0] ?? '', limit);
    });
  }

  execUrl(id: ContainerId): Promise<string> {
    return Promise.resolve(`http://simulated/exec/${id}`);
  }
  attachUrl(id: ContainerId): Promise<string> {
    return Promise.resolve(`http://simulated/attach/${id}`);
  }
  portForwardUrl(id: SandboxId): Promise<string> {
    return Promise.resolve(`http://simulated/portforward/${id}`);
  }
  reopenContainerLog(): Promise<void> {
    return Promise.resolve();
  }

  watch(listener: (event: PodLifecycleEvent) => void): () => void {
    return this.events.watch(listener);
  }
}
