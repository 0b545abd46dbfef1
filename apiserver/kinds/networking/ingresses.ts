// Ingresses and IngressClasses: the rows, their defaults and rules. Serving them is an ingress controller's.

import type { Ingress, IngressBackend, IngressClass } from 'kubernetes-types/networking/v1';
import { getOwn } from '../../../lib/own-property.ts';
import { namedTable, text } from '../columns.ts';
import { addErrors, forbidden, invalid, notSupported, required, syntax, tooLong } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import {
  dns1035Label,
  dns1123Label,
  dns1123Subdomain,
  domainPrefixedPath,
  ipAddress,
  pathSegment,
  portName,
  portNumber,
  wildcardSubdomain,
} from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Loose, type Of } from '../shapes.ts';
import { balancerWarnings, looseAddress } from '../shared/addresses.ts';
import { allOf, validateImmutable } from '../shared/counts.ts';

const of = (object: KubeObject): Of<Ingress> => as<Ingress>(object, 'Ingress');
const classOf = (object: KubeObject): Of<IngressClass> => as<IngressClass>(object, 'IngressClass');
type Spec = NonNullable<Of<Ingress>['spec']>;
type Rule = NonNullable<Spec['rules']>[number];
type Path = NonNullable<NonNullable<Rule['http']>['paths']>[number];
type Backend = Loose<IngressBackend>;

const CLASS_ANNOTATION = 'kubernetes.io/ingress.class';
const PATH_TYPES = ['Exact', 'ImplementationSpecific', 'Prefix'];
const BAD_SEQUENCES = ['//', '/./', '/../', '%2f', '%2F'];
const BAD_SUFFIXES = ['/..', '/.'];
const MAX_CONTROLLER = 250;
/** Of the addresses in a table, in characters. */
const MAX_ADDRESSES = 16;

interface Reference {
  apiGroup?: string | undefined;
  kind?: string | undefined;
  name?: string | undefined;
}

function validateReference(at: string, { apiGroup, kind = '', name = '' }: Reference): FieldError[] {
  const segment = (field: string, value: string): FieldError[] =>
    value === '' ? [required(field)] : syntax(field, value, pathSegment(value));
  return allOf(
    apiGroup === undefined ? [] : syntax(`${at}.apiGroup`, apiGroup, dns1123Subdomain(apiGroup)),
    segment(`${at}.kind`, kind),
    segment(`${at}.name`, name),
  );
}

function validateBackend(at: string, { resource, service }: Backend): FieldError[] {
  if (resource !== undefined && service !== undefined) {
    return [invalid(at, '', 'cannot set both resource and service backends')];
  }
  if (resource !== undefined) return validateReference(`${at}.resource`, resource);
  if (service === undefined) return [invalid(at, '', 'resource or service backend is required')];
  const { name = '', port = {} } = service;
  const field = `${at}.service.name`;
  const errors = name === '' ? [required(field)] : syntax(field, name, dns1035Label(name));
  const { name: named = '', number = 0 } = port;
  if (named !== '' && number !== 0) errors.push(invalid(at, '', 'cannot set both port name & port number'));
  else if (named !== '') addErrors(errors, syntax(`${at}.service.port.name`, named, portName(named)));
  else if (number !== 0) addErrors(errors, syntax(`${at}.service.port.number`, number, portNumber(number)));
  else errors.push(required(at, 'port name or number is required'));
  return errors;
}

function validatePath(at: string, { path = '', pathType, backend = {} }: Path): FieldError[] {
  if (pathType === undefined) return [required(`${at}.pathType`, 'pathType must be specified')];
  const field = `${at}.path`;
  const errors: FieldError[] = [];
  const loose = pathType === 'ImplementationSpecific';
  if (!PATH_TYPES.includes(pathType)) errors.push(notSupported(`${at}.pathType`, pathType, PATH_TYPES));
  else if (!path.startsWith('/') && !(loose && path === '')) {
    errors.push(invalid(field, path, 'must be an absolute path'));
  }
  if (pathType === 'Exact' || pathType === 'Prefix') {
    for (const part of BAD_SEQUENCES) {
      if (path.includes(part)) errors.push(invalid(field, path, `must not contain '${part}'`));
    }
    for (const end of BAD_SUFFIXES) {
      if (path.endsWith(end)) errors.push(invalid(field, path, `cannot end with '${end}'`));
    }
  }
  return errors.concat(validateBackend(`${at}.backend`, backend));
}

