// What must be true once nothing goes wrong any more: every workload is what it says, in its pods and in its status, and
// nothing is left of what is gone.

import type { ApiObject, EndpointSlice, Pod, Service } from '../../../client/types.ts';
import type {
  DaemonSet,
  Deployment,
  Job,
  PodDisruptionBudget,
  ReplicaSet,
  StatefulSet,
} from '../../../controlplane/controllers/shared/objects.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { controllerUid, isActive, isLeaving, isReady, ordinalOf, targetNode } from './facts.ts';
import type { ControlPlaneWorld } from './world.ts';

const nameOf = ({ kind, metadata }: ApiObject): string => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;

class Survey {
  readonly wrong: string[] = [];
  readonly #world: ControlPlaneWorld;
  readonly #pods: readonly Pod[];

  constructor(world: ControlPlaneWorld) {
    this.#world = world;
    this.#pods = this.of<Pod>('/pods');
  }

  of<T>(resource: string): readonly T[] {
    const objects: readonly unknown[] = this.#world.server.objects(resource);
    return objects as readonly T[];
  }

  expect(holds: boolean, object: unknown, what: string): void {
    if (!holds) this.wrong.push(`${nameOf(object as ApiObject)} ${what}`);
  }

  podsOf(owner: unknown): readonly Pod[] {
    const { uid } = (owner as ApiObject).metadata;
    return this.#pods.filter((pod) => controllerUid(pod) === uid);
  }

  all(): void {
    for (const pod of this.#pods) this.expect(!isLeaving(pod), pod, 'is still being deleted');
    for (const each of this.of<Deployment>('apps/deployments')) this.deployment(each);
    for (const each of this.of<ReplicaSet>('apps/replicasets')) this.replicated(each);
    for (const each of this.of<ReplicaSet>('/replicationcontrollers')) this.replicated(each);
    for (const each of this.of<StatefulSet>('apps/statefulsets')) this.statefulSet(each);
    for (const each of this.of<DaemonSet>('apps/daemonsets')) this.daemonSet(each);
    for (const each of this.of<Job>('batch/jobs')) this.job(each);
    for (const each of this.of<Service>('/services')) this.service(each);
    for (const each of this.of<PodDisruptionBudget>('policy/poddisruptionbudgets')) this.budget(each);
    for (const each of this.of<ApiObject>('/namespaces')) {
      this.expect(each.metadata.deletionTimestamp === undefined, each, 'is still being deleted');
    }
  }

  deployment(deployment: Deployment): void {
    const { spec, status = {}, metadata } = deployment;
    const want = spec.replicas ?? 1;
    const { replicas = 0, updatedReplicas = 0, availableReplicas = 0, observedGeneration } = status;
    this.expect(observedGeneration === metadata.generation, deployment, 'has not been looked at');
    const is = `${replicas} pods, ${updatedReplicas} of them updated, ${availableReplicas} available`;
    this.expect(
      replicas === want && updatedReplicas === want && availableReplicas === want,
      deployment,
      `wants ${want} pods and has ${is}`,
    );
    const sets = this.of<ReplicaSet>('apps/replicasets').filter((set) => controllerUid(set) === metadata.uid);
    const pods = sets.flatMap((set) => this.podsOf(set)).filter(isActive);
    const image = spec.template?.spec?.containers[0]?.image;
    const current = pods.filter((pod) => pod.spec.containers[0]?.image === image);
    this.expect(
      current.length === want && pods.length === want,
      deployment,
      `wants ${want} pods of ${image}, there are ${current.length} of ${pods.length}`,
    );
    const old = sets.filter(
      (set) => (set.spec.replicas ?? 1) === 0 && set.spec.template?.spec?.containers[0]?.image !== image,
    );
    const limit = spec.revisionHistoryLimit ?? 10;
    this.expect(old.length <= limit, deployment, `keeps ${old.length} old sets where ${limit} are allowed`);
  }

  replicated(set: ReplicaSet): void {
    const { spec, status, metadata } = set;
    const want = spec.replicas ?? 1;
    const pods = this.podsOf(set).filter(isActive);
    this.expect(
      pods.length === want && status?.replicas === want,
      set,
      `wants ${want} pods and has ${pods.length}, ${status?.replicas} by its status`,
    );
    const ready = pods.filter(isReady).length;
    this.expect(
      (status?.readyReplicas ?? 0) === ready,
      set,
      `has ${ready} ready pods, ${status?.readyReplicas} by its status`,
    );
    this.expect(status?.observedGeneration === metadata.generation, set, 'has not been looked at');
  }

  statefulSet(set: StatefulSet): void {
    const { spec, status, metadata } = set;
    const want = spec.replicas ?? 1;
    const start = spec.ordinals?.start ?? 0;
    const ordinals = this.podsOf(set)
      .map(ordinalOf)
      .sort((a, b) => a - b);
    this.expect(
      sameJson(
        ordinals,
        Array.from({ length: want }, (_, index) => start + index),
      ),
      set,
      `wants ${want} pods from ${start}, there are ${ordinals.join(', ')}`,
    );
    // Upstream counts it from the first ordinal.
    const partition = start + (spec.updateStrategy?.rollingUpdate?.partition ?? 0);
    const image = spec.template.spec?.containers[0]?.image;
    for (const pod of this.podsOf(set)) {
      this.expect(isReady(pod), pod, 'is not ready');
      const isNew = pod.spec.containers[0]?.image === image;
      this.expect(isNew || ordinalOf(pod) < partition, pod, `is not updated, with partition ${partition}`);
    }
    this.expect(status?.observedGeneration === metadata.generation, set, 'has not been looked at');
    this.expect(
      (status?.readyReplicas ?? 0) === want && status?.replicas === want,
      set,
      `reports ${status?.readyReplicas} of ${want} ready`,
    );
  }

  daemonSet(set: DaemonSet): void {
    const nodes = this.podsOf(set)
      .filter(isActive)
      .map((pod) => targetNode(pod) ?? '')
      .sort();
    const wanted = this.#world.kubelets.map(({ name }) => name).sort();
    this.expect(sameJson(nodes, wanted), set, `is on ${nodes.join(', ')}`);
    const image = set.spec.template.spec?.containers[0]?.image;
    // As upstream, a pod that another set of the name left may count as updated by its generation.
    const generation = set.metadata.annotations?.['deprecated.daemonset.template.generation'];
    for (const pod of this.podsOf(set)) {
      const isSame = pod.metadata.labels?.['pod-template-generation'] === generation;
      const isUpdated = isSame || pod.spec.containers[0]?.image === image;
      this.expect(isReady(pod) && isUpdated, pod, 'is not ready, or not updated');
    }
    const { numberReady = 0, desiredNumberScheduled, updatedNumberScheduled } = set.status ?? {};
    const count = wanted.length;
    this.expect(
      numberReady === count && desiredNumberScheduled === count && updatedNumberScheduled === count,
      set,
      `reports ${numberReady} ready of ${desiredNumberScheduled}`,
    );
  }

  job(job: Job): void {
    const { status, spec } = job;
    const isFinished =
      status?.conditions?.some(({ type, status: value }) => /^(Complete|Failed)$/.test(type) && value === 'True') ===
      true;
    this.expect(isFinished || spec.parallelism === 0, job, `is not finished: ${JSON.stringify(status)}`);
    const left = this.podsOf(job).filter((pod) => isActive(pod) || (pod.metadata.finalizers ?? []).length > 0);
    this.expect(
      left.length === 0 || !isFinished,
      job,
      `is finished and has ${left.length} pods that run or are not counted`,
    );
    this.expect((status?.active ?? 0) === 0 || !isFinished, job, `is finished with ${status?.active} active pods`);
    const ttl = spec.ttlSecondsAfterFinished;
    this.expect(ttl === undefined || !isFinished, job, `is there ${ttl} seconds after its end`);
  }

  service(service: Service): void {
    const { selector } = service.spec ?? {};
    if (selector === undefined) return;
    const { namespace } = service.metadata;
    const ready = this.#pods
      .filter((pod) => pod.metadata.namespace === namespace && isActive(pod) && isReady(pod))
      .filter((pod) => Object.entries(selector).every(([key, value]) => pod.metadata.labels?.[key] === value))
      .map((pod) => pod.status?.podIP ?? '')
      .sort();
    const slices = this.of<EndpointSlice>('discovery.k8s.io/endpointslices').filter(
      ({ metadata }) =>
        metadata.namespace === namespace && metadata.labels?.['kubernetes.io/service-name'] === service.metadata.name,
    );
    const addresses = slices
      .flatMap(({ endpoints }) => endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready === true)
      .flatMap((endpoint) => endpoint.addresses)
      .sort();
    this.expect(
      sameJson(addresses, ready),
      service,
      `has endpoints ${addresses.join(', ')} where ${ready.join(', ')} are ready`,
    );
  }

  budget(budget: PodDisruptionBudget): void {
    const { namespace } = budget.metadata;
    const labels = budget.spec.selector?.matchLabels ?? {};
    const healthy = this.#pods.filter(
      (pod) =>
        pod.metadata.namespace === namespace &&
        isActive(pod) &&
        isReady(pod) &&
        Object.entries(labels).every(([key, value]) => pod.metadata.labels?.[key] === value),
    ).length;
    this.expect(
      budget.status?.currentHealthy === healthy,
      budget,
      `counts ${budget.status?.currentHealthy} healthy pods of ${healthy}`,
    );
    this.expect(budget.status?.observedGeneration === budget.metadata.generation, budget, 'has not been looked at');
  }

