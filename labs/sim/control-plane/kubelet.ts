// A simulated kubelet: it registers its node, renews the lease, and runs the pods bound to it, each in a time from the seed. It
// reads and writes without failures: what is tested here is the control plane, and what kubelets do wrong is what nodes do that
// die, come back, or are slow.

import type { Node, Pod, PodCondition } from '../../../client/types.ts';
import type { Clock } from '../../../lib/clock.ts';
import { rfc3339, rfc3339Micro } from '../../../lib/rfc3339.ts';
import type { Dice } from '../dice.ts';
import { attempt } from './attempt.ts';
import type { SimControlPlaneServer } from './server.ts';

const LEASE_MS = 15_000;
const STATUS_MS = 180_000;
/** How often the kubelet compares its node's status with what the server has (nodeStatusUpdateFrequency). */
const COMPARE_MS = 10_000;
export const NODE_CPUS = 8;

export interface KubeletWitness {
  /** A container of the pod has begun to run on this node. */
  started(node: string, pod: Pod): void;
  /** None of the pod runs any more. */
  ended(node: string, pod: Pod, how: 'Succeeded' | 'Failed' | 'killed'): void;
}

export interface KubeletParts {
  readonly name: string;
  readonly zone: string;
  readonly server: SimControlPlaneServer;
  readonly clock: Clock;
  readonly dice: Dice;
  readonly witness: KubeletWitness;
}

/** A pod on this node, by what the node knows. */
interface Local {
  readonly pod: Pod;
  state: 'new' | 'running' | 'ready' | 'Succeeded' | 'Failed';
  /** The container runs, whatever was reported. */
  isRunning: boolean;
  isStopping: boolean;
  startedAt: string | undefined;
  changedAt: string;
  readonly podIP: string;
}

export class SimKubelet {
  readonly name: string;
  readonly #parts: KubeletParts;
  /** By uid. */
  readonly #pods = new Map<string, Local>();
  #isUp = true;
  /** Times of pods are multiplied by it. */
  #slowness = 1;
  #addresses = 1;

  constructor(parts: KubeletParts) {
    this.#parts = parts;
    this.name = parts.name;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  async start(): Promise<void> {
    const { zone } = this.#parts;
    const size = { cpu: String(NODE_CPUS), memory: '16Gi', pods: '40' };
    const labels = {
      'kubernetes.io/hostname': this.name,
      'topology.kubernetes.io/zone': zone,
      'kubernetes.io/os': 'linux',
    };
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: this.name, labels } };
    await this.#send('POST', '/api/v1/nodes', node);
    await this.#send('PATCH', `/api/v1/nodes/${this.name}/status`, {
      status: { capacity: size, allocatable: size, conditions: [this.#ready()] },
    });
    const metadata = { name: this.name, namespace: 'kube-node-lease' };
    const spec = { holderIdentity: this.name, leaseDurationSeconds: 40, renewTime: this.#micro() };
    await this.#send('POST', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', { metadata, spec });
    this.#every(LEASE_MS, () => this.#renew());
    this.#every(STATUS_MS, () => this.#report());
    this.#every(COMPARE_MS, () => this.#compare());
  }

