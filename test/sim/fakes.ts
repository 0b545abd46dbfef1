// The rest of a simulated node: API server, pod source, volumes, cgroups, events, and the agent put together on them.

import type { PodsAgent, PodsAgentOptions } from '../../agent/pods/options.ts';
import { createPodsAgent } from '../../agent/pods/pods-agent.ts';
import type {
  EventRecorder,
  ObjectReader,
  PodApi,
  PodSource,
  StatusPatch,
  WriteOutcome,
} from '../../agent/ports/api.ts';
import { type PodCgroups, type PodVolumes, VolumeError } from '../../agent/ports/node.ts';
import type { ProbeCause, ProbeResults, ProbeVerdict } from '../../agent/ports/probes.ts';
import type { ContainerId, PodRef, PodUID } from '../../agent/ports/runtime.ts';
import type { ConfigMap, Pod, PodCondition, PodStatus, Secret, Service } from '../../client/types.ts';
import { settle, VirtualClock } from '../../labs/sim/clock.ts';
import { applyStatusPatch } from '../../labs/sim/status-patch.ts';
import { type Clock, type EpochMs, epochMs } from '../../lib/clock.ts';
import { Tracer } from '../../lib/trace.ts';
import { FakeRuntime } from './fake-runtime.ts';

/** A pod with one container `web` unless the spec says otherwise. */
export function makePod(name: string, spec: Partial<Pod['spec']> = {}, meta: Partial<Pod['metadata']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'demo',
      uid: `uid-${name}`,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...meta,
    },
    spec: {
      nodeName: 'node-1',
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      containers: [{ name: 'web', image: 'nginx:stable', imagePullPolicy: 'IfNotPresent' }],
      ...spec,
    },
    status: { phase: 'Pending', qosClass: 'BestEffort' },
  };
}

/** The API server's pods, and the watch on them as a pod source. */
export class FakeApi implements PodApi, PodSource {
  readonly name = 'api';
  readonly pods = new Map<string, Pod>();
  readonly patches: { readonly pod: string; readonly patch: StatusPatch; readonly at: number }[] = [];
  /** Every phase each pod was seen in. */
  readonly phases = new Map<string, string[]>();
  readonly restartCounts = new Map<string, number>();
  readonly violations: string[] = [];
  unreachable = false;
  /** Whether the agent hears of changes. */
  watching = true;
  readonly #clock: Clock;
  #version = 1;
  #listener: ((pods: ReadonlyMap<string, Pod>) => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(listener: (pods: ReadonlyMap<string, Pod>) => void): void {
    this.#listener = listener;
    this.notify();
  }

  stop(): void {
    this.#listener = undefined;
  }

  notify(): void {
    if (this.watching) this.#listener?.(new Map([...this.pods.values()].map((pod) => [pod.metadata.uid, pod])));
  }

  put(pod: Pod): Pod {
    const metadata = { ...pod.metadata, resourceVersion: String(++this.#version) };
    const stored = { ...pod, metadata };
    this.pods.set(metadata.uid, stored);
    this.notify();
    return stored;
  }

  /** What kubectl delete does. */
  delete(name: string, graceSeconds?: number): void {
    const pod = this.named(name);
    const grace = graceSeconds ?? pod.spec.terminationGracePeriodSeconds ?? 30;
    const deletionTimestamp = new Date(this.#clock.now() + grace * 1000).toISOString();
    this.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds: grace } });
  }

  /** What kubectl delete --force --grace-period=0 does: the object goes at once. */
  forceDelete(name: string): void {
    this.pods.delete(this.named(name).metadata.uid);
    this.notify();
  }

  named(name: string): Pod {
    const pod = [...this.pods.values()].find(({ metadata }) => metadata.name === name);
    if (pod === undefined) throw new Error(`no pod ${name}`);
    return pod;
  }

  has(name: string): boolean {
    return [...this.pods.values()].some(({ metadata }) => metadata.name === name);
  }

  status(name: string): PodStatus {
    return this.named(name).status ?? {};
  }

  condition(name: string, type: string): PodCondition | undefined {
    return this.status(name).conditions?.find((condition) => condition.type === type);
  }

  #reach(): void {
    if (this.unreachable) throw new Error('connect ECONNREFUSED 127.0.0.1:6443');
  }

  async patchStatus(pod: Pod, patch: StatusPatch): Promise<WriteOutcome<Pod>> {
    await Promise.resolve();
    this.#reach();
    const { uid, name } = pod.metadata;
    const stored = this.pods.get(uid);
    if (stored === undefined) return { kind: 'gone' };
    this.patches.push({ pod: name, patch, at: this.#clock.now() });
    const status = applyStatusPatch(stored.status ?? {}, patch);
    this.#check(uid, stored.status ?? {}, status);
    return { kind: 'ok', value: this.put({ ...stored, status }) };
  }

  #check(uid: string, before: PodStatus, after: PodStatus): void {
    const rank: Readonly<Record<string, number>> = { Pending: 0, Running: 1, Succeeded: 2, Failed: 2 };
    const [from, to] = [before.phase ?? 'Pending', after.phase ?? 'Pending'];
    const back = (rank[to] ?? 0) < (rank[from] ?? 0) || ((rank[from] ?? 0) === 2 && from !== to);
    if (back) this.violations.push(`phase of ${uid} went from ${from} to ${to}`);
    this.phases.set(uid, [...(this.phases.get(uid) ?? []), to]);
    for (const status of [...(after.containerStatuses ?? []), ...(after.initContainerStatuses ?? [])]) {
      const key = `${uid}/${status.name}`;
      const known = this.restartCounts.get(key) ?? 0;
      if (status.restartCount < known) this.violations.push(`restartCount of ${key} went from ${known} back`);
      this.restartCounts.set(key, status.restartCount);
    }
  }

  async finalizeDelete(pod: Pod): Promise<WriteOutcome<null>> {
    await Promise.resolve();
    this.#reach();
    const existed = this.pods.delete(pod.metadata.uid);
    this.notify();
    return existed ? { kind: 'ok', value: null } : { kind: 'gone' };
  }

  async get(namespace: string, name: string): Promise<Pod | undefined> {
    await Promise.resolve();
    this.#reach();
    return [...this.pods.values()].find((pod) => pod.metadata.namespace === namespace && pod.metadata.name === name);
  }
}

