// What must be true at every write. A controller acts on its cache, which lags, and remembers what it did only as long as its
// process lives: so the bounds are those of any state that a cache may still show, and are exceeded at most by what another
// process did meanwhile, or by writes whose answers were lost. That is what kube-controller-manager guarantees, and no more.

import type { Pod } from '../../../client/types.ts';
import type {
  DaemonSet,
  Deployment,
  Job,
  ReplicaSet,
  StatefulSet,
} from '../../../controlplane/controllers/shared/objects.ts';
import type { SimControlPlaneServer, SimRequest, Written } from '../../../labs/sim/control-plane/server.ts';
import type { Weather } from '../../../labs/sim/weather.ts';
import { type Clock, type MonotonicMs, plusMs } from '../../../lib/clock.ts';
import {
  type Bounds,
  boundsOf,
  controllerKind,
  controllerUid,
  isActive,
  isLeaving,
  isOver,
  isReady,
  targetNode,
} from './facts.ts';
import { JobCounts } from './job-counts.ts';
import { NodeRules } from './node-rules.ts';
import { Recent } from './recent.ts';
import { StatefulRules } from './stateful-rules.ts';

/** How old a cache may be at most, by the weather: events take some ms, syncs of several requests some more. ms. */
const FAIR_MS = 3000;
const BAD_MS = 150_000;

/** A creation that adds to what is allowed: by another process than the one that creates now, or without an answer. */
interface Creation {
  readonly at: MonotonicMs;
  readonly actor: string;
}

interface DeploymentFacts {
  readonly bounds: Recent<Bounds>;
  /** A pod became unavailable that the deployment had not chosen. */
  disturbedAt: MonotonicMs | undefined;
  /** Its sets are scaled in proportion, whatever of their pods is available: its size changed then, or it is paused. */
  scaledAt: MonotonicMs | undefined;
  size: number;
  paused: boolean;
  /** Sizes of its sets were changed last by this process. */
  readonly resized: Creation[];
}

export class Rules {
  readonly broken: string[] = [];
  readonly nodes: NodeRules;
  readonly #clock: Clock;
  readonly #weather: Weather;
  readonly #server: SimControlPlaneServer;
  /** By uid. */
  readonly #pods = new Map<string, Pod>();
  /** By uid of the pod: since when it has been ready. */
  readonly #readySince = new Map<string, MonotonicMs>();
  readonly #podsOf = new Map<string, Set<string>>();
  readonly #sizes = new Map<string, Recent<number>>();
  readonly #sets = new Map<string, ReplicaSet>();
  /** When a pod of a set was last lost, or became not ready, for another reason than its size. */
  readonly #disturbedSets = new Map<string, MonotonicMs>();
  readonly #deployments = new Map<string, DeploymentFacts>();
  readonly #creations = new Map<string, Creation[]>();
  readonly #jobs: JobCounts;
  readonly #stateful: StatefulRules;

