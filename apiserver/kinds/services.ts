// Services: defaults, cluster addresses and node ports, and their rules. Addresses come from one fixed range; nothing
// here makes traffic flow.

import { createHash } from 'node:crypto';
import type { Service } from 'kubernetes-types/core/v1';
import { sameJson } from '../../lib/same-json.ts';
import { AGE_COLUMN, age, NAME_COLUMN, text } from './columns.ts';
import {
  addErrors,
  duplicate,
  forbidden,
  IMMUTABLE,
  invalid,
  oneOf,
  optionalOneOf,
  required,
  syntax,
} from './field-errors.ts';
import { defineKind, validateLabels } from './metadata.ts';
import { dns1035Label, dns1123Label, dns1123Subdomain, ipAddress, isIPv6, portName, portNumber } from './names.ts';
import type { FieldError, KubeObject, RequestContext } from './resource.ts';
import { as, type Of } from './shapes.ts';

const of = (object: KubeObject) => as<Service>(object, 'Service');
type Spec = NonNullable<Of<Service>['spec']>;

/** 10.96.0.0/16: the first address is the API server's own service, the first 256 are for hand-picked ones. */
const CIDR_PREFIX = '10.96';
const FIRST_DYNAMIC = 256;
const NODE_PORTS = { first: 30_000, count: 2768 } as const;

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

function applyDefaults(service: Of<Service>): void {
  service.spec ??= {};
  const spec = service.spec;
  spec.type ??= 'ClusterIP';
  spec.sessionAffinity ??= 'None';
  if (spec.sessionAffinity === 'ClientIP') spec.sessionAffinityConfig ??= { clientIP: { timeoutSeconds: 10_800 } };
  else delete spec.sessionAffinityConfig;
  for (const port of spec.ports ?? []) {
    port.protocol ??= 'TCP';
    if (port.targetPort === undefined || port.targetPort === 0 || port.targetPort === '') {
      if (port.port !== undefined) port.targetPort = port.port;
    }
  }
  if (spec.type === 'ExternalName') return;
  spec.internalTrafficPolicy ??= 'Cluster';
  if (spec.type === 'NodePort' || spec.type === 'LoadBalancer') spec.externalTrafficPolicy ??= 'Cluster';
  if (spec.type === 'LoadBalancer') spec.allocateLoadBalancerNodePorts ??= true;
  const headless = spec.clusterIP === 'None';
  if (headless || spec.clusterIP !== undefined) spec.clusterIPs ??= [spec.clusterIP ?? ''];
  if (spec.clusterIP === undefined && spec.clusterIPs !== undefined) spec.clusterIP = spec.clusterIPs[0];
  spec.ipFamilyPolicy ??= 'SingleStack';
  spec.ipFamilies ??= [isIPv6(spec.clusterIP ?? '') ? 'IPv6' : 'IPv4'];
}

function allocate(service: Of<Service>, context: RequestContext): FieldError[] {
  const spec = service.spec ?? {};
  if (spec.type === 'ExternalName') return [];
  const others = context.lookup.list('', 'services').map((stored) => of(stored).spec ?? {});
  const errors: FieldError[] = [];
  const taken = new Set(others.flatMap((other) => other.clusterIPs ?? []));
  if (spec.clusterIP === undefined) {
    spec.clusterIP = freeAddress(taken, service);
    spec.clusterIPs = [spec.clusterIP];
  } else if (spec.clusterIP !== 'None' && spec.clusterIP !== '') {
    if (taken.has(spec.clusterIP)) {
      errors.push(
        invalid(
          'spec.clusterIPs',
          spec.clusterIPs,
          `failed to allocate IP ${spec.clusterIP}: provided IP is already allocated`,
        ),
      );
    }
  }
  return errors.concat(allocateNodePorts(spec, others));
}

