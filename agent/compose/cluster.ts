// The agent's side toward the API server: client, events, objects, pods of the server, mirrors of static pods. Or, without
// --kubeconfig, the replacements of standalone mode. Part of the composition: it decides nothing.

import { ApiClient } from '../../client/api.ts';
import { type ClusterAccess, loadKubeconfig } from '../../client/kubeconfig.ts';
import { EVENT_DELAY_MS, Recorder } from '../../client/recorder.ts';
import type { Node } from '../../client/types.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import type { AdmissionNode } from '../admission/admission.ts';
import { createApiObjects } from '../api/api-objects.ts';
import { createNodeWatch, type NodeWatch } from '../api/node-watch.ts';
import { createPodApi } from '../api/pod-api.ts';
import { createApiPodSource } from '../api/pod-source.ts';
import { createLogRecorder, createNoObjects } from '../api/standalone.ts';
import type { AgentOptions } from '../config/options.ts';
import { defaultLabels } from '../node/register.ts';
import type { EventRecorder, FollowedObjects, ObjectReader, PodApi, PodSource } from '../ports/api.ts';
import { createFilePodSource } from '../sources/file-source.ts';
import { createHttpPodSource } from '../sources/http-source.ts';
import { MirrorPods } from '../sources/mirror-pods.ts';
import { type MirroredPods, MirrorReconciler } from '../sources/mirror-reconciler.ts';
import { type AgentBase, KUBELET_VERSION } from './base.ts';
import type { Machine } from './machine.ts';

export interface Cluster {
  /** Absent in standalone mode. */
  readonly client?: ApiClient;
  readonly podApi?: PodApi;
  readonly recorder: EventRecorder;
  readonly objects: ObjectReader;
  /** Absent in standalone mode: static pods refer to nothing. */
  readonly followed?: FollowedObjects;
  readonly sources: readonly PodSource[];
  /** The node as admission is to see it. */
  node(): AdmissionNode;
  /** This node's object as it is watched; undefined while it is not known, and in standalone mode. */
  watchedNode(): Node | undefined;
  /** Begins to follow the server, and keeps mirrors of these pods. */
  start(pods: MirroredPods): void;
  close(): void;
}

/**
 * How to reach the API server; undefined in standalone mode. Rejects with UserError when the kubeconfig cannot be used,
 * or the configuration needs an API server.
 */