export class FakeObjects implements ObjectReader {
  readonly configMaps = new Map<string, ConfigMap>();
  readonly secrets = new Map<string, Secret>();
  readonly allServices: Service[] = [];

  configMap(namespace: string, name: string): Promise<ConfigMap | undefined> {
    return Promise.resolve(this.configMaps.get(`${namespace}/${name}`));
  }
  secret(namespace: string, name: string): Promise<Secret | undefined> {
    return Promise.resolve(this.secrets.get(`${namespace}/${name}`));
  }
  services(namespace: string): Promise<readonly Service[]> {
    return Promise.resolve(this.allServices.filter((service) => service.metadata.namespace === namespace));
  }
  serviceAccountToken(): Promise<{ token: string; expiresAt: EpochMs }> {
    return Promise.resolve({ token: 'token', expiresAt: epochMs(0) });
  }
}

export class FakeVolumes implements PodVolumes {
  readonly mounted = new Set<PodUID>();
  /** Set: mountAll rejects with this. */
  failure: string | undefined;
  /** Set: mountAll does not end before its signal aborts. */
  hangs = false;

  mountAll(pod: Pod, signal?: AbortSignal): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(new VolumeError('data', this.failure));
    this.mounted.add(pod.metadata.uid as PodUID);
    if (!this.hangs) return Promise.resolve();
    return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true }));
  }
  containerMounts() {
    return Promise.resolve({ mounts: [], devices: [] });
  }
  unmountAll(pod: PodRef): Promise<void> {
    this.mounted.delete(pod.uid);
    return Promise.resolve();
  }
  listPods(): Promise<readonly PodUID[]> {
    return Promise.resolve([...this.mounted]);
  }
}

export class FakeCgroups implements PodCgroups {
  readonly pods = new Set<PodUID>();
  failure: string | undefined;

  ensurePod(pod: Pod): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(new Error(this.failure));
    this.pods.add(pod.metadata.uid as PodUID);
    return Promise.resolve();
  }
  /** What each container's cgroup accounts for, by id. */
  readonly memory = new Map<string, number>();
  containerMemory(_pod: Pod, id: string): Promise<number | undefined> {
    return Promise.resolve(this.memory.get(id));
  }
  removePod(uid: PodUID): Promise<void> {
    this.pods.delete(uid);
    return Promise.resolve();
  }
  listPods(): Promise<readonly PodUID[]> {
    return Promise.resolve([...this.pods]);
  }
}

export class FakeRecorder implements EventRecorder {
  readonly events: { pod: string; type: string; reason: string; message: string; fieldPath?: string }[] = [];

  event(object: Parameters<EventRecorder['event']>[0], type: 'Normal' | 'Warning', reason: string, message: string) {
    const { fieldPath } = object;
    const entry = { pod: object.metadata.name, type, reason, message };
    this.events.push(fieldPath === undefined ? entry : { ...entry, fieldPath });
  }
  of(reason: string): string[] {
    return this.events.filter((event) => event.reason === reason).map(({ message }) => message);
  }
  reasons(): string[] {
    return this.events.map(({ reason }) => reason);
  }
}