function validateHost(field: string, host: string): FieldError[] {
  return syntax(field, host, host.includes('*') ? wildcardSubdomain(host) : dns1123Subdomain(host));
}

const NOT_A_NAME = 'must be a DNS name, not an IP address';
const isAddress = (host: string): boolean => ipAddress(host).length === 0;

function validateRule(at: string, { host = '', http }: Rule, anyWildcard: boolean): FieldError[] {
  const errors: FieldError[] = [];
  if (host !== '') {
    if (isAddress(host)) errors.push(invalid(`${at}.host`, host, NOT_A_NAME));
    addErrors(errors, validateHost(`${at}.host`, host));
  }
  if (http === undefined || (anyWildcard && host.includes('*'))) return errors;
  const { paths = [] } = http;
  if (paths.length === 0) errors.push(required(`${at}.http.paths`));
  addErrors(errors, ...paths.map((path, index) => validatePath(`${at}.http.paths[${index}]`, path)));
  return errors;
}

function validateTls(
  at: string,
  { hosts = [], secretName = '' }: NonNullable<Spec['tls']>[number],
  anySecret: boolean,
) {
  return allOf(
    ...hosts.map((host, index) => validateHost(`${at}.hosts[${index}]`, host)),
    anySecret || secretName === '' ? [] : syntax(`${at}.secretName`, secretName, dns1123Subdomain(secretName)),
  );
}

/** What was stored before a rule came stays valid. */
function validateSpec(spec: Spec = {}, old?: Spec): FieldError[] {
  const { rules = [], defaultBackend, tls = [], ingressClassName } = spec;
  const anySecret = (old?.tls ?? []).some(
    ({ secretName = '' }) => secretName !== '' && dns1123Subdomain(secretName).length > 0,
  );
  const anyWildcard = (old?.rules ?? []).some(
    ({ host = '', http }) => host.includes('*') && validateRule('', { http }, false).length > 0,
  );
  return allOf(
    rules.length === 0 && defaultBackend === undefined
      ? [invalid('spec', null, 'either `defaultBackend` or `rules` must be specified')]
      : [],
    defaultBackend === undefined ? [] : validateBackend('spec.defaultBackend', defaultBackend),
    ...rules.map((rule, index) => validateRule(`spec.rules[${index}]`, rule, anyWildcard)),
    ...tls.map((one, index) => validateTls(`spec.tls[${index}]`, one, anySecret)),
    ingressClassName === undefined
      ? []
      : syntax('spec.ingressClassName', ingressClassName, dns1123Subdomain(ingressClassName)),
  );
}

function validateCreate(object: KubeObject): FieldError[] {
  const { spec } = of(object);
  const annotation = getOwn(object.metadata.annotations, CLASS_ANNOTATION);
  const name = spec?.ingressClassName;
  const differs = annotation !== undefined && name !== undefined && annotation !== name;
  return allOf(
    validateSpec(spec),
    differs
      ? [
          invalid(
            `annotations.${CLASS_ANNOTATION}`,
            annotation,
            'must match `ingressClassName` when both are specified',
          ),
        ]
      : [],
  );
}

function validateStatus(object: KubeObject, old: KubeObject): FieldError[] {
  const known = new Set((of(old).status?.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip));
  return (of(object).status?.loadBalancer?.ingress ?? []).flatMap(({ ip = '', hostname = '' }, index) => {
    const at = `status.loadBalancer.ingress[${index}]`;
    return allOf(
      ip === '' || known.has(ip) ? [] : syntax(`${at}.ip`, ip, looseAddress(ip)),
      hostname === '' ? [] : syntax(`${at}.hostname`, hostname, dns1123Subdomain(hostname)),
      hostname !== '' && isAddress(hostname) ? [invalid(`${at}.hostname`, hostname, NOT_A_NAME)] : [],
    );
  });
}

function hostsCell(rules: readonly Rule[] = []): string {
  const shown = 3;
  const hosts: string[] = [];
  let more = false;
  for (const { host = '' } of rules) {
    if (hosts.length === shown) more = true;
    if (!more && host !== '') hosts.push(host);
  }
  if (hosts.length === 0) return '*';
  return more ? `${hosts.join(',')} + ${rules.length - shown} more...` : hosts.join(',');
}

function addressCell({ status }: Of<Ingress>): string {
  const all = (status?.loadBalancer?.ingress ?? []).map(({ ip = '', hostname = '' }) => (ip === '' ? hostname : ip));
  const joined = [...new Set(all.filter((address) => address !== ''))].sort().join(',');
  return joined.length > MAX_ADDRESSES ? `${joined.slice(0, MAX_ADDRESSES - 3)}...` : joined;
}

