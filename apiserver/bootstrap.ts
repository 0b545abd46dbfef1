// What every cluster has from its first moment: four namespaces, the default roles and bindings, flow schemas and priority
// levels, the `kubernetes` service, and what other API servers need to know of this one. Makes what is missing at each start
// and leaves the rest alone.

import { REMOTE_HEADERS } from './aggregation/proxy.ts';
import { reconcileDefaults } from './auth/rbac/reconcile.ts';
import { ensureFlowControl } from './flow-control.ts';
import type { KubeObject } from './kinds/resource.ts';
import { SERVICE_IP } from './pki/ensure.ts';
import type { Pki } from './pki/types.ts';
import type { Registry, WriteOptions } from './registry/registry.ts';
import { createObject, mutateStored, newObject } from './registry/write.ts';

const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** `port`: the server's port, used in the service's endpoints. */
export async function bootstrap(registry: Registry, port: number, pki: Pick<Pki, 'ca' | 'frontProxy'>): Promise<void> {
  const options: WriteOptions = {
    caller: { name: 'system:apiserver', groups: ['system:masters'] },
    dryRun: false,
    fieldValidation: 'Ignore',
    warn: () => undefined,
  };
  const { store } = registry;
  if (registry.hasRow('', 'namespaces')) await store.commit(() => ensureNamespaces(registry, options));
  await store.commit(() => reconcileDefaults(registry, options));
  await store.commit(() => ensureFlowControl(registry, options));
  if (registry.hasRow('', 'services')) await store.commit(() => ensureService(registry, port, options));
  if (registry.hasRow('', 'configmaps')) await store.commit(() => ensureAuthentication(registry, pki, options));
}

function ensureNamespaces(registry: Registry, options: WriteOptions): void {
  const row = registry.rowOf('', 'namespaces');
  for (const name of NAMESPACES) {
    if (registry.find(row, '', name) === undefined) createObject(registry, row, '', newObject(row, name), options);
  }
}

/** How a server behind this one knows its callers: it trusts these names in these headers, from this CA's client. */
function ensureAuthentication(
  registry: Registry,
  { ca, frontProxy }: Pick<Pki, 'ca' | 'frontProxy'>,
  options: WriteOptions,
): void {
  const row = registry.rowOf('', 'configmaps');
  const name = 'extension-apiserver-authentication';
  const data = {
    'client-ca-file': ca.cert,
    'requestheader-allowed-names': JSON.stringify(['front-proxy-client']),
    'requestheader-client-ca-file': frontProxy.ca.cert,
    'requestheader-extra-headers-prefix': JSON.stringify([REMOTE_HEADERS.extra]),
    'requestheader-group-headers': JSON.stringify([REMOTE_HEADERS.group]),
    'requestheader-uid-headers': JSON.stringify([REMOTE_HEADERS.uid]),
    'requestheader-username-headers': JSON.stringify([REMOTE_HEADERS.user]),
  };
  const stored = registry.find(row, 'kube-system', name);
  if (stored === undefined) createObject(registry, row, 'kube-system', newObject(row, name, { data }), options);
  else {
    mutateStored(registry, row, stored, false, (object) => {
      object['data'] = data;
    });
  }
}

function ensureService(registry: Registry, port: number, options: WriteOptions): void {
  const row = registry.rowOf('', 'services');
  const ports = [{ name: 'https', protocol: 'TCP', port: 443, targetPort: port }];
  const stored = registry.find(row, 'default', 'kubernetes');
  if (stored !== undefined) {
    mutateStored(registry, row, stored, false, (object) => {
      object['spec'] = { ...specOf(object), ports };
    });
    return;
  }
  const service = newObject(row, 'kubernetes', {
    spec: { type: 'ClusterIP', clusterIP: SERVICE_IP, clusterIPs: [SERVICE_IP], ports, sessionAffinity: 'None' },
  });
  service.metadata.labels = { component: 'apiserver', provider: 'kubernetes' };
  createObject(registry, row, 'default', service, options);
}

function specOf(object: KubeObject): object {
  const spec = object['spec'];
  return typeof spec === 'object' && spec !== null ? spec : {};
}