/** Starts where the service's own name points, so that addresses do not depend on the order of creation. */
function freeAddress(taken: ReadonlySet<string>, service: Of<Service>): string {
  const size = 256 * 256 - 1 - FIRST_DYNAMIC;
  const start = hash(`${service.metadata.namespace ?? ''}/${service.metadata.name ?? ''}`) % size;
  for (let step = 0; step < size; step++) {
    const offset = FIRST_DYNAMIC + ((start + step) % size);
    const address = `${CIDR_PREFIX}.${offset >> 8}.${offset & 255}`;
    if (!taken.has(address)) return address;
  }
  throw new RangeError(`every address of ${CIDR_PREFIX}.0.0/16 is taken by a service`);
}

function allocateNodePorts(spec: Spec, others: readonly Spec[]): FieldError[] {
  const wanted =
    spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false);
  if (!wanted) return [];
  const taken = new Set(
    others.flatMap((other) => (other.ports ?? []).map((port) => `${port.protocol ?? 'TCP'}/${port.nodePort ?? 0}`)),
  );
  const errors: FieldError[] = [];
  for (const [index, port] of (spec.ports ?? []).entries()) {
    const protocol = port.protocol ?? 'TCP';
    if (port.nodePort === undefined || port.nodePort === 0) {
      const start = hash(`${protocol}/${port.port ?? 0}/${spec.clusterIP ?? ''}`) % NODE_PORTS.count;
      for (let step = 0; step < NODE_PORTS.count; step++) {
        const candidate = NODE_PORTS.first + ((start + step) % NODE_PORTS.count);
        if (taken.has(`${protocol}/${candidate}`)) continue;
        port.nodePort = candidate;
        break;
      }
    } else if (taken.has(`${protocol}/${port.nodePort}`)) {
      errors.push(invalid(`spec.ports[${index}].nodePort`, port.nodePort, 'provided port is already allocated'));
    } else if (port.nodePort < NODE_PORTS.first || port.nodePort >= NODE_PORTS.first + NODE_PORTS.count) {
      errors.push(
        invalid(
          `spec.ports[${index}].nodePort`,
          port.nodePort,
          `provided port is not in the valid range. The range of valid ports is ${NODE_PORTS.first}-${NODE_PORTS.first + NODE_PORTS.count - 1}`,
        ),
      );
    }
    taken.add(`${protocol}/${port.nodePort ?? 0}`);
  }
  return errors;
}

function hash(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0);
}

function validate(object: KubeObject): FieldError[] {
  const spec = of(object).spec ?? {};
  const ports = spec.ports ?? [];
  const errors = oneOf('spec.type', spec.type, TYPES);
  const headless = spec.clusterIP === 'None';
  if (ports.length === 0 && !headless && spec.type !== 'ExternalName') errors.push(required('spec.ports'));
  if (spec.type === 'LoadBalancer' && headless) {
    errors.push(invalid('spec.clusterIPs[0]', 'None', "may not be set to 'None' for LoadBalancer services"));
  }
  if (spec.type === 'NodePort' && headless) {
    errors.push(invalid('spec.clusterIPs[0]', 'None', "may not be set to 'None' for NodePort services"));
  }
  if (spec.type === 'ExternalName') {
    if ((spec.clusterIP ?? '') !== '') {
      errors.push(forbidden('spec.clusterIPs', 'may not be set for ExternalName services'));
    }
    const name = (spec.externalName ?? '').replace(/\.$/, '');
    addErrors(
      errors,
      name === '' ? [required('spec.externalName')] : syntax('spec.externalName', name, dns1123Subdomain(name)),
    );
  } else if (!headless && (spec.clusterIP ?? '') !== '') {
    addErrors(errors, syntax('spec.clusterIPs[0]', spec.clusterIP, ipAddress(spec.clusterIP ?? '')));
  }
  addErrors(errors, validatePorts(spec));
  addErrors(errors, validateLabels('spec.selector', spec.selector));
  addErrors(errors, oneOf('spec.sessionAffinity', spec.sessionAffinity, ['ClientIP', 'None']));
  addErrors(errors, optionalOneOf('spec.externalTrafficPolicy', spec.externalTrafficPolicy, ['Cluster', 'Local']));
  addErrors(errors, optionalOneOf('spec.internalTrafficPolicy', spec.internalTrafficPolicy, ['Cluster', 'Local']));
  for (const [index, ip] of (spec.externalIPs ?? []).entries()) {
    addErrors(errors, syntax(`spec.externalIPs[${index}]`, ip, ipAddress(ip)));
  }
  return errors;
}

