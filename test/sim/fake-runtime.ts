// A container runtime in memory, behind the agent's port: keeps sandboxes, containers and images, lets tests end
// processes, fail or delay calls, and checks the rules that must never break.

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
} from '../../agent/ports/runtime.ts';
import type { Pod } from '../../client/types.ts';
import { type Clock, epochMs } from '../../lib/clock.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Sandbox = Mutable<SandboxSnapshot> & { readonly pod: PodRef };
type Container = Mutable<ContainerSnapshot> & { readonly pod: PodRef; readonly spec: ContainerSpec };

export type FakeCall =
  | 'listPods'
  | 'observePod'
  | 'runPodSandbox'
  | 'stopPodSandbox'
  | 'removePodSandbox'
  | 'createContainer'
  | 'startContainer'
  | 'stopContainer'
  | 'removeContainer'
  | 'updateContainerResources'
  | 'updatePodSandboxResources'
  | 'imageStatus'
  | 'pullImage'
  | 'execSync';

export interface RecordedCall {
  readonly call: FakeCall;
  /** Container or image name, or sandbox id. */
  readonly subject: string;
  /** Virtual epoch ms. */
  readonly at: number;
  readonly detail?: unknown;
}

const OK = { ok: true, reason: '', message: '' };

export class FakeRuntime implements ContainerRuntime {
  readonly #clock: Clock;
  readonly sandboxes = new Map<SandboxId, Sandbox>();
  readonly containers = new Map<ContainerId, Container>();
  readonly images = new Map<string, RuntimeImage>();
  readonly calls: RecordedCall[] = [];
  /** What the runtime did that it must never be asked to do. */
  readonly violations: string[] = [];
  /** Images that exist in the registry; a pull of any other fails. */
  readonly registry = new Set<string>();
  /** Credentials a pull needs, by image. */
  readonly requiredAuth = new Map<string, string>();
  /** Names of containers whose process does not react to TERM. */
  readonly ignoresTerm = new Set<string>();
  /** Exit codes of those that end on TERM, by name; others end as the signal has it. */
  readonly endsOnTerm = new Map<string, number>();
  /** Virtual ms that a call takes. */
  readonly latency = new Map<FakeCall, number>();
  /** Outcomes of execSync by command line. */
  readonly execs = new Map<string, { exitCode: number; takesMs?: number }>();
  readonly #failures = new Map<string, RuntimeError[]>();
  readonly #listeners = new Set<(event: PodLifecycleEvent) => void>();
  readonly #reserved = new Set<string>();
  #sequence = 0;
  /** While true, lifecycle events are lost. */
  losesEvents = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  // ---------------------------------------------------------------- for tests

  addImage(name: string): RuntimeImage {
    const image: RuntimeImage = {
      id: `sha256:${name}`,
      repoTags: [name],
      repoDigests: [`${name}@sha256:0`],
      sizeBytes: 1234,
      pinned: false,
    };
    this.images.set(name, image);
    return image;
  }

  /** The next call of this kind (about `subject`, if given) fails with `message`. */
  failNext(call: FakeCall, message: string, code = 'UNKNOWN', subject?: string): void {
    const key = subject === undefined ? call : `${call} ${subject}`;
    this.#failures.set(key, [...(this.#failures.get(key) ?? []), new RuntimeError(call, code, message)]);
  }

  /** The process of the running instance of a container ends. */
  exit(name: string, exitCode: number, reason = exitCode === 0 ? 'Completed' : 'Error'): void {
    const container = this.running(name);
    if (container === undefined) throw new Error(`no running container ${name}`);
    this.#end(container, exitCode, reason);
  }

  /** The process of one instance ends. */
  end(id: ContainerId, exitCode: number): void {
    const container = this.containers.get(id);
    if (container !== undefined) this.#end(container, exitCode, exitCode === 0 ? 'Completed' : 'Error');
  }

  clearFailures(): void {
    this.#failures.clear();
  }

