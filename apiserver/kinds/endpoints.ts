// Endpoints and EndpointSlices: where a service's traffic goes. Filled by controllers or by hand.

import type { Endpoints } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import { getOwn } from '../../lib/own-property.ts';
import { namedTable, text } from './columns.ts';
import {
  addErrors,
  duplicate,
  IMMUTABLE,
  invalid,
  notSupported,
  oneOf,
  required,
  syntax,
  tooMany,
} from './field-errors.ts';
import { defineKind, validateLabels } from './metadata.ts';
import { dns1123Label, dns1123Subdomain, isIPv6, labelValue, portNumber, qualifiedName } from './names.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as, type Of } from './shapes.ts';
import { addressWarnings, endpointAddress, legacyAddress, looseAddress, strictAddress } from './shared/addresses.ts';

const of = (object: KubeObject) => as<Endpoints>(object, 'Endpoints');
const sliceOf = (object: KubeObject) => as<EndpointSlice>(object, 'EndpointSlice');
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
/** Entries of a list in a table before it is cut short. */
const SHOWN = 3;
const MAX_ADDRESSES = 100;

function validateEndpoints(object: KubeObject): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, subset] of (of(object).subsets ?? []).entries()) {
    const at = `subsets[${index}]`;
    const { addresses = [], notReadyAddresses = [], ports = [] } = subset;
    if (addresses.length === 0 && notReadyAddresses.length === 0) {
      errors.push(required(at, 'must specify `addresses` or `notReadyAddresses`'));
    }
    for (const [list, entries] of [
      ['addresses', addresses],
      ['notReadyAddresses', notReadyAddresses],
    ] as const) {
      for (const [place, address] of entries.entries()) {
        const { ip = '', hostname = '', nodeName } = address;
        const field = `${at}.${list}[${place}]`;
        addErrors(errors, syntax(`${field}.ip`, ip, looseAddress(ip)));
        if (hostname !== '') addErrors(errors, syntax(`${field}.hostname`, hostname, dns1123Label(hostname)));
        if (nodeName !== undefined)
          addErrors(errors, syntax(`${field}.nodeName`, nodeName, dns1123Subdomain(nodeName)));
        addErrors(errors, syntax(`${field}.ip`, ip, endpointAddress(ip)));
      }
    }
    for (const [place, port] of ports.entries()) {
      const field = `${at}.ports[${place}]`;
      if (ports.length > 1 && (port.name ?? '') === '') errors.push(required(`${field}.name`));
      else if ((port.name ?? '') !== '')
        addErrors(errors, syntax(`${field}.name`, port.name, dns1123Label(port.name ?? '')));
      addErrors(errors, syntax(`${field}.port`, port.port ?? 0, portNumber(port.port ?? 0)));
      addErrors(errors, oneOf(`${field}.protocol`, port.protocol, PROTOCOLS));
      if (port.appProtocol !== undefined) {
        addErrors(errors, syntax(`${field}.appProtocol`, port.appProtocol, qualifiedName(port.appProtocol)));
      }
    }
  }
  return errors;
}

function cutShort(entries: readonly string[]): string {
  if (entries.length === 0) return '<none>';
  const rest = entries.length - SHOWN;
  return rest > 0 ? `${entries.slice(0, SHOWN).join(',')} + ${rest} more...` : entries.join(',');
}

function endpointsColumn(object: KubeObject): string {
  const entries = (of(object).subsets ?? []).flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0
      ? addresses.map((address) => address.ip ?? '')
      : ports.flatMap((port) =>
          addresses.map((address) => `${isIPv6(address.ip ?? '') ? `[${address.ip}]` : address.ip}:${port.port}`),
        ),
  );
  return cutShort(entries);
}

/** Who writes addresses in their canonical form. */
const WRITERS: Readonly<Record<string, readonly string[]>> = {
  'endpoints.kubernetes.io/managed-by': ['endpoint-controller'],
  'endpointslice.kubernetes.io/managed-by': [
    'endpointslice-controller.k8s.io',
    'endpointslicemirroring-controller.k8s.io',
  ],
};

