// Services: the row with its defaults and how kubectl prints it. What the server gives them and their rules are in services/.

import { AGE_COLUMN, age, NAME_COLUMN, text } from './columns.ts';
import { defineKind } from './metadata.ts';
import { dns1035Label } from './names.ts';
import { allocateService } from './services/allocate.ts';
import { prepareServiceUpdate } from './services/change-type.ts';
import { ipAddressesOf } from './services/ip-addresses.ts';
import { isExternal, type ServiceObject, type ServiceSpec, serviceOf } from './services/shape.ts';
import { validateService, validateServiceStatus, validateServiceUpdate } from './services/validate.ts';
import { serviceWarnings } from './services/warnings.ts';
import { balancerWarnings } from './shared/addresses.ts';

const AFFINITY_SECONDS = 10_800;

function applyDefaults(service: ServiceObject): void {
  service.spec ??= {};
  const spec = service.spec;
  spec.sessionAffinity ??= 'None';
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig;
  if (spec.sessionAffinity === 'ClientIP' && spec.sessionAffinityConfig?.clientIP?.timeoutSeconds === undefined) {
    spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: AFFINITY_SECONDS } };
  }
  spec.type ??= 'ClusterIP';
  for (const port of spec.ports ?? []) {
    port.protocol ??= 'TCP';
    if (port.targetPort === undefined || port.targetPort === 0 || port.targetPort === '') {
      port.targetPort = port.port ?? 0;
    }
  }
  if (isExternal(spec)) spec.externalTrafficPolicy ??= 'Cluster';
  if (spec.type === 'NodePort' || spec.type === 'LoadBalancer' || spec.type === 'ClusterIP') {
    spec.internalTrafficPolicy ??= 'Cluster';
  }
  if (spec.type !== 'LoadBalancer') return;
  spec.allocateLoadBalancerNodePorts ??= true;
  for (const ingress of service.status?.loadBalancer?.ingress ?? []) {
    if (ingress.ip !== undefined) ingress.ipMode ??= 'VIP';
  }
}

function externalIp(service: ServiceObject): string {
  const spec = service.spec ?? {};
  const ingress = (service.status?.loadBalancer?.ingress ?? []).flatMap((one) => one.ip ?? one.hostname ?? []);
  switch (spec.type) {
    case 'ExternalName':
      return spec.externalName ?? '<none>';
    case 'LoadBalancer': {
      const all = [...ingress, ...(spec.externalIPs ?? [])];
      return all.length === 0 ? '<pending>' : all.join(',');
    }
    default:
      return (spec.externalIPs ?? []).length === 0 ? '<none>' : (spec.externalIPs ?? []).join(',');
  }
}

function portsColumn(spec: ServiceSpec): string {
  const ports = (spec.ports ?? []).map((port) =>
    (port.nodePort ?? 0) > 0 ? `${port.port}:${port.nodePort}/${port.protocol}` : `${port.port}/${port.protocol}`,
  );
  return ports.length === 0 ? '<none>' : ports.join(',');
}

export function selectorColumn(selector: { readonly [key: string]: string | undefined } | undefined): string {
  const pairs = Object.entries(selector ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? '<none>' : pairs.sort().join(',');
}

export const services = defineKind({
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  singular: 'service',
  shortNames: ['svc'],
  categories: ['all'],
  namespaced: true,
  subresources: ['status', 'proxy'],
  schema: 'io.k8s.api.core.v1.Service',
  nameRule: dns1035Label,
  strategy: {
    countsGenerations: false,
    applyDefaults: (object) => applyDefaults(serviceOf(object)),
    allocate: allocateService,
    companions: ipAddressesOf,
    prepareForCreate: (object) => {
      serviceOf(object).status = { loadBalancer: {} };
    },
    prepareForUpdate: prepareServiceUpdate,
    validateCreate: (object) => validateService(object),
    validateUpdate: validateServiceUpdate,
    validateStatusUpdate: validateServiceStatus,
    statusWarnings: (object) => balancerWarnings(serviceOf(object).status?.loadBalancer?.ingress),
    warnings: serviceWarnings,
    selectableFields: {
      'spec.clusterIP': (object) => serviceOf(object).spec?.clusterIP ?? '',
      'spec.type': (object) => serviceOf(object).spec?.type ?? '',
    },
    table: {
      columns: [
        NAME_COLUMN,
        text('Type', 'How the service is exposed.'),
        text('Cluster-IP', 'The IP address of the service.'),
        text('External-IP', 'Addresses at which nodes outside the cluster accept traffic for this service.'),
        text('Port(s)', 'The list of ports that are exposed by this service.'),
        AGE_COLUMN,
        text('Selector', 'Labels of the pods that traffic goes to.', 1),
      ],
      row: (object, now) => {
        const service = serviceOf(object);
        const spec = service.spec ?? {};
        const clusterIp = spec.clusterIP ?? '';
        return [
          object.metadata.name ?? '',
          spec.type ?? '',
          clusterIp === '' ? '<none>' : clusterIp,
          externalIp(service),
          portsColumn(spec),
          age(object.metadata.creationTimestamp, now),
          selectorColumn(spec.selector),
        ];
      },
    },
  },
});
