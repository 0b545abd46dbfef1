// A span as the kubelet names it in OpenTelemetry: "runtime.v1.RuntimeService/RunPodSandbox", and the attributes of the semantic
// conventions for Kubernetes and for RPC. What the kubelet has no name for is below `nodelet.`. Pure.

import type { Span, SpanAttribute } from './trace.ts';

const CALLS: ReadonlySet<Span['kind']> = new Set(['cri', 'csi', 'api', 'cni', 'probe']);

const IMAGE_CALLS = /^(ListImages|ImageStatus|PullImage|RemoveImage|ImageFsInfo)$/;

/** As the gRPC instrumentation of the kubelet names services. */
function serviceOf({ kind, name, durationMs }: Span): string | undefined {
  // An event is no call.
  if (kind !== 'cri' || durationMs === 0) return undefined;
  return IMAGE_CALLS.test(name) ? 'runtime.v1.ImageService' : 'runtime.v1.RuntimeService';
}

/** The kubelet's SyncPodType: what a round was begun for. */
function updateType({ name, cause = '' }: Span): string | undefined {
  if (name !== 'syncPod') return undefined;
  return cause.includes('pod added') ? 'create' : cause.includes('pod updated') ? 'update' : 'sync';
}

export interface KubeletSpan {
  readonly name: string;
  /** A call of another program: OpenTelemetry's kind CLIENT. */
  readonly isCall: boolean;
  /** Without those that have no value. */
  readonly attributes: readonly (readonly [key: string, value: NonNullable<SpanAttribute>])[];
}

export function kubeletSpan(span: Span): KubeletSpan {
  const { attributes, pod, cause, kind, name } = span;
  const service = serviceOf(span);
  const all: readonly (readonly [string, SpanAttribute])[] = [
    ['nodelet.kind', kind],
    ['nodelet.cause', cause],
    ['k8s.pod.name', pod?.name],
    ['k8s.pod.uid', pod?.uid],
    ['k8s.namespace.name', pod?.namespace],
    ['k8s.pod.update_type', updateType(span)],
    ['rpc.system', service === undefined ? undefined : 'grpc'],
    ['rpc.service', service],
    ['rpc.method', service === undefined ? undefined : name],
    ...Object.entries(attributes).map(([key, value]) => [`nodelet.${key}`, value] as const),
  ];
  return {
    name: service === undefined ? name : `${service}/${name}`,
    isCall: CALLS.has(kind),
    attributes: all.flatMap(([key, value]) =>
      value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
        ? []
        : [[key, value] as const],
    ),
  };
}