function isWritten(label: string, { metadata }: KubeObject): boolean {
  return (getOwn(WRITERS, label) ?? []).includes(getOwn(metadata.labels, label) ?? '');
}

function endpointsWarnings(object: KubeObject): string[] {
  if (isWritten('endpoints.kubernetes.io/managed-by', object)) return [];
  return (of(object).subsets ?? []).flatMap((subset, index) =>
    (['addresses', 'notReadyAddresses'] as const).flatMap((list) =>
      (subset[list] ?? []).flatMap(({ ip = '' }, place) =>
        addressWarnings(`subsets[${index}].${list}[${place}].ip`, ip),
      ),
    ),
  );
}

export const endpoints = defineKind({
  group: '',
  version: 'v1',
  kind: 'Endpoints',
  plural: 'endpoints',
  singular: 'endpoints',
  warning: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  shortNames: ['ep'],
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.core.v1.Endpoints',
  updateMeta: ['update', 'rules', 'create'],
  strategy: {
    applyDefaults: (object) => {
      for (const subset of of(object).subsets ?? []) for (const port of subset.ports ?? []) port.protocol ??= 'TCP';
    },
    validateCreate: validateEndpoints,
    warnings: endpointsWarnings,
    table: namedTable([text('Endpoints', 'Addresses and ports that traffic goes to.')], (object) => [
      endpointsColumn(object),
    ]),
  },
});

function validateSlice(object: KubeObject): FieldError[] {
  const slice = sliceOf(object);
  const errors = oneOf('addressType', slice.addressType, ['FQDN', 'IPv4', 'IPv6']);
  return errors.concat(validateSlicePorts(slice.ports ?? []), validateSliceEndpoints(slice));
}

type Slice = Of<EndpointSlice>;

function validateSlicePorts(ports: NonNullable<Slice['ports']>): FieldError[] {
  if (ports.length > MAX_PORTS) return [tooMany('ports', ports.length, MAX_PORTS)];
  const names = new Set<string>();
  return ports.flatMap(({ name = '', protocol, appProtocol }, index) => {
    const at = `ports[${index}]`;
    const errors = name === '' ? [] : syntax(`${at}.name`, name, dns1123Label(name));
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    if (protocol === undefined) errors.push(required(`${at}.protocol`));
    else if (!PROTOCOLS.includes(protocol)) errors.push(notSupported(`${at}.protocol`, protocol, PROTOCOLS));
    if (appProtocol === undefined) return errors;
    return errors.concat(syntax(`${at}.appProtocol`, appProtocol, qualifiedName(appProtocol)));
  });
}

function validateSliceEndpoints({ addressType, endpoints: list = [] }: Slice): FieldError[] {
  if (list.length > MAX_ENDPOINTS) return [tooMany('endpoints', list.length, MAX_ENDPOINTS)];
  return list.flatMap((endpoint, index) => {
    const at = `endpoints[${index}]`;
    const { addresses = [], nodeName, hostname, deprecatedTopology: topology = {} } = endpoint;
    const errors: FieldError[] = [];
    if (addresses.length === 0) errors.push(required(`${at}.addresses`, 'must contain at least 1 address'));
    if (addresses.length > MAX_ADDRESSES) errors.push(tooMany(`${at}.addresses`, addresses.length, MAX_ADDRESSES));
    for (const [place, address] of addresses.entries()) {
      addErrors(errors, validateSliceAddress(`${at}.addresses`, place, address, addressType));
    }
    if (nodeName !== undefined) addErrors(errors, syntax(`${at}.nodeName`, nodeName, dns1123Subdomain(nodeName)));
    const labels = Object.keys(topology).length;
    if (labels > MAX_TOPOLOGY) errors.push(tooMany(`${at}.deprecatedTopology`, labels, MAX_TOPOLOGY));
    addErrors(errors, validateLabels(`${at}.deprecatedTopology`, topology));
    if (hostname !== undefined) addErrors(errors, syntax(`${at}.hostname`, hostname, dns1123Label(hostname)));
    const zones = endpoint.hints?.forZones ?? [];
    if (zones.length > MAX_ZONES) return errors.concat(tooMany(`${at}.hints.forZones`, zones.length, MAX_ZONES));
    const names = new Set<string>();
    for (const [place, { name = '' }] of zones.entries()) {
      const field = `${at}.hints.forZones[${place}].name`;
      if (names.has(name)) errors.push(duplicate(field, name));
      names.add(name);
      addErrors(errors, syntax(field, name, labelValue(name)));
    }
    return errors;
  });
}

