// What every cluster has from its first moment: four namespaces, the default roles and bindings, and the `kubernetes`
// service. Makes what is missing at each start and leaves the rest alone.

import { reconcileDefaults } from './auth/rbac/reconcile.ts';
import type { KubeObject } from './kinds/resource.ts';
import { SERVICE_IP } from './pki/ensure.ts';
import type { Registry, WriteOptions } from './registry/registry.ts';
import { createObject, mutateStored, newObject } from './registry/write.ts';

const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** `port`: the server's port, used in the service's endpoints. */
export async function bootstrap(registry: Registry, port: number): Promise<void> {
  const options: WriteOptions = {
    caller: { name: 'system:apiserver', groups: ['system:masters'] },
    dryRun: false,
    fieldValidation: 'Ignore',
    warn: () => undefined,
  };
  const { store } = registry;
  if (registry.hasRow('', 'namespaces')) await store.commit(() => ensureNamespaces(registry, options));
  await store.commit(() => reconcileDefaults(registry, options));
  if (registry.hasRow('', 'services')) await store.commit(() => ensureService(registry, port, options));
}

function ensureNamespaces(registry: Registry, options: WriteOptions): void {
  const row = registry.rowOf('', 'namespaces');
  for (const name of NAMESPACES) {
    if (registry.find(row, '', name) === undefined) createObject(registry, row, '', newObject(row, name), options);
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