export async function clusterAccess(options: AgentOptions): Promise<ClusterAccess | undefined> {
  const { staticPodPath, staticPodURL, authentication, authorization, enableServer } = options.config;
  if (staticPodURL !== '' && !(/^https?:\/\//.test(staticPodURL) && URL.canParse(staticPodURL))) {
    throw new UserError(`staticPodURL must be an http or https URL, not "${staticPodURL}"`);
  }
  if (options.kubeconfig !== undefined) return await loadKubeconfig(options.kubeconfig);
  if (staticPodPath === '' && staticPodURL === '') {
    throw new UserError('nothing to run: give --kubeconfig, or static pods by --pod-manifest-path or staticPodURL');
  }
  // The kubelet does not serve its API either when it cannot authorize callers.
  if (enableServer && authentication.webhook.enabled) {
    throw new UserError(
      'no API server to check tokens with: without --kubeconfig give --authentication-token-webhook=false',
    );
  }
  if (enableServer && authorization.mode !== 'AlwaysAllow') {
    throw new UserError(
      'no API server to ask who may do what: without --kubeconfig give --authorization-mode=AlwaysAllow',
    );
  }
  return undefined;
}

/** `access` as `clusterAccess` gave it. */
export function createCluster(base: AgentBase, access: ClusterAccess | undefined, machine: Machine): Cluster {
  const statics = staticSources(base);
  if (access === undefined) return standalone(base, machine, statics);
  const { options, clock, tracer, log, signals } = base;
  const client = new ApiClient(access, { tracer, clock, userAgent: `nodelet-agent/${KUBELET_VERSION}` });
  const recorder = eventRecorder(base, client);
  const watch = nodeWatch(base, client);
  const objects = createApiObjects({
    client,
    clock,
    changeDetection: options.config.configMapAndSecretChangeDetectionStrategy,
    ttlMs: () => objectTtlMs(watch.node()),
    onFailure: (what, error) =>
      log(what === 'services' ? 'warn' : 'debug', `Failed to watch ${what}: ${errorMessage(error)}`),
  });
  const mirrors = new MirrorPods(options.nodeName);
  return {
    client,
    recorder,
    objects,
    followed: objects.followed,
    podApi: mirrors.podApi(createPodApi(client)),
    sources: [
      mirrors.apiSource(watch.startAfterSync(podSource(base, client))),
      ...statics.map((source) => mirrors.staticSource(source)),
    ],
    node: () => admissionNode(options, machine, watch.node()),
    watchedNode: () => watch.node(),
    start: (pods) => {
      watch.start();
      objects.start();
      const node = (): Node | undefined => watch.node();
      const reconciler = new MirrorReconciler({ mirrors, pods, client, node, clock, tracer, log });
      signals.podGone.subscribe(() => reconciler.reconcile());
      signals.nodeObjectChanged.subscribe(() => reconciler.reconcile());
    },
    close: () => {
      watch.stop();
      objects.stop();
      recorder.close();
      client.close();
    },
  };
}

function eventRecorder({ options, clock, tracer, log }: AgentBase, client: ApiClient): Recorder {
  return new Recorder({
    client,
    clock,
    tracer,
    component: 'kubelet',
    delayMs: EVENT_DELAY_MS,
    host: options.nodeName,
    onDropped: (what, error) => log('warn', `event not recorded: ${what}: ${errorMessage(error)}`),
  });
}

function nodeWatch({ options, clock, log, signals }: AgentBase, client: ApiClient): NodeWatch {
  const { nodeName } = options;
  return createNodeWatch({
    client,
    nodeName,
    clock,
    onChange: () => signals.nodeObjectChanged.emit(),
    onError: (message) => log('debug', message ?? `the Node ${nodeName} is watched again`),
  });
}

function podSource({ options, clock, log }: AgentBase, client: ApiClient): PodSource {
  return createApiPodSource({
    client,
    nodeName: options.nodeName,
    clock,
    onError: (message) =>
      message === undefined
        ? log('info', 'the API server is reachable again')
        : log('warn', `${message}; pods that run keep running`),
  });
}

/** `node`: undefined until it was read. */
function admissionNode(options: AgentOptions, machine: Machine, node: Node | undefined): AdmissionNode {
  if (node === undefined) return initialNode(options, machine);
  return {
    name: options.nodeName,
    labels: node.metadata.labels ?? {},
    taints: node.spec?.taints ?? [],
    // Extended resources are only in the Node; all other figures come from this machine.
    allocatable: { ...node.status?.allocatable, ...machine.allocatable },
    supplementalGroupsPolicy: supportsGroupsPolicy(node.status),
  };
}

/** No API server at all: static pods, and the log instead of events. */
function standalone({ options, log }: AgentBase, machine: Machine, sources: readonly PodSource[]): Cluster {
  log('info', 'no API server: only static pods run here');
  return {
    recorder: createLogRecorder(log),
    objects: createNoObjects(),
    sources,
    node: () => initialNode(options, machine),
    watchedNode: () => undefined,
    start: () => undefined,
    close: () => undefined,
  };
}

/** With the field that is newer than the types (KEP-3619). A node lists only the features that it has. */
type FeaturedStatus = NonNullable<Node['status']> & {
  readonly features?: { readonly supplementalGroupsPolicy?: boolean };
};

function supportsGroupsPolicy(status: FeaturedStatus = {}): boolean {
  return status.features?.supplementalGroupsPolicy === true;
}

/** For how long an object that was read is used, in ms: what the control plane wrote at the Node, else a minute. */
function objectTtlMs(node: Node | undefined): number {
  const seconds = Number(node?.metadata.annotations?.['node.alpha.kubernetes.io/ttl'] ?? 'unset');
  return Number.isInteger(seconds) && seconds >= 0 ? seconds * 1000 : 60_000;
}

/** The node as it will register, before its object is known. */
function initialNode({ nodeName, nodeLabels, config }: AgentOptions, { facts, allocatable }: Machine): AdmissionNode {
  return {
    name: nodeName,
    labels: { ...defaultLabels(facts, nodeName), ...nodeLabels },
    taints: config.registerWithTaints,
    allocatable,
  };
}

function staticSources({ options, clock, tracer, log }: AgentBase): readonly PodSource[] {
  const { config, nodeName } = options;
  const { staticPodPath, staticPodURL, staticPodURLHeader, fileCheckFrequency, httpCheckFrequency } = config;
  const sources: PodSource[] = [];
  if (staticPodPath !== '') {
    sources.push(createFilePodSource({ path: staticPodPath, nodeName, checkMs: fileCheckFrequency, clock, log }));
  }
  if (staticPodURL !== '') {
    const headers = staticPodURLHeader;
    const checkMs = httpCheckFrequency;
    sources.push(createHttpPodSource({ url: staticPodURL, headers, nodeName, checkMs, clock, tracer, log }));
  }
  return sources;
}
