// Rules for Services: types and what each of them needs, ports, traffic policies, and the status that a load balancer
// reports.

import {
  addErrors,
  duplicate,
  forbidden,
  invalid,
  notSupported,
  oneOf,
  optionalOneOf,
  required,
  syntax,
} from '../field-errors.ts';
import { validateLabels } from '../metadata.ts';
import { dns1123Label, dns1123Subdomain, portName, portNumber, qualifiedName } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { endpointAddress, legacyAddress, legacyRangeErrors, looseAddress } from '../shared/addresses.ts';
import { isExternal, isHeadless, needsHealthCheckPort, type ServiceSpec, serviceOf } from './shape.ts';
import { validateClusterIPChange, validateClusterIPs, validateFamilyChange } from './validate-addresses.ts';

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const TRAFFIC = ['Cluster', 'Local'];
const DISTRIBUTIONS = ['PreferClose', 'PreferSameNode', 'PreferSameZone'];
const TOPOLOGY_HINTS = 'service.kubernetes.io/topology-aware-hints';
const TOPOLOGY_MODE = 'service.kubernetes.io/topology-mode';
const SOURCE_RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges';
const ONLY_LOAD_BALANCER = "may only be used when `type` is 'LoadBalancer'";

export function validateService(object: KubeObject, old?: KubeObject): FieldError[] {
  const spec = serviceOf(object).spec ?? {};
  const before = old === undefined ? undefined : (serviceOf(old).spec ?? {});
  const errors = validateTopologyAnnotations(object.metadata.annotations ?? {});
  if ((spec.ports ?? []).length === 0 && !isHeadless(spec) && spec.type !== 'ExternalName') {
    errors.push(required('spec.ports'));
  }
  addErrors(errors, validateType(spec));
  addErrors(errors, validatePorts(spec));
  addErrors(errors, validateLabels('spec.selector', spec.selector));
  addErrors(errors, oneOf('spec.sessionAffinity', spec.sessionAffinity, ['ClientIP', 'None']));
  addErrors(errors, validateAffinity(spec));
  addErrors(errors, validateClusterIPs(spec, before));
  for (const [index, ip] of (spec.externalIPs ?? []).entries()) {
    const messages = before?.externalIPs?.includes(ip) === true ? [] : looseAddress(ip);
    addErrors(errors, syntax(`spec.externalIPs[${index}]`, ip, messages.length > 0 ? messages : endpointAddress(ip)));
  }
  addErrors(errors, oneOf('spec.type', spec.type, TYPES));
  addErrors(errors, validatePortPairs(spec));
  addErrors(errors, validateSourceRanges(object, old));
  addErrors(errors, validateLoadBalancer(spec));
  addErrors(errors, validateExternalTraffic(spec));
  addErrors(errors, validateInternalTraffic(spec));
  if (spec.trafficDistribution !== undefined && !DISTRIBUTIONS.includes(spec.trafficDistribution)) {
    errors.push(notSupported('spec.trafficDistribution', spec.trafficDistribution, DISTRIBUTIONS));
  }
  return errors;
}

function validateTopologyAnnotations(annotations: Readonly<Record<string, string>>): FieldError[] {
  const [hints, mode] = [annotations[TOPOLOGY_HINTS], annotations[TOPOLOGY_MODE]];
  return hints === undefined || mode === undefined || hints === mode
    ? []
    : [
        invalid(
          `metadata.annotations[${TOPOLOGY_MODE}]`,
          mode,
          `must match annotations[${TOPOLOGY_HINTS}] when both are specified`,
        ),
      ];
}

