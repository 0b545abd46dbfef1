// Services, pods, nodes and slices for the tables of the endpoints' controllers.

import type { ServicePort, ServiceSpec } from 'kubernetes-types/core/v1';
import type { EndpointSlice, Node, Pod, Service } from '../../../../client/types.ts';
import { meta, NOW } from '../environment.ts';

export const WEB_PORT: ServicePort = { port: 80, targetPort: 8080, protocol: 'TCP' };

export function makeService(spec: Partial<ServiceSpec> = {}, more: Partial<Service['metadata']> = {}): Service {
  return {
    metadata: { ...meta('web', 'demo'), creationTimestamp: NOW, ...more },
    spec: {
      clusterIP: '10.96.0.7',
      ipFamilies: ['IPv4'],
      selector: { app: 'web' },
      ports: [WEB_PORT],
      ...spec,
    },
  };
}

interface PodFacts {
  readonly ready?: boolean;
  readonly since?: string;
  readonly leaving?: boolean;
  readonly phase?: string;
  readonly ips?: readonly string[];
  readonly node?: string;
  readonly spec?: Partial<Pod['spec']>;
  readonly labels?: Record<string, string>;
}

/** The pod's address is 10.0.0.<number>. */
export function webPod(number: number, facts: PodFacts = {}): Pod {
  const { ready = true, since = NOW, leaving = false, phase = 'Running', node = 'n1', labels = { app: 'web' } } = facts;
  const { ips = [`10.0.0.${number}`], spec } = facts;
  return {
    metadata: {
      ...meta(`p${number}`, 'demo'),
      namespace: 'demo',
      labels,
      ...(leaving ? { deletionTimestamp: NOW } : {}),
    },
    spec: { containers: [{ name: 'c' }], nodeName: node, ...spec },
    status: {
      phase,
      ...(ips[0] === undefined ? {} : { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) }),
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: since }],
    },
  };
}

export function webPods(count: number, facts: PodFacts = {}): Pod[] {
  return Array.from({ length: count }, (_, index) => webPod(index + 1, facts));
}

export function zoneNode(name: string, zone?: string): Node {
  return { metadata: { ...meta(name), labels: zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone } } };
}

/** What the server stores of a slice that a plan makes. */
export function stored(slice: object, name: string): EndpointSlice {
  const { metadata, ...rest } = slice as EndpointSlice;
  return { ...rest, metadata: { ...metadata, ...meta(name, 'demo') } };
}
