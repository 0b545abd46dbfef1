// The pods that the API server's measurements are made with, and the requests for them.

import { requestBytes } from './requests.ts';

export const PODS = '/api/v1/namespaces/default/pods';
export const MERGE_PATCH = 'application/merge-patch+json';
export const APPLY_PATCH = 'application/apply-patch+yaml';

export const podName = (index: number): string => `pod-${index}`;

/** A pod on a node, as a client sends it. */
export function podOf(name: string, index: number, nodes: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: `app-${index % 100}` } },
    spec: {
      nodeName: `node-${index % nodes}`,
      containers: [
        {
          name: 'main',
          image: 'registry.example/app:1.0',
          env: [{ name: 'ONE', value: '1' }],
          resources: { requests: { cpu: '100m', memory: '64Mi' } },
        },
      ],
    },
  };
}

/** What no controller makes here: pods need it. */
export const DEFAULT_ACCOUNT = requestBytes({
  method: 'POST',
  path: '/api/v1/namespaces/default/serviceaccounts',
  body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } },
});

export const create = (pod: object): Buffer => requestBytes({ method: 'POST', path: PODS, body: pod });
export const get = (name: string): Buffer => requestBytes({ method: 'GET', path: `${PODS}/${name}` });
export const list = (query = ''): Buffer => requestBytes({ method: 'GET', path: `${PODS}${query}` });
/** At once, without a grace period. */
export const remove = (name: string): Buffer =>
  requestBytes({ method: 'DELETE', path: `${PODS}/${name}?gracePeriodSeconds=0` });

/** Changes one annotation. */
export function patch(name: string, value: string): Buffer {
  const body = { metadata: { annotations: { 'bench/value': value } } };
  return requestBytes({ method: 'PATCH', path: `${PODS}/${name}`, type: MERGE_PATCH, body });
}

/** A manager of its own applies one annotation. */
export function apply(name: string, value: string): Buffer {
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, annotations: { 'bench/applied': value } } };
  const path = `${PODS}/${name}?fieldManager=bench-apply&force=true`;
  return requestBytes({ method: 'PATCH', path, type: APPLY_PATCH, body });
}