/** Probe verdicts that tests set. */
export class FakeProbes implements ProbeResults {
  readonly verdicts = new Map<string, ProbeVerdict>();
  set(probe: 'liveness' | 'readiness' | 'startup', id: string, verdict: ProbeVerdict): void {
    this.verdicts.set(`${probe} ${id}`, verdict);
  }
  liveness(id: ContainerId): ProbeVerdict {
    return this.verdicts.get(`liveness ${id}`);
  }
  readiness(id: ContainerId): ProbeVerdict {
    return this.verdicts.get(`readiness ${id}`);
  }
  startup(id: ContainerId): ProbeVerdict {
    return this.verdicts.get(`startup ${id}`);
  }
}

/** A port that can be cut: from then on no call goes out and no answer comes in, as for a process that was killed. */
function severable<T extends object>(target: T, isCut: () => boolean): T {
  const never = new Promise<never>(() => undefined);
  return new Proxy(target, {
    get(object, key) {
      const member: unknown = Reflect.get(object, key, object);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => {
        if (isCut()) return never;
        const answer: unknown = Reflect.apply(member, object, args);
        if (!(answer instanceof Promise)) return answer;
        return new Promise((resolve, reject) => {
          answer.then(
            (value) => isCut() || resolve(value),
            (error) => isCut() || reject(error),
          );
        });
      };
    },
  });
}

/** A node whose agent can be stopped and started again, as by kill -9. */
export class FakeNode {
  readonly clock = new VirtualClock();
  readonly runtime = new FakeRuntime(this.clock);
  readonly api = new FakeApi(this.clock);
  readonly objects = new FakeObjects();
  readonly volumes = new FakeVolumes();
  readonly cgroups = new FakeCgroups();
  readonly recorder = new FakeRecorder();
  readonly results = new FakeProbes();
  readonly #probeListeners = new Set<(uid: PodUID, cause: ProbeCause) => void>();
  #life = { over: false };
  agent: PodsAgent;

  /** `options` may be made from the node, anew for each agent. */
  constructor(options: Partial<PodsAgentOptions> | ((node: FakeNode) => Partial<PodsAgentOptions>) = {}) {
    this.runtime.addImage('nginx:stable');
    this.runtime.addImage('busybox:stable');
    this.#options = typeof options === 'function' ? options : () => options;
    this.agent = this.#build();
  }

  readonly #options: (node: FakeNode) => Partial<PodsAgentOptions>;

  #build(): PodsAgent {
    const { api, objects, recorder, clock } = this;
    const life = { over: false };
    this.#life = life;
    const isCut = (): boolean => life.over;
    const agent = createPodsAgent({
      runtime: severable(this.runtime, isCut),
      api: severable(api, isCut),
      objects,
      volumes: severable(this.volumes, isCut),
      cgroups: severable(this.cgroups, isCut),
      recorder,
      clock,
      sources: [api],
      probes: {
        results: this.results,
        podObserved: () => undefined,
        podTerminating: () => undefined,
        podRemoved: () => undefined,
        subscribe: (listener) => {
          this.#probeListeners.add(listener);
          return () => this.#probeListeners.delete(listener);
        },
      },
      tracer: new Tracer(),
      node: { name: 'node-1', hostIPs: () => ['192.0.2.1'], allocatable: () => ({ cpu: '2', memory: '4Gi' }) },
      ...this.#options(this),
    });
    agent.start();
    return agent;
  }

  /** A probe's verdict changes, and the workers hear of it. */
  probe(probe: 'liveness' | 'readiness' | 'startup', id: string, verdict: ProbeVerdict, uid: string): void {
    this.results.set(probe, id, verdict);
    for (const listener of this.#probeListeners)
      listener(uid as PodUID, `${probe} probe ${verdict === 'success' ? 'succeeded' : 'failed'}`);
  }

  /** kill -9. */
  killAgent(): void {
    this.#life.over = true;
    this.agent.stop();
  }

  /** The agent dies and a new one takes over what is there. */
  async restartAgent(): Promise<void> {
    this.killAgent();
    await settle();
    this.agent = this.#build();
    await settle();
  }

  /** What must hold at any time. */
  get violations(): readonly string[] {
    return [...this.runtime.violations, ...this.api.violations];
  }

  /** Whatever of any pod is left on the node. */
  leftovers(): string[] {
    return [
      ...this.runtime.sandboxes.keys(),
      ...this.runtime.containers.keys(),
      ...this.volumes.mounted,
      ...this.cgroups.pods,
    ].map(String);
  }
}
