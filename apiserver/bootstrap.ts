// What every cluster has from its first moment: four namespaces, the default roles and bindings, flow schemas and priority
// levels, the system's priority classes, the `kubernetes` service, and what other API servers need to know
// of this one. Makes what is missing at each start
// and leaves the rest alone.

import { getOwn } from '../lib/own-property.ts';
import { REMOTE_HEADERS } from './aggregation/proxy.ts';
import { reconcileDefaults } from './auth/rbac/reconcile.ts';
import { ensureFlowControl } from './flow-control.ts';
import type { KubeObject } from './kinds/resource.ts';
import { DEFAULT_SERVICE_CIDR, firstServiceAddress } from './kinds/services/ranges.ts';
import { SYSTEM_PRIORITIES, SYSTEM_PRIORITY_DESCRIPTIONS } from './kinds/shared/system-priorities.ts';
import type { Pki } from './pki/types.ts';
import type { Registry, WriteOptions } from './registry/registry.ts';
import { createObject, mutateStored, newObject } from './registry/write.ts';
import { ensureServiceCidr } from './service-cidrs.ts';

const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** Where pods reach the server: an address of this machine, undefined where it has none but loopback, and the port. */
export interface Advertised {
  readonly address: string | undefined;
  readonly port: number;
}

export interface BootstrapParts {
  readonly advertised: Advertised;
  readonly pki: Pick<Pki, 'frontProxy'>;
  /** PEM: those of client certificates. */
  readonly clientCas: string;
  /** Where the addresses of Services come from; the first range has that of the service `kubernetes`. */
  readonly serviceCidrs: readonly string[];
  readonly log: (line: string) => void;
}

export async function bootstrap(registry: Registry, parts: BootstrapParts): Promise<void> {
  const { advertised, pki, clientCas, serviceCidrs, log } = parts;
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
  if (registry.hasRow('scheduling.k8s.io', 'priorityclasses'))
    await store.commit(() => ensurePriorityClasses(registry, options));
  await store.commit(() => ensureServiceCidr(registry, serviceCidrs, options, log));
  const address = firstServiceAddress(serviceCidrs[0] ?? DEFAULT_SERVICE_CIDR);
  if (registry.hasRow('', 'services')) {
    await store.commit(() => ensureService(registry, advertised.port, address, options));
  }
  if (registry.hasRow('', 'configmaps'))
    await store.commit(() => ensureAuthentication(registry, pki, clientCas, options));
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
  { frontProxy }: Pick<Pki, 'frontProxy'>,
  clientCas: string,
  options: WriteOptions,
): void {
  const row = registry.rowOf('', 'configmaps');
  const name = 'extension-apiserver-authentication';
  const data = {
    'client-ca-file': clientCas,
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

function ensureService(registry: Registry, port: number, address: string, options: WriteOptions): void {
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
    spec: { type: 'ClusterIP', clusterIP: address, clusterIPs: [address], ports, sessionAffinity: 'None' },
  });
  service.metadata.labels = { component: 'apiserver', provider: 'kubernetes' };
  createObject(registry, row, 'default', service, options);
}

function ensurePriorityClasses(registry: Registry, options: WriteOptions): void {
  const row = registry.rowOf('scheduling.k8s.io', 'priorityclasses');
  for (const [name, description] of SYSTEM_PRIORITY_DESCRIPTIONS) {
    if (registry.find(row, '', name) !== undefined) continue;
    const value = getOwn(SYSTEM_PRIORITIES, name);
    createObject(registry, row, '', newObject(row, name, { value, description }), options);
  }
}

function specOf(object: KubeObject): object {
  const spec = object['spec'];
  return typeof spec === 'object' && spec !== null ? spec : {};
}