const MAX_PORTS = 20_000;
const MAX_ENDPOINTS = 1000;
const MAX_TOPOLOGY = 16;
const MAX_ZONES = 8;

/** IPv4 addresses may be written as they once were; IPv6 addresses only in their canonical form. */
function validateSliceAddress(field: string, place: number, address: string, type: string | undefined): FieldError[] {
  const at = `${field}[${place}]`;
  if (type === 'FQDN') return syntax(at, address, fullyQualified(address));
  if (type !== 'IPv4' && type !== 'IPv6') return [];
  const wrong = type === 'IPv4' ? looseAddress(address) : strictAddress(address);
  if (wrong.length > 0) return syntax(at, address, wrong);
  const other = legacyAddress(address)?.family !== (type === 'IPv4' ? 4 : 6);
  return [
    ...(other ? [invalid(field, address, `must be an ${type} address`)] : []),
    ...syntax(at, address, endpointAddress(address)),
  ];
}

function fullyQualified(name: string): string[] {
  if (name === '') return [];
  const bare = name.replace(/\.$/, '');
  const errors = dns1123Subdomain(bare);
  if (errors.length > 0) return errors;
  return bare.includes('.') ? [] : ['should be a domain with at least two segments separated by dots'];
}

function sliceWarnings(object: KubeObject, old?: KubeObject): string[] {
  const { addressType, endpoints: list = [] } = sliceOf(object);
  const warnings =
    addressType === 'FQDN' && old === undefined ? ['spec.addressType: FQDN endpoints are deprecated'] : [];
  if (isWritten('endpointslice.kubernetes.io/managed-by', object)) return warnings;
  const bad = list.flatMap(({ addresses = [] }, index) =>
    addresses.flatMap((address, place) => addressWarnings(`endpoints[${index}].addresses[${place}]`, address)),
  );
  return [...warnings, ...bad];
}

export const endpointslices = defineKind({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  singular: 'endpointslice',
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.discovery.v1.EndpointSlice',
  updateMeta: ['rules', 'create', 'own'],
  strategy: {
    countsGenerations: true,
    applyDefaults: (object) => {
      for (const port of sliceOf(object).ports ?? []) {
        port.name ??= '';
        port.protocol ??= 'TCP';
      }
    },
    validateCreate: validateSlice,
    warnings: sliceWarnings,
    validateUpdate: (object, old) => [
      ...(sliceOf(object).addressType === sliceOf(old).addressType
        ? []
        : [invalid('addressType', sliceOf(object).addressType, IMMUTABLE)]),
    ],
    table: namedTable(
      [
        text('AddressType', 'The type of address carried by this EndpointSlice.'),
        text('Ports', 'Ports of the endpoints in this slice.'),
        text('Endpoints', 'Addresses of the endpoints in this slice.'),
      ],
      (object) => {
        const slice = sliceOf(object);
        const ports = (slice.ports ?? []).map((port) => String(port.port ?? '*'));
        const addresses = (slice.endpoints ?? []).flatMap((endpoint) => endpoint.addresses ?? []);
        return [
          slice.addressType ?? '',
          ports.length === 0 ? '<unset>' : cutShort(ports),
          addresses.length === 0 ? '<unset>' : cutShort(addresses),
        ];
      },
    ),
  },
});