  /** The sandbox's own process dies, and every container with it. */
  killSandbox(id: SandboxId): void {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined) throw new Error(`no sandbox ${id}`);
    this.#stopSandbox(sandbox);
  }

  running(name: string): Container | undefined {
    return [...this.containers.values()].find((container) => container.name === name && container.state === 'running');
  }

  count(call: FakeCall, subject?: string): number {
    return this.calls.filter((entry) => entry.call === call && (subject === undefined || entry.subject === subject))
      .length;
  }

  order(...calls: readonly FakeCall[]): string[] {
    return this.calls.filter(({ call }) => calls.includes(call)).map(({ call, subject }) => `${call} ${subject}`);
  }

  emit(event: PodLifecycleEvent): void {
    if (this.losesEvents) return;
    for (const listener of this.#listeners) listener(event);
  }

  // ---------------------------------------------------------------- the port

  async #enter(call: FakeCall, subject: string, detail?: unknown, signal?: AbortSignal): Promise<void> {
    this.calls.push({ call, subject, at: this.#clock.now(), ...(detail === undefined ? {} : { detail }) });
    const latency = this.latency.get(call) ?? 0;
    if (latency > 0) await this.#clock.sleep(latency, signal);
    else await Promise.resolve();
    for (const key of [`${call} ${subject}`, call]) {
      const failure = this.#failures.get(key)?.shift();
      if (failure !== undefined) throw failure;
    }
  }

  #id(prefix: string): string {
    return `${prefix}-${++this.#sequence}`;
  }

  #wake(podUID: PodUID, type: PodLifecycleEvent['type'], containerId: string): void {
    this.emit({ podUID, type, containerId: containerId as ContainerId, at: this.#clock.now() });
  }

  #end(container: Container, exitCode: number, reason: string): void {
    if (container.state !== 'running') return;
    container.state = 'exited';
    container.exitCode = exitCode;
    container.reason = reason;
    container.finishedAt = this.#clock.now();
    this.#wake(container.pod.uid, 'containerDied', container.id);
  }

  #stopSandbox(sandbox: Sandbox): void {
    for (const container of this.containers.values()) {
      if (container.sandboxId === sandbox.id) this.#end(container, 137, 'Error');
    }
    if (sandbox.state === 'notReady') return;
    sandbox.state = 'notReady';
    this.#wake(sandbox.pod.uid, 'containerDied', sandbox.id);
  }

  version() {
    return Promise.resolve({ name: 'fake', version: '1', apiVersion: 'v1' });
  }

  status() {
    const features = { supplementalGroupsPolicy: false };
    return Promise.resolve({ runtimeReady: OK, networkReady: OK, handlers: [], features });
  }

  #snapshot(pod: PodRef): PodSnapshot {
    type Aged = { createdAt: number; attempt?: number; restartCount?: number };
    const attemptOf = ({ attempt, restartCount }: Aged): number => attempt ?? restartCount ?? 0;
    const newestFirst = <T extends Aged>(items: T[]): T[] =>
      items.sort((a, b) => attemptOf(b) - attemptOf(a) || b.createdAt - a.createdAt);
    return structuredClone({
      pod,
      sandboxes: newestFirst([...this.sandboxes.values()].filter((sandbox) => sandbox.pod.uid === pod.uid).reverse()),
      containers: newestFirst(
        [...this.containers.values()]
          .filter((container) => container.pod.uid === pod.uid)
          .map(({ spec: _spec, ...container }) => container)
          .reverse(),
      ),
      observedAt: this.#clock.now(),
    });
  }

  async listPods(): Promise<readonly PodSnapshot[]> {
    await this.#enter('listPods', '');
    const pods = [...this.sandboxes.values(), ...this.containers.values()].map(({ pod }) => pod);
    return [...new Map(pods.map((pod) => [pod.uid, pod])).values()].map((pod) => this.#snapshot(pod));
  }

  async observePod(pod: PodRef): Promise<PodSnapshot> {
    await this.#enter('observePod', pod.name);
    return this.#snapshot(pod);
  }

  /** A name can be used by one at a time, from the beginning of its making until its removal, as in containerd. */
  async #reserve<T>(name: string, taken: boolean, make: () => Promise<T>): Promise<T> {
    if (taken || this.#reserved.has(name)) {
      throw new RuntimeError('reserve', 'UNKNOWN', `failed to reserve name "${name}": name is reserved`);
    }
    this.#reserved.add(name);
    try {
      return await make();
    } finally {
      this.#reserved.delete(name);
    }
  }

  runPodSandbox(spec: SandboxSpec): Promise<SandboxId> {
    const { uid } = spec.pod.metadata;
    const taken = [...this.sandboxes.values()].some((each) => each.pod.uid === uid && each.attempt === spec.attempt);
    return this.#reserve(`${uid}_${spec.attempt}`, taken, () => this.#makeSandbox(spec));
  }

  async #makeSandbox({ pod, attempt, runtimeHandler }: SandboxSpec): Promise<SandboxId> {
    const { uid, namespace, name } = pod.metadata;
    await this.#enter('runPodSandbox', name, attempt);
    const live = [...this.sandboxes.values()].filter((each) => each.pod.uid === uid && each.state === 'ready');
    if (live.length > 0) this.violations.push(`second live sandbox for ${name}`);
    const id = this.#id('sandbox') as SandboxId;
    const hostNetwork = pod.spec.hostNetwork === true;
    this.sandboxes.set(id, {
      id,
      attempt,
      state: 'ready',
      createdAt: this.#clock.now(),
      ips: hostNetwork ? [] : [`10.0.0.${this.#sequence}`],
      hostNetwork,
      runtimeHandler,
      pod: { uid: uid as PodUID, namespace, name },
    });
    this.#wake(uid as PodUID, 'containerStarted', id);
    return id;
  }

  async stopPodSandbox(id: SandboxId): Promise<void> {
    await this.#enter('stopPodSandbox', id);
    const sandbox = this.sandboxes.get(id);
    if (sandbox !== undefined) this.#stopSandbox(sandbox);
  }

  async removePodSandbox(id: SandboxId): Promise<void> {
    await this.#enter('removePodSandbox', id);
    const sandbox = this.sandboxes.get(id);
    if (sandbox?.state === 'ready') this.violations.push(`sandbox ${id} removed while ready`);
    for (const [containerId, container] of this.containers) {
      if (container.sandboxId === id) this.containers.delete(containerId);
    }
    this.sandboxes.delete(id);
  }

  createContainer(spec: ContainerSpec): Promise<ContainerId> {
    const { uid } = spec.pod.metadata;
    const taken = [...this.containers.values()].some(
      (each) => each.pod.uid === uid && each.name === spec.container.name && each.restartCount === spec.restartCount,
    );
    return this.#reserve(`${uid}_${spec.container.name}_${spec.restartCount}`, taken, () => this.#makeContainer(spec));
  }

  async #makeContainer(spec: ContainerSpec): Promise<ContainerId> {
    const { name } = spec.container;
    const { uid, namespace, name: podName } = spec.pod.metadata;
    await this.#enter('createContainer', name, spec);
    if (this.sandboxes.get(spec.sandboxId)?.state !== 'ready') {
      throw new RuntimeError('CreateContainer', 'UNKNOWN', `sandbox ${spec.sandboxId} is not ready`);
    }
    const id = this.#id(name) as ContainerId;
    this.containers.set(id, {
      id,
      sandboxId: spec.sandboxId,
      name,
      type: spec.type,
      restartCount: spec.restartCount,
      hash: spec.hash,
      state: 'created',
      createdAt: this.#clock.now(),
      startedAt: epochMs(0),
      finishedAt: epochMs(0),
      exitCode: 0,
      reason: '',
      message: '',
      image: spec.container.image ?? '',
      imageId: spec.image.repoDigests[0] ?? spec.image.id,
      logPath: `/${name}/${spec.restartCount}.log`,
      pod: { uid: uid as PodUID, namespace, name: podName },
      spec,
    });
    return id;
  }

  async startContainer(id: ContainerId): Promise<void> {
    const container = this.containers.get(id);
    if (container === undefined) throw new RuntimeError('StartContainer', 'NOT_FOUND', `no container ${id}`);
    if (container.state !== 'created') {
      throw new RuntimeError('StartContainer', 'UNKNOWN', `container is in ${container.state} state`);
    }
    await this.#reserve(`start ${id}`, false, () => this.#enter('startContainer', container.name));
    if (this.sandboxes.get(container.sandboxId)?.state !== 'ready') {
      throw new RuntimeError('StartContainer', 'UNKNOWN', 'sandbox container is not running');
    }
    for (const other of this.containers.values()) {
      if (other.pod.uid === container.pod.uid && other.name === container.name && other.state === 'running') {
        this.violations.push(`${container.name} started while its predecessor runs`);
      }
    }
    container.state = 'running';
    container.startedAt = this.#clock.now();
    this.#wake(container.pod.uid, 'containerStarted', id);
  }

  async stopContainer(id: ContainerId, graceSeconds: number): Promise<void> {
    const container = this.containers.get(id);
    await this.#enter('stopContainer', container?.name ?? id, graceSeconds);
    if (container === undefined || container.state !== 'running') return;
    if (!this.ignoresTerm.has(container.name)) {
      const exitCode = this.endsOnTerm.get(container.name) ?? 143;
      return this.#end(container, exitCode, exitCode === 0 ? 'Completed' : 'Error');
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#clock.after(graceSeconds * 1000, () => {
      this.#end(container, 137, 'Error');
      resolve();
    });
    return promise;
  }

  async removeContainer(id: ContainerId): Promise<void> {
    const container = this.containers.get(id);
    await this.#enter('removeContainer', container?.name ?? id);
    if (container?.state === 'running') this.violations.push(`${container.name} removed while it runs`);
    this.containers.delete(id);
  }

  async updateContainerResources(id: ContainerId, resources: ContainerResourceFigures): Promise<void> {
    const container = this.containers.get(id);
    await this.#enter('updateContainerResources', container?.name ?? id);
    if (container !== undefined) container.resources = { ...container.resources, ...resources };
  }

  async updatePodSandboxResources(id: SandboxId, pod: Pod): Promise<void> {
    await this.#enter('updatePodSandboxResources', id, pod.spec);
  }

  async imageStatus(image: string): Promise<RuntimeImage | undefined> {
    await this.#enter('imageStatus', image);
    return this.images.get(image);
  }

  async pullImage(
    image: string,
    auth: ImageAuth | undefined,
    _pod: unknown,
    signal?: AbortSignal,
  ): Promise<RuntimeImage> {
    await this.#enter('pullImage', image, auth, signal);
    const required = this.requiredAuth.get(image);
    if (required !== undefined && auth?.username !== required) {
      throw new RuntimeError('PullImage', 'UNKNOWN', `failed to pull "${image}": 401 Unauthorized`);
    }
    if (!this.registry.has(image)) {
      throw new RuntimeError('PullImage', 'NOT_FOUND', `failed to resolve reference "${image}": not found`);
    }
    return this.addImage(image);
  }

  listImages(): Promise<readonly RuntimeImage[]> {
    return Promise.resolve([...this.images.values()]);
  }

  removeImage(id: string): Promise<void> {
    for (const [name, image] of this.images) if (image.id === id) this.images.delete(name);
    return Promise.resolve();
  }

  async execSync(id: ContainerId, command: readonly string[]) {
    await this.#enter('execSync', command.join(' '), id);
    const outcome = this.execs.get(command.join(' ')) ?? { exitCode: 0 };
    if (outcome.takesMs !== undefined) await this.#clock.sleep(outcome.takesMs);
    return { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: outcome.exitCode, timedOut: false };
  }

  execUrl(id: ContainerId): Promise<string> {
    return Promise.resolve(`http://fake/exec/${id}`);
  }

  attachUrl(id: ContainerId): Promise<string> {
    return Promise.resolve(`http://fake/attach/${id}`);
  }

  portForwardUrl(id: SandboxId): Promise<string> {
    return Promise.resolve(`http://fake/portforward/${id}`);
  }

  reopenContainerLog(): Promise<void> {
    return Promise.resolve();
  }

  watch(listener: (event: PodLifecycleEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