function validateType(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  if ((spec.type === 'LoadBalancer' || spec.type === 'NodePort') && isHeadless(spec)) {
    errors.push(invalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${spec.type} services`));
  }
  if (spec.type !== 'ExternalName') return errors;
  const why = 'may not be set for ExternalName services';
  if ((spec.clusterIPs ?? []).length > 0) errors.push(forbidden('spec.clusterIPs', why));
  if ((spec.ipFamilies ?? []).length > 0) errors.push(forbidden('spec.ipFamilies', why));
  if (spec.ipFamilyPolicy !== undefined) errors.push(forbidden('spec.ipFamilyPolicy', why));
  const name = (spec.externalName ?? '').replace(/\.$/, '');
  return errors.concat(
    name === '' ? [required('spec.externalName')] : syntax('spec.externalName', name, dns1123Subdomain(name)),
  );
}

function validatePorts(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const ports = spec.ports ?? [];
  const names = new Set<string>();
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
    if (port.appProtocol !== undefined) {
      addErrors(errors, syntax(`${at}.appProtocol`, port.appProtocol, qualifiedName(port.appProtocol)));
    }
  }
  return errors;
}

const MAX_AFFINITY_SECONDS = 86_400;

function validateAffinity({ sessionAffinity, sessionAffinityConfig: config }: ServiceSpec): FieldError[] {
  const field = 'spec.sessionAffinityConfig';
  if (sessionAffinity === 'None' && config !== undefined) {
    return [forbidden(field, 'must not be set when session affinity is None')];
  }
  if (sessionAffinity !== 'ClientIP') return [];
  const why = 'when session affinity type is ClientIP';
  if (config === undefined) return [required(field, why)];
  if (config.clientIP === undefined) return [required(`${field}.clientIP`, why)];
  const seconds = config.clientIP.timeoutSeconds;
  if (seconds === undefined) return [required(`${field}.clientIP.timeoutSeconds`, why)];
  return seconds > 0 && seconds <= MAX_AFFINITY_SECONDS
    ? []
    : [
        invalid(
          `${field}.clientIP.timeoutSeconds`,
          seconds,
          `must be greater than 0 and less than ${MAX_AFFINITY_SECONDS}`,
        ),
      ];
}

/** No two ports are the same one, inside or on the nodes. */
function validatePortPairs(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const ports = spec.ports ?? [];
  if (spec.type === 'ClusterIP') {
    for (const [index, port] of ports.entries()) {
      if ((port.nodePort ?? 0) !== 0) {
        errors.push(forbidden(`spec.ports[${index}].nodePort`, "may not be used when `type` is 'ClusterIP'"));
      }
    }
  }
  const onNodes = new Set<string>();
  for (const [index, { protocol, nodePort = 0 }] of ports.entries()) {
    if (nodePort === 0) continue;
    const pair = `${protocol}/${nodePort}`;
    if (onNodes.has(pair)) errors.push(duplicate(`spec.ports[${index}].nodePort`, nodePort));
    onNodes.add(pair);
  }
  const inside = new Set<string>();
  for (const [index, { protocol, port = 0 }] of ports.entries()) {
    const pair = `${protocol}/${port}`;
    if (inside.has(pair)) {
      // Upstream shows a whole port in which only these two are set.
      const shown = { Name: '', Protocol: protocol, AppProtocol: null, Port: port, TargetPort: 0, NodePort: 0 };
      errors.push(duplicate(`spec.ports[${index}]`, shown));
    }
    inside.add(pair);
  }
  return errors;
}

function validateSourceRanges(object: KubeObject, old?: KubeObject): FieldError[] {
  const spec = serviceOf(object).spec ?? {};
  const ranges = spec.loadBalancerSourceRanges ?? [];
  const errors: FieldError[] = [];
  if (ranges.length > 0) {
    const field = 'spec.LoadBalancerSourceRanges';
    if (spec.type !== 'LoadBalancer') errors.push(forbidden(field, ONLY_LOAD_BALANCER));
    const before = old === undefined ? [] : (serviceOf(old).spec?.loadBalancerSourceRanges ?? []);
    const known = new Set(before.map((range) => range.trim()));
    for (const [index, padded] of ranges.entries()) {
      const range = padded.trim();
      if (!known.has(range)) addErrors(errors, syntax(`${field}[${index}]`, range, legacyRangeErrors(range)));
    }
    return errors;
  }
  const text = object.metadata.annotations?.[SOURCE_RANGES];
  if (text === undefined) return errors;
  const field = `metadata.annotations[${SOURCE_RANGES}]`;
  if (spec.type !== 'LoadBalancer') errors.push(forbidden(field, ONLY_LOAD_BALANCER));
  if (text.trim() === '' || old?.metadata.annotations?.[SOURCE_RANGES] === text) return errors;
  for (const padded of text.split(',')) {
    addErrors(errors, syntax(field, padded.trim(), legacyRangeErrors(padded.trim())));
  }
  return errors;
}

function validateLoadBalancer(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const isLoadBalancer = spec.type === 'LoadBalancer';
  const allocates = spec.allocateLoadBalancerNodePorts;
  if (allocates !== undefined && !isLoadBalancer) {
    errors.push(forbidden('spec.allocateLoadBalancerNodePorts', ONLY_LOAD_BALANCER));
  }
  if (allocates === undefined && isLoadBalancer) errors.push(required('allocateLoadBalancerNodePorts'));
  return errors.concat(validateClass(spec));
}

function validateClass({ type, loadBalancerClass }: ServiceSpec): FieldError[] {
  const field = 'spec.loadBalancerClass';
  if (loadBalancerClass === undefined) return [];
  return type === 'LoadBalancer'
    ? syntax(field, loadBalancerClass, qualifiedName(loadBalancerClass))
    : [forbidden(field, ONLY_LOAD_BALANCER)];
}

function validateExternalTraffic(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const policy = spec.externalTrafficPolicy ?? '';
  if (isExternal(spec)) addErrors(errors, oneOf('spec.externalTrafficPolicy', policy, TRAFFIC));
  else if (policy !== '') {
    errors.push(invalid('spec.externalTrafficPolicy', policy, 'may only be set for externally-accessible services'));
  }
  const port = spec.healthCheckNodePort ?? 0;
  const field = 'spec.healthCheckNodePort';
  if (!needsHealthCheckPort(spec)) {
    if (port !== 0) {
      errors.push(
        invalid(field, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"),
      );
    }
  } else addErrors(errors, port === 0 ? [required(field)] : syntax(field, port, portNumber(port)));
  return errors;
}

function validateInternalTraffic({ type, internalTrafficPolicy: policy }: ServiceSpec): FieldError[] {
  const field = 'spec.internalTrafficPolicy';
  if (policy !== undefined) return TRAFFIC.includes(policy) ? [] : [notSupported(field, policy, TRAFFIC)];
  return type === 'NodePort' || type === 'LoadBalancer' || type === 'ClusterIP' ? [required(field)] : [];
}

export function validateServiceUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const [spec, before] = [serviceOf(object).spec ?? {}, serviceOf(old).spec ?? {}];
  const errors = [...validateClusterIPChange(spec, before), ...validateFamilyChange(spec, before)];
  const bothBalanced = spec.type === 'LoadBalancer' && before.type === 'LoadBalancer';
  if (bothBalanced && spec.loadBalancerClass !== before.loadBalancerClass) {
    errors.push(invalid('spec.loadBalancerClass', spec.loadBalancerClass ?? null, 'may not change once set'));
  }
  addErrors(errors, validateClass(spec));
  const bothChecked = needsHealthCheckPort(spec) && needsHealthCheckPort(before);
  if (bothChecked && (spec.healthCheckNodePort ?? 0) !== (before.healthCheckNodePort ?? 0)) {
    errors.push(forbidden('spec.healthCheckNodePort', 'field is immutable'));
  }
  return errors.concat(validateService(object, old));
}

export function validateServiceStatus(object: KubeObject, old: KubeObject): FieldError[] {
  const before = serviceOf(old).status?.loadBalancer?.ingress ?? [];
  const known = new Set(before.map(({ ip }) => ip));
  const { spec, status } = serviceOf(object);
  const ingress = status?.loadBalancer?.ingress ?? [];
  if (spec?.type !== 'LoadBalancer' && ingress.length > 0) {
    return [forbidden('status.loadBalancer.ingress', "may only be used when `spec.type` is 'LoadBalancer'")];
  }
  return validateLoadBalancerStatus(ingress, known, true);
}

interface Ingress {
  readonly ip?: string | undefined;
  readonly ipMode?: string | undefined;
  readonly hostname?: string | undefined;
}

/** `known`: addresses that were there before, which stay valid. */
function validateLoadBalancerStatus(
  ingress: readonly Ingress[],
  known: ReadonlySet<string | undefined>,
  withMode: boolean,
): FieldError[] {
  return ingress.flatMap(({ ip = '', ipMode, hostname = '' }, index) => {
    const at = `status.loadBalancer.ingress[${index}]`;
    const errors: FieldError[] = [];
    if (ip !== '' && !known.has(ip)) addErrors(errors, syntax(`${at}.ip`, ip, looseAddress(ip)));
    if (withMode && ipMode === undefined) {
      if (ip !== '') errors.push(required(`${at}.ipMode`, 'must be specified when `ip` is set'));
    } else if (ipMode !== undefined && ip === '') {
      errors.push(forbidden(`${at}.ipMode`, 'may not be specified when `ip` is not set'));
    } else addErrors(errors, optionalOneOf(`${at}.ipMode`, ipMode, ['Proxy', 'VIP']));
    if (hostname !== '') {
      addErrors(errors, syntax(`${at}.hostname`, hostname, dns1123Subdomain(hostname)));
      if (legacyAddress(hostname) !== undefined) {
        errors.push(invalid(`${at}.hostname`, hostname, 'must be a DNS name, not an IP address'));
      }
    }
    return errors;
  });
}