  constructor(clock: Clock, weather: Weather, server: SimControlPlaneServer) {
    this.#clock = clock;
    this.#weather = weather;
    this.#server = server;
    this.nodes = new NodeRules((what) => this.break(what));
    this.#jobs = new JobCounts((what) => this.break(what));
    this.#stateful = new StatefulRules(
      clock,
      (what) => this.break(what),
      () => this.staleMs,
    );
  }

  break(what: string): void {
    this.broken.push(what);
  }

  /** How old what a controller acts on may be now, ms. */
  get staleMs(): number {
    const since = plusMs(this.#clock.monotonic(), -FAIR_MS);
    return this.#weather.isFairSince(since) ? FAIR_MS : BAD_MS;
  }

  podsOf(uid: string): readonly Pod[] {
    return [...(this.#podsOf.get(uid) ?? [])].flatMap((each) => this.#pods.get(each) ?? []);
  }

  /** A write without an answer: who sent it may send it again. */
  uncertain({ method, body }: SimRequest): void {
    this.#weather.bad(60_000);
    if (method !== 'POST' || typeof body !== 'object' || body === null || !('metadata' in body)) return;
    const owner = controllerUid(body as Pod);
    if (owner !== undefined) this.#createdFor(owner, 'nobody knows');
  }

  written(written: Written): void {
    const object: unknown = written.object;
    switch (written.resource) {
      case '/pods':
        this.#pod(written, object as Pod, (written.previous as unknown as Pod | undefined) ?? undefined);
        return;
      case 'apps/replicasets':
      case '/replicationcontrollers':
        this.#set(written, object as ReplicaSet);
        return;
      case 'apps/deployments':
        this.#deployment(written, object as Deployment);
        return;
      case 'batch/jobs':
        this.#size(written, (object as Job).spec.parallelism ?? 1);
        this.#jobs.written(written.type, object as Job);
        return;
      case 'apps/daemonsets':
        // A pod of the template before, and beside it one of today's, where an update surges.
        this.#size(written, (object as DaemonSet).spec.updateStrategy?.rollingUpdate?.maxSurge ? 2 : 1);
        return;
      case 'apps/statefulsets':
        this.#stateful.written(written.type, object as StatefulSet);
        return;
      default:
        return;
    }
  }

  #size({ object }: Written, size: number): void {
    const known = this.#sizes.get(object.metadata.uid);
    if (known === undefined) this.#sizes.set(object.metadata.uid, new Recent(this.#clock, size));
    else if (known.now !== size) known.set(size);
  }

  #createdFor(owner: string, actor: string): void {
    const list = this.#creations.get(owner) ?? [];
    list.push({ at: this.#clock.monotonic(), actor });
    this.#creations.set(owner, list);
  }

  /** Creations that the cache of `actor` may not show. */
  #unknownTo(actor: string, list: readonly Creation[] | undefined): number {
    const from = this.#clock.monotonic() - this.staleMs;
    return (list ?? []).filter((each) => each.actor !== actor && each.at >= from).length;
  }

  // ---------------------------------------------------------------- pods

  #pod({ type, actor }: Written, pod: Pod, previous: Pod | undefined): void {
    const { uid } = pod.metadata;
    const owner = controllerUid(pod);
    if (!isReady(pod)) this.#readySince.delete(uid);
    else if (!this.#readySince.has(uid)) this.#readySince.set(uid, this.#clock.monotonic());
    if (type === 'DELETED') {
      this.#pods.delete(uid);
      if (owner !== undefined) this.#podsOf.get(owner)?.delete(uid);
      // Without a node it goes at once.
      if (previous !== undefined && !isLeaving(previous)) this.#leaves(actor, previous);
    } else {
      this.#pods.set(uid, pod);
      const before = previous === undefined ? undefined : controllerUid(previous);
      if (before !== undefined && before !== owner) this.#podsOf.get(before)?.delete(uid);
      if (owner !== undefined) this.#podsOf.set(owner, (this.#podsOf.get(owner) ?? new Set<string>()).add(uid));
      if (type === 'ADDED' && owner !== undefined) this.#created(actor, pod, owner);
      if (previous !== undefined) this.#changed(actor, pod, previous);
    }
    this.#jobs.pod(type, pod);
    this.#stateful.pod(type, actor, pod, previous);
  }

  #created(actor: string, pod: Pod, owner: string): void {
    const kind = controllerKind(pod) ?? '';
    const slack = this.#unknownTo(actor, this.#creations.get(owner));
    this.#createdFor(owner, actor);
    const active = this.podsOf(owner).filter(isActive);
    const most = Math.max(0, ...(this.#sizes.get(owner)?.within(this.staleMs) ?? []));
    const name = `${kind} of pod ${pod.metadata.namespace}/${pod.metadata.name}`;
    if (kind === 'DaemonSet') {
      const node = targetNode(pod);
      const there = active.filter((each) => targetNode(each) === node).length;
      if (there > most + slack) this.break(`${name}: ${there} pods for ${node} where ${most} are allowed`);
    } else if (kind === 'ReplicaSet' || kind === 'ReplicationController' || kind === 'Job') {
      if (active.length > most + slack) {
        this.break(
          `${name}: ${active.length} active pods where ${most} are wanted, and ${slack} unknown to its controller`,
        );
      }
    }
  }

  #changed(actor: string, pod: Pod, previous: Pod): void {
    const name = `pod ${pod.metadata.namespace}/${pod.metadata.name}`;
    const node = previous.spec.nodeName ?? '';
    if (node !== '' && node !== pod.spec.nodeName) this.break(`${name} was bound to ${node}, now ${pod.spec.nodeName}`);
    if (isOver(previous) && !isOver(pod)) this.break(`${name} has ended and runs again`);
    if (node === '' && pod.spec.nodeName !== undefined)
      this.nodes.bound(actor, pod, [...this.#pods.values()], this.staleMs, this.#clock.monotonic());
    if (isLeaving(pod) && !isLeaving(previous)) this.#leaves(actor, previous);
    else if (controllerUid(previous) !== controllerUid(pod)) {
      this.#disturb(previous);
      this.#disturb(pod);
    } else if (isReady(previous) && !isReady(pod)) this.#disturb(previous);
  }

  /** A pod, as it was before, is deleted. */
  #leaves(actor: string, pod: Pod): void {
    const set = this.#sets.get(controllerUid(pod) ?? '');
    const deployment = set === undefined ? undefined : this.#deployments.get(controllerUid(set) ?? '');
    if (set === undefined || deployment === undefined) return;
    const { uid } = set.metadata;
    const active =
      this.podsOf(uid).filter((each) => isActive(each) && each.metadata.uid !== pod.metadata.uid).length + 1;
    const isChosen = actor.startsWith('plane') && active > (set.spec.replicas ?? 1);
    if (!isChosen) {
      this.#disturb(pod);
      return;
    }
    const stale = this.staleMs;
    const from = this.#clock.monotonic() - stale;
    // One that is not known to be ready goes before those that are.
    const readySince = this.#readySince.get(pod.metadata.uid);
    if (readySince === undefined || readySince > from) return;
    const { disturbedAt, scaledAt, bounds } = deployment;
    if (disturbedAt !== undefined && disturbedAt > from) return;
    const sets = [...this.#sets.values()].filter((each) => controllerUid(each) === controllerUid(set));
    // Also before they were the deployment's.
    if (sets.some((each) => (this.#disturbedSets.get(each.metadata.uid) ?? from) > from)) return;
    if (scaledAt !== undefined && scaledAt > from) return;
    // Two that lead for a moment may both have taken some.
    if (new Set(deployment.resized.filter(({ at }) => at >= from).map((each) => each.actor)).size > 1) return;
    const left = sets
      .flatMap((each) => this.podsOf(each.metadata.uid))
      .filter((each) => !isLeaving(each) && isReady(each) && each.metadata.uid !== pod.metadata.uid).length;
    const least = Math.min(...bounds.within(stale).map(({ available }) => available));
    if (left < least) {
      const { namespace, name } = pod.metadata;
      this.break(`pod ${namespace}/${name} is deleted, and ${left} are available where ${least} must be`);
    }
  }

  #disturb(pod: Pod): void {
    const set = this.#sets.get(controllerUid(pod) ?? '');
    if (set === undefined) return;
    const now = this.#clock.monotonic();
    this.#disturbedSets.set(set.metadata.uid, now);
    const deployment = this.#deployments.get(controllerUid(set) ?? '');
    if (deployment !== undefined) deployment.disturbedAt = now;
  }

  // ---------------------------------------------------------------- sets and deployments

  #set(written: Written, set: ReplicaSet): void {
    const { type, actor } = written;
    const { uid } = set.metadata;
    if (type === 'DELETED') {
      this.#sets.delete(uid);
      this.#sizes.get(uid)?.set(0);
      return;
    }
    const before = this.#sets.get(uid)?.spec.replicas ?? 0;
    const size = set.spec.replicas ?? 1;
    this.#sets.set(uid, set);
    this.#size(written, size);
    const owner = controllerUid(set) ?? '';
    const deployment = this.#deployments.get(owner);
    if (deployment === undefined || before === size) return;
    const others = this.#unknownTo(actor, deployment.resized);
    deployment.resized.push({ at: this.#clock.monotonic(), actor });
    if (size < before || !actor.startsWith('plane') || others > 0) return;
    const sets = [...this.#sets.values()].filter((each) => controllerUid(each) === owner);
    const sum = sets.reduce((total, each) => total + (each.spec.replicas ?? 1), 0);
    const stale = this.staleMs;
    // In bad weather the sizes of its other sets may be older than this process's last change of them.
    if (stale > FAIR_MS) return;
    const most = Math.max(...deployment.bounds.within(stale).map((bounds) => bounds.most));
    if (sum > most)
      this.break(`replica sets of ${written.object.metadata.name} want ${sum} pods where ${most} are allowed`);
  }

  #deployment({ type, object }: Written, deployment: Deployment): void {
    const { uid } = object.metadata;
    if (type === 'DELETED') {
      this.#deployments.delete(uid);
      return;
    }
    const isGoing = deployment.metadata.deletionTimestamp !== undefined;
    const bounds = isGoing ? { most: boundsOf(deployment).most, available: 0 } : boundsOf(deployment);
    const known = this.#deployments.get(uid);
    const { replicas: size = 1, paused = false } = deployment.spec;
    if (known === undefined) {
      const never = { disturbedAt: undefined, scaledAt: undefined };
      this.#deployments.set(uid, { ...never, bounds: new Recent(this.#clock, bounds), size, paused, resized: [] });
      return;
    }
    known.bounds.set(bounds);
    // While it is paused its sets are made to fit the strategy too.
    if (size !== known.size || paused || known.paused) known.scaledAt = this.#clock.monotonic();
    known.size = size;
    known.paused = paused;
  }

  /** Objects as they are now. */
  objects(resource: string): ReturnType<SimControlPlaneServer['objects']> {
    return this.#server.objects(resource);
  }
}