  /** The power fails, or the network: with `processes` what runs goes on running. */
  fail(processes: 'run on' | 'end'): void {
    this.#isUp = false;
    if (processes === 'run on') return;
    for (const local of this.#pods.values()) this.#endProcess(local, 'killed');
  }

  /** It is back, and looks at everything again. */
  recover(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    this.#soon(10, 500, async () => {
      await this.#renew();
      await this.#report();
      const pods = this.#parts.server.objects('/pods') as readonly Pod[];
      const present = new Map(pods.map((pod) => [pod.metadata.uid, pod]));
      for (const [uid, local] of this.#pods) {
        if (present.has(uid)) continue;
        this.#endProcess(local, 'killed');
        this.#pods.delete(uid);
      }
      for (const pod of pods) {
        if (pod.spec.nodeName !== this.name) continue;
        const local = this.#pods.get(pod.metadata.uid);
        if (local !== undefined) this.#takeUp(local);
        this.seen(pod);
      }
    });
  }

  /** What was to happen while it was away happens now. */
  #takeUp(local: Local): void {
    local.isStopping = false;
    if (local.state === 'new') return;
    this.#soon(5, 100, () => this.#writeStatus(local));
    if (local.state === 'Succeeded' || local.state === 'Failed') return;
    // After a boot its containers start again.
    if (!local.isRunning) local.state = 'new';
    else this.#proceed(local);
  }

  setSlowness(factor: number): void {
    this.#slowness = factor;
  }

  /** A pod bound to this node has changed or appeared. */
  seen(pod: Pod): void {
    if (!this.#isUp) return;
    const { uid } = pod.metadata;
    const isNew = !this.#pods.has(uid);
    const local = this.#pods.get(uid) ?? {
      ...{
        pod,
        state: phaseOf(pod),
        isRunning: false,
        isStopping: false,
        startedAt: undefined,
        changedAt: this.#time(),
      },
      podIP: this.#address(),
    };
    this.#pods.set(uid, local);
    if (pod.metadata.deletionTimestamp !== undefined) this.#stop(local);
    else if (local.state === 'new' && (isNew || !local.isRunning)) this.#begin(local);
    else if (local.state === 'ready' && !showsReady(pod)) this.#soon(5, 200, () => this.#writeStatus(local));
  }

  /** The object of a pod bound to this node is gone. */
  gone(pod: Pod): void {
    if (!this.#isUp) return;
    const local = this.#pods.get(pod.metadata.uid);
    if (local === undefined) return;
    this.#pods.delete(pod.metadata.uid);
    this.#endProcess(local, 'killed');
  }

  /** Readiness goes away for a while. */
  flap(uid: string): void {
    const local = this.#pods.get(uid);
    if (local?.state !== 'ready' || local.isStopping || !this.#isUp) return;
    this.#set(local, 'running');
    this.#soon(500, 8000, () => this.#becomeReady(local));
    void this.#writeStatus(local);
  }

  #begin(local: Local): void {
    const { pod } = local;
    const { image = '' } = pod.spec.containers[0] ?? {};
    if (image.startsWith('bad')) return;
    this.#soon(50, 2500, async () => {
      if (local.state !== 'new' || local.isStopping || local.isRunning || !this.#pods.has(pod.metadata.uid)) return;
      local.isRunning = true;
      local.startedAt = this.#time();
      this.#set(local, 'running');
      this.#parts.witness.started(this.name, pod);
      await this.#writeStatus(local);
      this.#proceed(local);
    });
  }

  /** A container that runs becomes ready, or comes to its end. */
  #proceed(local: Local): void {
    const { pod } = local;
    if (pod.spec.restartPolicy === 'Always') {
      this.#soon(50, 2500, () => this.#becomeReady(local));
      return;
    }
    this.#soon(20, 400, () => this.#becomeReady(local));
    const failing = Number(pod.metadata.annotations?.['failing'] ?? '0');
    const result = this.#parts.dice.below(100) < failing ? 'Failed' : 'Succeeded';
    this.#soon(500, 12_000, () => this.#finish(local, result));
  }

  async #becomeReady(local: Local): Promise<void> {
    if (local.state !== 'running' || local.isStopping || !local.isRunning) return;
    this.#set(local, 'ready');
    await this.#writeStatus(local);
  }

  async #finish(local: Local, result: 'Succeeded' | 'Failed'): Promise<void> {
    if (!local.isRunning || local.isStopping) return;
    this.#endProcess(local, result);
    this.#set(local, result);
    await this.#writeStatus(local);
  }

  #stop(local: Local): void {
    if (local.isStopping) return;
    local.isStopping = true;
    const { pod } = local;
    const { namespace, name, uid } = pod.metadata;
    this.#soon(50, 3000, async () => {
      this.#endProcess(local, 'killed');
      if (local.state !== 'Succeeded' && local.state !== 'Failed') {
        // A pod that never ran ends as one that failed.
        this.#set(local, 'Failed');
        await this.#writeStatus(local);
      }
      const body = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0, preconditions: { uid } };
      await this.#send('DELETE', `/api/v1/namespaces/${namespace}/pods/${name}`, body);
    });
  }

  #endProcess(local: Local, how: 'Succeeded' | 'Failed' | 'killed'): void {
    if (!local.isRunning) return;
    local.isRunning = false;
    this.#parts.witness.ended(this.name, local.pod, how);
  }

  #set(local: Local, state: Local['state']): void {
    local.state = state;
    local.changedAt = this.#time();
  }

  /** 10.<node>.<n>: each pod has its own. */
  #address(): string {
    const node = Number(this.name.replaceAll(/\D/g, '')) + 1;
    const count = this.#addresses++;
    return `10.${node}.${Math.floor(count / 250)}.${(count % 250) + 1}`;
  }

  async #writeStatus({ pod, state, startedAt, changedAt, podIP }: Local): Promise<void> {
    const { namespace, name, uid } = pod.metadata;
    const condition = (type: string, holds: boolean): PodCondition => ({
      type,
      status: holds ? 'True' : 'False',
      lastTransitionTime: changedAt,
    });
    const isReady = state === 'ready';
    const isOver = state === 'Succeeded' || state === 'Failed';
    const container = pod.spec.containers[0]?.name ?? '';
    const { image = '' } = pod.spec.containers[0] ?? {};
    const exitCode = state === 'Succeeded' ? 0 : 1;
    const finished = { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error', finishedAt: changedAt };
    const status = {
      phase: isOver ? state : state === 'new' ? 'Pending' : 'Running',
      ...(startedAt === undefined ? {} : { podIP, podIPs: [{ ip: podIP }], startTime: startedAt }),
      conditions: [condition('Initialized', true), condition('ContainersReady', isReady), condition('Ready', isReady)],
      containerStatuses: [
        {
          ...{ name: container, image, imageID: image, ready: isReady, started: isReady, restartCount: 0 },
          state: isOver ? { terminated: finished } : { running: { startedAt: startedAt ?? changedAt } },
        },
      ],
    };
    const body = { metadata: { uid }, status };
    await this.#send('PATCH', `/api/v1/namespaces/${namespace}/pods/${name}/status`, body);
  }

  async #renew(): Promise<void> {
    const body = { spec: { holderIdentity: this.name, renewTime: this.#micro() } };
    await this.#send('PATCH', `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${this.name}`, body);
  }

  async #report(): Promise<void> {
    await this.#send('PATCH', `/api/v1/nodes/${this.name}/status`, { status: { conditions: [this.#ready()] } });
  }

  /** Someone may have taken it for lost, a control plane that stood still for one. */
  async #compare(): Promise<void> {
    const nodes = this.#parts.server.objects('/nodes') as readonly Node[];
    const node = nodes.find(({ metadata }) => metadata.name === this.name);
    const isReady = node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    if (isReady === false) await this.#report();
  }

  #ready(): NonNullable<NonNullable<Node['status']>['conditions']>[number] {
    const time = this.#time();
    return {
      type: 'Ready',
      status: 'True',
      reason: 'KubeletReady',
      message: 'kubelet is posting ready status',
      lastHeartbeatTime: time,
    };
  }

  #every(ms: number, work: () => Promise<void>): void {
    const { clock, dice } = this.#parts;
    const tick = (): void => {
      if (this.#isUp) void work();
      clock.after(ms, tick);
    };
    clock.after(dice.below(ms), tick);
  }

  /** Later, if the node is up then. */
  #soon(least: number, most: number, work: () => Promise<void>): void {
    const { clock, dice } = this.#parts;
    const wait = dice.between(least, most) * this.#slowness;
    clock.after(wait, () => {
      if (this.#isUp) void work();
    });
  }

  async #send(method: string, target: string, body: unknown): Promise<void> {
    const contentType = method === 'PATCH' ? 'application/strategic-merge-patch+json' : 'application/json';
    await attempt(this.#parts.server, `kubelet ${this.name}`, { method, target, body, contentType });
  }

  #time(): string {
    return rfc3339(this.#parts.clock.now());
  }

  #micro(): string {
    return rfc3339Micro(this.#parts.clock.now());
  }
}

/** Someone who thought the node lost may have written otherwise. */
function showsReady({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
}

function phaseOf({ status }: Pod): Local['state'] {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed' ? status.phase : 'new';
}