  /** Objects whose owners are gone, or some of them. */
  orphans(): void {
    const all = this.#world.server.resources().filter((resource) => !/(^|\/)events$/.test(resource));
    const objects = all.flatMap((resource) => this.of<ApiObject>(resource));
    const uids = new Set(objects.map(({ metadata }) => metadata.uid));
    for (const object of objects) {
      for (const { kind, name, uid } of object.metadata.ownerReferences ?? []) {
        this.expect(uids.has(uid), object, `is left by ${kind} ${name}`);
      }
      const { deletionTimestamp, finalizers = [] } = object.metadata;
      this.expect(deletionTimestamp === undefined, object, `waits to be deleted, for ${finalizers.join(', ')}`);
    }
  }
}

/** What is not yet as it should be. */
export function differences(world: ControlPlaneWorld): readonly string[] {
  const survey = new Survey(world);
  survey.all();
  survey.orphans();
  return survey.wrong;
}

const DELETED: readonly string[] = [
  '/pods',
  'apps/deployments',
  'apps/replicasets',
  'apps/statefulsets',
  'apps/daemonsets',
  'apps/controllerrevisions',
  'batch/jobs',
  'batch/cronjobs',
  '/replicationcontrollers',
  '/services',
  '/endpoints',
  'discovery.k8s.io/endpointslices',
  'policy/poddisruptionbudgets',
];

/** What is left though everything has been deleted. */
export function leftovers(world: ControlPlaneWorld): readonly string[] {
  const left = DELETED.flatMap((resource) => world.server.objects(resource)).map(
    (object) => `${nameOf(object)} is left`,
  );
  return [...left, ...differences(world)];
}
