// Services, slices and options for the tables of the proxy.

import type { ServiceSpec } from 'kubernetes-types/core/v1';
import type { EndpointSlice, Service, Endpoint as SliceEndpoint } from '../../../client/types.ts';
import type { ServicePortMap } from '../../../proxy/backend.ts';
import type { RuleOptions } from '../../../proxy/options.ts';
import { ServiceTracker } from '../../../proxy/service-tracker.ts';

export const OPTIONS: RuleOptions = {
  clusterCidr: '10.0.0.0/8',
  masqueradeAll: false,
  masqueradeBit: 14,
  nodePortIPs: undefined,
  localhostNodePorts: false,
  dropInvalid: true,
  nodeIP: '192.0.2.2',
};
export const NODE = { name: 'here', zone: 'a' };

/** ns/name with one port p80, and more. */
export function makeService(name: string, spec: Partial<ServiceSpec> = {}, more: Partial<Service> = {}): Service {
  return {
    metadata: { name, namespace: 'ns', uid: name, resourceVersion: '1' },
    spec: { clusterIP: '172.30.0.41', ports: [{ name: 'p80', port: 80, protocol: 'TCP' }], ...spec },
    ...more,
  };
}

interface Where extends Partial<SliceEndpoint> {
  readonly on?: string;
}

export function makeSlice(
  service: string,
  endpoints: readonly (string | readonly [string, Where])[],
  port = 80,
): EndpointSlice {
  return {
    metadata: {
      name: `${service}-1`,
      namespace: 'ns',
      uid: `${service}-1`,
      resourceVersion: '1',
      labels: { 'kubernetes.io/service-name': service },
    },
    addressType: 'IPv4',
    ports: [{ name: 'p80', port, protocol: 'TCP' }],
    endpoints: endpoints.map((each) => {
      const [address, { on = 'here', ...more }] = typeof each === 'string' ? [each, {}] : each;
      return { addresses: [address], conditions: { ready: true }, nodeName: on, ...more };
    }),
  };
}

export function portMapOf(...services: readonly [Service, EndpointSlice?][]): ServicePortMap {
  const tracker = new ServiceTracker();
  for (const [service, slice] of services) {
    const key = `${service.metadata.namespace}/${service.metadata.name}`;
    tracker.update(key, service, slice === undefined ? [] : [slice], NODE);
  }
  return tracker.all;
}