function validatePorts(spec: Spec): FieldError[] {
  const errors: FieldError[] = [];
  const ports = spec.ports ?? [];
  const names = new Set<string>();
  const pairs = new Set<string>();
  for (const [index, port] of ports.entries()) {
    const at = `spec.ports[${index}]`;
    const name = port.name ?? '';
    if (name === '') {
      if (ports.length > 1) errors.push(required(`${at}.name`));
    } else {
      addErrors(errors, syntax(`${at}.name`, name, dns1123Label(name)));
      if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
      names.add(name);
    }
    addErrors(errors, syntax(`${at}.port`, port.port ?? 0, portNumber(port.port ?? 0)));
    addErrors(errors, oneOf(`${at}.protocol`, port.protocol, PROTOCOLS));
    const target = port.targetPort ?? 0;
    addErrors(
      errors,
      syntax(`${at}.targetPort`, target, typeof target === 'string' ? portName(target) : portNumber(target)),
    );
    if (spec.type === 'ClusterIP' && (port.nodePort ?? 0) !== 0) {
      errors.push(forbidden(`${at}.nodePort`, "may not be used when `type` is 'ClusterIP'"));
    }
    const pair = `${port.protocol}/${port.port}`;
    if (pairs.has(pair)) errors.push(duplicate(at, { port: port.port, protocol: port.protocol }));
    pairs.add(pair);
  }
  return errors;
}

function validateUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const [now, before] = [of(object).spec ?? {}, of(old).spec ?? {}];
  const errors: FieldError[] = [];
  const kept = before.type !== 'ExternalName' && now.type !== 'ExternalName' && (before.clusterIP ?? '') !== '';
  if (kept && !sameJson(now.clusterIPs, before.clusterIPs)) {
    errors.push(invalid('spec.clusterIPs[0]', now.clusterIPs, 'may not change once set'));
  }
  if (before.loadBalancerClass !== undefined && now.loadBalancerClass !== before.loadBalancerClass) {
    errors.push(invalid('spec.loadBalancerClass', now.loadBalancerClass, IMMUTABLE));
  }
  return errors.concat(validate(object));
}

/** What an update leaves out of the server's own choices stays as it was. */
function carryOver(object: KubeObject, old: KubeObject): void {
  const [service, before] = [of(object), of(old)];
  service.status = before.status;
  const [spec, was] = [service.spec ?? {}, before.spec ?? {}];
  if (spec.type === 'ExternalName' || was.type === 'ExternalName') return;
  if ((spec.clusterIP ?? '') === '' && was.clusterIP !== undefined) {
    spec.clusterIP = was.clusterIP;
    spec.clusterIPs = was.clusterIPs;
  }
  if (spec.type === 'ClusterIP') {
    // Ports that are no longer requested are released.
    if (was.type !== 'ClusterIP') for (const port of spec.ports ?? []) delete port.nodePort;
    return;
  }
  for (const port of spec.ports ?? []) {
    port.nodePort ??= (was.ports ?? []).find(
      (one) => one.port === port.port && one.protocol === port.protocol,
    )?.nodePort;
  }
}

function externalIp(service: Of<Service>): string {
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

function portsColumn(spec: Spec): string {
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
    applyDefaults: (object) => applyDefaults(of(object)),
    allocate: (object, context) => allocate(of(object), context),
    prepareForCreate: (object) => {
      of(object).status = { loadBalancer: {} };
    },
    prepareForUpdate: carryOver,
    validateCreate: validate,
    validateUpdate,
    selectableFields: {
      'spec.clusterIP': (object) => of(object).spec?.clusterIP ?? '',
      'spec.type': (object) => of(object).spec?.type ?? '',
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
        const service = of(object);
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
