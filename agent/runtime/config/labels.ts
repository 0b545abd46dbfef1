// Labels and annotations on sandboxes and containers: the kubelet's own names, so that crictl and log shippers
// recognise the pods, and so that everything about a container can be read back from the runtime after a restart.
// Pure.

import type { Container, EphemeralContainer, Pod } from '../../../client/types.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import { rfc3339Nano } from '../../../lib/rfc3339.ts';
import { podUID } from '../../model/pod-uid.ts';
import { CONFIG_SEEN, CONFIG_SOURCE } from '../../model/static-pods.ts';
import type { ContainerSnapshot, ContainerSpec, PodRef } from '../../ports/runtime.ts';

export const LABEL_POD_NAME = 'io.kubernetes.pod.name';
export const LABEL_POD_NAMESPACE = 'io.kubernetes.pod.namespace';
export const LABEL_POD_UID = 'io.kubernetes.pod.uid';
export const LABEL_CONTAINER_NAME = 'io.kubernetes.container.name';

export const ANNOTATION_HASH = 'io.kubernetes.container.hash';
export const ANNOTATION_RESTART_COUNT = 'io.kubernetes.container.restartCount';
export const ANNOTATION_TERMINATION_PATH = 'io.kubernetes.container.terminationMessagePath';
export const ANNOTATION_TERMINATION_POLICY = 'io.kubernetes.container.terminationMessagePolicy';
const ANNOTATION_PRE_STOP = 'io.kubernetes.container.preStopHandler';
const ANNOTATION_PORTS = 'io.kubernetes.container.ports';
const ANNOTATION_POD_DELETION_GRACE = 'io.kubernetes.pod.deletionGracePeriod';
const ANNOTATION_POD_TERMINATION_GRACE = 'io.kubernetes.pod.terminationGracePeriod';
/** Our own: the kubelet finds the type by name in the spec, which may be gone after a restart. No DNS name is claimed. */
export const ANNOTATION_TYPE = 'nodelet/container.type';
/** The same on containers that agents made before. */
const FORMER_ANNOTATION_TYPE = 'io.nodelet.container.type';

type Strings = Record<string, string>;

export function podLabels(pod: Pod): Strings {
  return {
    [LABEL_POD_NAME]: pod.metadata.name,
    [LABEL_POD_NAMESPACE]: pod.metadata.namespace,
    [LABEL_POD_UID]: pod.metadata.uid,
  };
}

export function sandboxLabels(pod: Pod): Strings {
  return { ...pod.metadata.labels, ...podLabels(pod) };
}

/**
 * The pod's own, with what the kubelet notes on every pod that it gets: its source, and when it was first seen (epoch
 * ms). Static pods have both already.
 */
export function sandboxAnnotations(pod: Pod, seenAt: EpochMs): Strings {
  return { [CONFIG_SEEN]: rfc3339Nano(seenAt), [CONFIG_SOURCE]: 'api', ...pod.metadata.annotations };
}

export function containerLabels(pod: Pod, container: Container | EphemeralContainer): Strings {
  return { ...podLabels(pod), [LABEL_CONTAINER_NAME]: container.name };
}

/** In the order of Go's struct, whatever order the source had. */
function printPorts(ports: NonNullable<Container['ports']>): string {
  return JSON.stringify(
    ports.map(({ name, hostPort, containerPort, protocol, hostIP }) => ({
      name,
      hostPort,
      containerPort,
      protocol,
      hostIP,
    })),
  );
}

export function containerAnnotations(spec: ContainerSpec): Strings {
  const { pod, container } = spec;
  const deletionGrace = pod.metadata.deletionGracePeriodSeconds;
  const terminationGrace = pod.spec.terminationGracePeriodSeconds;
  const preStop = container.lifecycle?.preStop;
  const ports = container.ports ?? [];
  return {
    [ANNOTATION_HASH]: spec.hash,
    [ANNOTATION_RESTART_COUNT]: String(spec.restartCount),
    [ANNOTATION_TERMINATION_PATH]: container.terminationMessagePath ?? '/dev/termination-log',
    [ANNOTATION_TERMINATION_POLICY]: container.terminationMessagePolicy ?? 'File',
    [ANNOTATION_TYPE]: spec.type,
    ...(deletionGrace === undefined ? {} : { [ANNOTATION_POD_DELETION_GRACE]: String(deletionGrace) }),
    ...(terminationGrace === undefined ? {} : { [ANNOTATION_POD_TERMINATION_GRACE]: String(terminationGrace) }),
    ...(preStop === undefined ? {} : { [ANNOTATION_PRE_STOP]: JSON.stringify(preStop) }),
    ...(ports.length === 0 ? {} : { [ANNOTATION_PORTS]: printPorts(ports) }),
  };
}

/** The pod of the object, or undefined when no kubelet made it. */
export function podRefOf(labels: Readonly<Strings>): PodRef | undefined {
  const uid = labels[LABEL_POD_UID];
  const name = labels[LABEL_POD_NAME];
  const namespace = labels[LABEL_POD_NAMESPACE];
  if (uid === undefined || name === undefined || namespace === undefined) return undefined;
  return { uid: podUID(uid), name, namespace };
}

export function containerTypeOf(annotations: Readonly<Strings>): ContainerSnapshot['type'] {
  const type = annotations[ANNOTATION_TYPE] ?? annotations[FORMER_ANNOTATION_TYPE];
  return type === 'init' || type === 'ephemeral' ? type : 'container';
}

/** The restart count of a container: annotated, else the CRI attempt. */
export function restartCountOf(annotations: Readonly<Strings>, attempt: number): number {
  const text = annotations[ANNOTATION_RESTART_COUNT];
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : attempt;
}
