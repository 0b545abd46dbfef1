// The list-watches of a control plane: one for each kind, shared by all controllers and the scheduler, started and stopped together. They read
// only; who writes is a controller.

import type { Namespace as CoreNamespace, ServiceAccount as CoreServiceAccount } from 'kubernetes-types/core/v1';
import { type Query, resourcePath } from '../client/paths.ts';
import { type ListWatcher, Reflector, type ReflectorOptions } from '../client/reflector.ts';
import type { Identified, ReadableStore } from '../client/store.ts';
import type {
  ConfigMap,
  EndpointSlice,
  Endpoints,
  Lease,
  Node,
  Pod,
  Secret,
  Service,
  Stored,
} from '../client/types.ts';
import { logWatch } from '../client/watch-log.ts';
import type { Clock } from '../lib/clock.ts';
import type { ClusterRole } from './controllers/clusterrole-aggregation/aggregate.ts';
import type { ResourceQuota } from './controllers/resourcequota/status.ts';
import { TOKEN_TYPE } from './controllers/serviceaccount-token/secret.ts';
import type {
  CertificateSigningRequest,
  ControllerRevision,
  CronJob,
  DaemonSet,
  Deployment,
  HorizontalPodAutoscaler,
  Job,
  PodDisruptionBudget,
  ReplicaSet,
  ReplicationController,
  StatefulSet,
} from './controllers/shared/objects.ts';
import type { Log } from './runtime.ts';
import type {
  CsiDriver,
  CsiNode,
  CsiStorageCapacity,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
  VolumeAttachment,
} from './storage/objects.ts';

export type Namespace = Stored<CoreNamespace>;
export type ServiceAccount = Stored<CoreServiceAccount>;

