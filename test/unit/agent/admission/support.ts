// Pods and nodes in few words, for the tables of admission.

import type { AdmissionNode } from '../../../../agent/admission/admission.ts';
import type { Pod } from '../../../../client/types.ts';
import { makePod } from '../../../sim/fakes.ts';

export const NODE: AdmissionNode = {
  name: 'node-1',
  labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': 'node-1', zone: 'a', cores: '8' },
  taints: [],
  allocatable: { cpu: '2', memory: '1Gi', 'ephemeral-storage': '10Gi', pods: '10' },
};

/** A pod of one container with these requests, and limits where it must be Guaranteed. */
export function asking(
  name: string,
  requests: Record<string, string>,
  more: { readonly limits?: Record<string, string>; readonly spec?: Partial<Pod['spec']> } = {},
): Pod {
  const resources = { requests, ...(more.limits === undefined ? {} : { limits: more.limits }) };
  const container = { name: 'main', image: 'busybox:stable', resources };
  const pod = makePod(name, { containers: [container], ...more.spec });
  // The class of service is the spec's to say here.
  return { ...pod, status: { phase: 'Pending' } };
}

export function fromFile(pod: Pod): Pod {
  const annotations = { 'kubernetes.io/config.source': 'file', 'kubernetes.io/config.hash': pod.metadata.uid };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}
