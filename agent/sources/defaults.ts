// The API's defaults, and the kubelet's additions to a static pod: an annotated name, a uid made of
// the content, the node, a toleration. No I/O and no validation.

import { createHash } from 'node:crypto';
import type { Container, Pod } from '../../client/types.ts';
import { imageTag } from '../../lib/image.ts';
import { CONFIG_HASH, CONFIG_SEEN, CONFIG_SOURCE } from '../model/static-pods.ts';
import { kubeletStaticUid } from './kubelet-static-uid.ts';

/** A pod as a manifest has it: of the right form, and nothing else is sure. */
export interface PodManifest {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
    readonly creationTimestamp?: string;
  };
  readonly spec?: Partial<Pod['spec']>;
}

export interface StaticPodOrigin {
  readonly source: 'file' | 'http';
  /** The path or the URL. */
  readonly location: string;
  readonly nodeName: string;
  /** RFC 3339, with fraction. */
  readonly seen: string;
}

/** The pod to run. */
export function staticPod(manifest: PodManifest, origin: StaticPodOrigin): Pod {
  const spec = defaultSpec(structuredClone(manifest.spec ?? {}));
  const { name = '', namespace = '', labels, annotations, creationTimestamp } = manifest.metadata ?? {};
  const uid = manifest.metadata?.uid || contentUid({ ...manifest, spec }, origin);
  const { nodeName, source, seen } = origin;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${name}-${nodeName.toLowerCase()}`,
      namespace: namespace === '' ? 'default' : namespace,
      uid,
      resourceVersion: '',
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
      ...(labels === undefined ? {} : { labels }),
      annotations: { ...annotations, [CONFIG_HASH]: uid, [CONFIG_SEEN]: seen, [CONFIG_SOURCE]: source },
    },
    spec: { ...spec, nodeName, tolerations: tolerations(spec, source) },
    status: { phase: 'Pending' },
  };
}

/** 32 hexadecimal digits, the same for the same manifest in the same place on the same node: a kubelet's where possible. */
function contentUid(
  manifest: PodManifest & { readonly spec: Pod['spec'] },
  { source, location, nodeName }: StaticPodOrigin,
): string {
  const from = source === 'file' ? `host:${nodeName}file:${location}` : `url:${location}`;
  return (
    kubeletStaticUid(manifest.metadata ?? {}, manifest.spec, from) ??
    createHash('md5').update(from).update(canonical(manifest)).digest('hex')
  );
}

/** JSON with sorted keys: the order in which a person wrote the fields is no difference. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}

/** A pod from a file is never evicted because of its node's conditions. */
function tolerations(spec: Pod['spec'], source: StaticPodOrigin['source']): NonNullable<Pod['spec']['tolerations']> {
  const requested = spec.tolerations ?? [];
  if (source !== 'file') return requested;
  const others = requested.filter(
    ({ key, operator, effect }) => key || operator !== 'Exists' || effect !== 'NoExecute',
  );
  return [...others, { operator: 'Exists', effect: 'NoExecute' }];
}

function defaultSpec(requested: Partial<Pod['spec']>): Pod['spec'] {
  const spec: Pod['spec'] = { ...requested, containers: requested.containers ?? [] };
  spec.restartPolicy ??= 'Always';
  spec.dnsPolicy ??= 'ClusterFirst';
  spec.terminationGracePeriodSeconds ??= 30;
  spec.schedulerName ??= 'default-scheduler';
  spec.securityContext ??= {};
  spec.enableServiceLinks ??= true;
  for (const container of [...(spec.initContainers ?? []), ...spec.containers]) {
    defaultContainer(container, spec.hostNetwork === true);
  }
  for (const volume of spec.volumes ?? []) {
    if (Object.keys(volume).every((field) => field === 'name')) volume.emptyDir = {};
    if (volume.hostPath !== undefined) volume.hostPath.type ??= '';
    for (const source of [volume.downwardAPI, volume.projected]) {
      if (source !== undefined) source.defaultMode ??= 0o644;
    }
    const projected = volume.projected?.sources?.map(({ downwardAPI }) => downwardAPI) ?? [];
    for (const { fieldRef } of [volume.downwardAPI, ...projected].flatMap((each) => each?.items ?? [])) {
      if (fieldRef !== undefined) fieldRef.apiVersion ??= 'v1';
    }
  }
  return spec;
}

function defaultContainer(container: Container, hostNetwork: boolean): void {
  if (container.image) container.imagePullPolicy ??= imageTag(container.image) === 'latest' ? 'Always' : 'IfNotPresent';
  container.terminationMessagePath ??= '/dev/termination-log';
  container.terminationMessagePolicy ??= 'File';
  container.resources ??= {};
  const { limits } = container.resources;
  if (limits !== undefined) container.resources.requests = { ...limits, ...container.resources.requests };
  for (const port of container.ports ?? []) {
    port.protocol ??= 'TCP';
    if (hostNetwork) port.hostPort ??= port.containerPort;
  }
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fieldRef !== undefined) valueFrom.fieldRef.apiVersion ??= 'v1';
  }
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (probe === undefined) continue;
    probe.timeoutSeconds ??= 1;
    probe.periodSeconds ??= 10;
    probe.successThreshold ??= 1;
    probe.failureThreshold ??= 3;
    if (probe.grpc !== undefined) probe.grpc.service ??= '';
  }
  const { livenessProbe, readinessProbe, startupProbe, lifecycle } = container;
  for (const handler of [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop]) {
    if (handler?.httpGet === undefined) continue;
    handler.httpGet.path ??= '/';
    handler.httpGet.scheme ??= 'HTTP';
  }
}