/** A change that a controller reacts to may leave these out of the stored copies: they only cost memory. */
function withoutManagedFields<T extends Identified>(object: T): T {
  if (object.metadata.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** A list-watch that lasts as long as someone uses it. */
interface Metadata {
  readonly store: ReadableStore<Identified>;
  readonly stop: AbortController;
  users: number;
}

/** One list-watch per kind for all controllers of the process. */
export class Informers {
  readonly #client: ListWatcher;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #random: () => number;
  /** Those of whole kinds, by the path of their collection. */
  readonly #whole = new Map<string, ReadableStore<Identified>>();
  readonly #metadata = new Map<string, Metadata>();
  readonly #runners: ((signal: AbortSignal) => Promise<void>)[] = [];
  readonly #synced: (() => Promise<void>)[] = [];
  readonly #relists: (() => Promise<void>)[] = [];
  readonly pods: ReadableStore<Pod>;
  readonly nodes: ReadableStore<Node>;
  readonly namespaces: ReadableStore<Namespace>;
  readonly serviceAccounts: ReadableStore<ServiceAccount>;
  /** Only those of type kubernetes.io/service-account-token. */
  readonly tokenSecrets: ReadableStore<Secret>;
  /** Only those called "kube-root-ca.crt". */
  readonly rootCaConfigMaps: ReadableStore<ConfigMap>;
  /** Of namespace kube-node-lease. */
  readonly nodeLeases: ReadableStore<Lease>;
  readonly persistentVolumes: ReadableStore<PersistentVolume>;
  readonly persistentVolumeClaims: ReadableStore<PersistentVolumeClaim>;
  readonly storageClasses: ReadableStore<StorageClass>;
  readonly csiDrivers: ReadableStore<CsiDriver>;
  readonly csiNodes: ReadableStore<CsiNode>;
  readonly volumeAttachments: ReadableStore<VolumeAttachment>;
  readonly csiStorageCapacities: ReadableStore<CsiStorageCapacity>;
  readonly clusterRoles: ReadableStore<ClusterRole>;
  readonly services: ReadableStore<Service>;
  readonly endpoints: ReadableStore<Endpoints>;
  readonly endpointSlices: ReadableStore<EndpointSlice>;
  readonly replicaSets: ReadableStore<ReplicaSet>;
  readonly deployments: ReadableStore<Deployment>;
  readonly jobs: ReadableStore<Job>;
  readonly cronJobs: ReadableStore<CronJob>;
  readonly podDisruptionBudgets: ReadableStore<PodDisruptionBudget>;
  readonly certificateSigningRequests: ReadableStore<CertificateSigningRequest>;
  readonly horizontalPodAutoscalers: ReadableStore<HorizontalPodAutoscaler>;
  readonly statefulSets: ReadableStore<StatefulSet>;
  readonly daemonSets: ReadableStore<DaemonSet>;
  readonly controllerRevisions: ReadableStore<ControllerRevision>;
  readonly replicationControllers: ReadableStore<ReplicationController>;
  readonly resourceQuotas: ReadableStore<ResourceQuota>;

  /** `random`: 0 ≤ x < 1, for the times between retries. */
  constructor(client: ListWatcher, clock: Clock, log: Log, random: () => number = Math.random) {
    this.#client = client;
    this.#clock = clock;
    this.#log = log;
    this.#random = random;
    const informer = <T extends Identified>(what: string, path: string, query?: Query): ReadableStore<T> => {
      const reflector = this.#reflector<T>(what, path, query === undefined ? {} : { query });
      this.#runners.push((signal) => reflector.run(signal));
      this.#synced.push(() => reflector.store.whenSynced());
      this.#relists.push(() => reflector.relist());
      if (query === undefined) this.#whole.set(path, reflector.store);
      return reflector.store;
    };
    const named = (name: string): Query => ({ fieldSelector: `metadata.name=${name}` });
    this.pods = informer<Pod>('pods', resourcePath('v1', 'pods'));
    this.nodes = informer<Node>('nodes', resourcePath('v1', 'nodes'));
    this.namespaces = informer<Namespace>('namespaces', resourcePath('v1', 'namespaces'));
    this.serviceAccounts = informer('serviceaccounts', resourcePath('v1', 'serviceaccounts'));
    const tokens = { fieldSelector: `type=${TOKEN_TYPE}` };
    this.tokenSecrets = informer('token secrets', resourcePath('v1', 'secrets'), tokens);
    this.rootCaConfigMaps = informer<ConfigMap>(
      'configmaps',
      resourcePath('v1', 'configmaps'),
      named('kube-root-ca.crt'),
    );
    this.nodeLeases = informer<Lease>(
      'leases',
      resourcePath('coordination.k8s.io/v1', 'leases', { namespace: 'kube-node-lease' }),
    );
    const core = <T extends Identified>(plural: string) => informer<T>(plural, resourcePath('v1', plural));
    const storage = <T extends Identified>(plural: string) =>
      informer<T>(plural, resourcePath('storage.k8s.io/v1', plural));
    this.persistentVolumes = core('persistentvolumes');
    this.persistentVolumeClaims = core('persistentvolumeclaims');
    this.storageClasses = storage('storageclasses');
    this.csiDrivers = storage('csidrivers');
    this.csiNodes = storage('csinodes');
    this.volumeAttachments = storage('volumeattachments');
    this.csiStorageCapacities = storage('csistoragecapacities');
    this.clusterRoles = informer('clusterroles', resourcePath('rbac.authorization.k8s.io/v1', 'clusterroles'));
    this.services = core('services');
    this.endpoints = core('endpoints');
    this.endpointSlices = informer('endpointslices', resourcePath('discovery.k8s.io/v1', 'endpointslices'));
    const apps = <T extends Identified>(plural: string) => informer<T>(plural, resourcePath('apps/v1', plural));
    this.replicaSets = apps('replicasets');
    this.deployments = apps('deployments');
    this.certificateSigningRequests = informer(
      'certificatesigningrequests',
      resourcePath('certificates.k8s.io/v1', 'certificatesigningrequests'),
    );
    this.horizontalPodAutoscalers = informer(
      'horizontalpodautoscalers',
      resourcePath('autoscaling/v2', 'horizontalpodautoscalers'),
    );
    this.jobs = informer('jobs', resourcePath('batch/v1', 'jobs'));
    this.cronJobs = informer('cronjobs', resourcePath('batch/v1', 'cronjobs'));
    this.podDisruptionBudgets = informer('poddisruptionbudgets', resourcePath('policy/v1', 'poddisruptionbudgets'));
    this.statefulSets = apps('statefulsets');
    this.daemonSets = apps('daemonsets');
    this.controllerRevisions = apps('controllerrevisions');
    this.replicationControllers = core('replicationcontrollers');
    this.resourceQuotas = core('resourcequotas');
  }

  #reflector<T extends Identified>(
    what: string,
    path: string,
    options: Pick<ReflectorOptions<T>, 'query' | 'metadataOnly'>,
  ): Reflector<T> {
    return new Reflector<T>({
      client: this.#client,
      path,
      clock: this.#clock,
      random: this.#random,
      transform: withoutManagedFields,
      ...options,
      ...logWatch(what, this.#log),
    });
  }

  /** The store of a whole kind, where there is one; `path` is its collection. */
  whole(path: string): ReadableStore<Identified> | undefined {
    return this.#whole.get(path);
  }

  /** A list-watch of one more kind, of the objects' metadata alone, until `signal` aborts. There is one, however many ask for it. */
  watchMetadata(what: string, path: string, signal: AbortSignal): ReadableStore<Identified> {
    const watched = this.#metadata.get(path) ?? this.#startMetadata(what, path);
    watched.users++;
    const leave = (): void => {
      watched.users--;
      if (watched.users > 0) return;
      watched.stop.abort();
      this.#metadata.delete(path);
    };
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    return watched.store;
  }

  #startMetadata(what: string, path: string): Metadata {
    const reflector = this.#reflector<Identified>(what, path, { metadataOnly: true });
    const metadata = { store: reflector.store, stop: new AbortController(), users: 0 };
    void reflector.run(metadata.stop.signal);
    this.#metadata.set(path, metadata);
    return metadata;
  }

  /** Runs every list-watch until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#runners.map((run) => run(signal)));
  }

  /** Lists everything again: resolves once no store is older than this call. */
  async relist(): Promise<void> {
    await Promise.all(this.#relists.map((relist) => relist()));
  }

  /** Resolves once every store holds a complete list. */
  async whenSynced(): Promise<void> {
    await Promise.all(this.#synced.map((synced) => synced()));
  }
}