export const ingresses = defineKind({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'Ingress',
  plural: 'ingresses',
  singular: 'ingress',
  shortNames: ['ing'],
  namespaced: true,
  subresources: ['status'],
  schema: 'io.k8s.api.networking.v1.Ingress',
  updateMeta: ['update', 'rules', 'own'],
  strategy: {
    applyDefaults: (object) => {
      of(object).spec ??= {};
    },
    prepareForCreate: (object) => {
      of(object).status = { loadBalancer: {} };
    },
    warnings: (object, old) =>
      old === undefined &&
      getOwn(object.metadata.annotations, CLASS_ANNOTATION) !== undefined &&
      of(object).spec?.ingressClassName === undefined
        ? [`annotation "${CLASS_ANNOTATION}" is deprecated, please use 'spec.ingressClassName' instead`]
        : [],
    statusWarnings: (object) => balancerWarnings(of(object).status?.loadBalancer?.ingress),
    validateCreate,
    validateUpdate: (object, old) => validateSpec(of(object).spec, of(old).spec),
    validateStatusUpdate: validateStatus,
    table: namedTable(
      [
        text('Class', 'The IngressClass whose controller serves it.'),
        text('Hosts', 'Hosts that incoming requests are matched against before the ingress rule'),
        text('Address', 'Address is a list containing ingress points for the load-balancer'),
        text('Ports', 'Ports of TLS configurations that open'),
      ],
      (object) => {
        const { ingressClassName = '<none>', rules, tls = [] } = of(object).spec ?? {};
        return [ingressClassName, hostsCell(rules), addressCell(of(object)), tls.length > 0 ? '80, 443' : '80'];
      },
    ),
  },
});

function validateClass(object: KubeObject): FieldError[] {
  const { controller = '', parameters } = classOf(object).spec ?? {};
  const field = 'spec.controller';
  return allOf(
    controller.length > MAX_CONTROLLER ? [tooLong(field, MAX_CONTROLLER)] : [],
    controller === '' ? [required(field)] : syntax(field, controller, domainPrefixedPath(controller)),
    parameters === undefined ? [] : validateParameters('spec.parameters', parameters),
  );
}

type Parameters = NonNullable<NonNullable<Of<IngressClass>['spec']>['parameters']>;

function validateParameters(at: string, parameters: Parameters): FieldError[] {
  const errors = validateReference(at, parameters);
  const { scope, namespace } = parameters;
  const field = `${at}.namespace`;
  if (scope === undefined) errors.push(required(`${at}.scope`));
  else if (scope === 'Namespace') {
    if (namespace === undefined) errors.push(required(field, "`parameters.scope` is set to 'Namespace'"));
    else addErrors(errors, syntax(field, namespace, dns1123Label(namespace)));
  } else if (scope !== 'Cluster') errors.push(notSupported(`${at}.scope`, scope, ['Cluster', 'Namespace']));
  else if (namespace !== undefined) errors.push(forbidden(field, "`parameters.scope` is set to 'Cluster'"));
  return errors;
}

function parametersCell(parameters: Parameters | undefined): string {
  if (parameters === undefined) return '<none>';
  const { kind = '', apiGroup, name = '' } = parameters;
  return `${kind}${apiGroup === undefined ? '' : `.${apiGroup}`}/${name}`;
}

export const ingressclasses = defineKind({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'IngressClass',
  plural: 'ingressclasses',
  singular: 'ingressclass',
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.networking.v1.IngressClass',
  updateMeta: ['update', 'own', 'rules', 'create'],
  strategy: {
    countsGenerations: true,
    applyDefaults: (object) => {
      const ingressClass = classOf(object);
      ingressClass.spec ??= {};
      if (ingressClass.spec.parameters !== undefined) ingressClass.spec.parameters.scope ??= 'Cluster';
    },
    validateCreate: validateClass,
    validateUpdate: (object, old) =>
      validateImmutable('spec.controller', classOf(object).spec?.controller ?? '', classOf(old).spec?.controller ?? ''),
    table: namedTable(
      [
        text('Controller', 'Controller that is responsible for handling this class'),
        text('Parameters', 'A reference to a resource with additional parameters'),
      ],
      (object) => {
        const { controller = '', parameters } = classOf(object).spec ?? {};
        return [controller, parametersCell(parameters)];
      },
    ),
  },
});
