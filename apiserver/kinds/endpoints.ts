// Endpoints and EndpointSlices: where a service's traffic goes. Filled by controllers or by hand.

import type { Endpoints } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import { namedTable, text } from './columns.ts';
import { addErrors, IMMUTABLE, invalid, oneOf, optionalOneOf, required, syntax, tooMany } from './field-errors.ts';
import { defineKind } from './metadata.ts';
import { dns1123Label, dns1123Subdomain, ipAddress, isIPv4, isIPv6, portNumber } from './names.ts';
import type { FieldError, KubeObject } from './resource.ts';
import { as } from './shapes.ts';

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
        addErrors(errors, syntax(`${at}.${list}[${place}].ip`, address.ip ?? '', ipAddress(address.ip ?? '')));
      }
    }
    for (const [place, port] of ports.entries()) {
      const field = `${at}.ports[${place}]`;
      if (ports.length > 1 && (port.name ?? '') === '') errors.push(required(`${field}.name`));
      else if ((port.name ?? '') !== '')
        addErrors(errors, syntax(`${field}.name`, port.name, dns1123Label(port.name ?? '')));
      addErrors(errors, syntax(`${field}.port`, port.port ?? 0, portNumber(port.port ?? 0)));
      addErrors(errors, oneOf(`${field}.protocol`, port.protocol, PROTOCOLS));
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

export const endpoints = defineKind({
  group: '',
  version: 'v1',
  kind: 'Endpoints',
  plural: 'endpoints',
  singular: 'endpoints',
  shortNames: ['ep'],
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.core.v1.Endpoints',
  strategy: {
    applyDefaults: (object) => {
      for (const subset of of(object).subsets ?? []) for (const port of subset.ports ?? []) port.protocol ??= 'TCP';
    },
    validateCreate: validateEndpoints,
    validateUpdate: validateEndpoints,
    table: namedTable([text('Endpoints', 'Addresses and ports that traffic goes to.')], (object) => [
      endpointsColumn(object),
    ]),
  },
});

function validateSlice(object: KubeObject): FieldError[] {
  const slice = sliceOf(object);
  const errors = oneOf('addressType', slice.addressType, ['FQDN', 'IPv4', 'IPv6']);
  for (const [index, endpoint] of (slice.endpoints ?? []).entries()) {
    const at = `endpoints[${index}].addresses`;
    const addresses = endpoint.addresses ?? [];
    if (addresses.length === 0) errors.push(required(at, 'must contain at least 1 address'));
    if (addresses.length > MAX_ADDRESSES) errors.push(tooMany(at, addresses.length, MAX_ADDRESSES));
    for (const [place, address] of addresses.entries()) {
      addErrors(errors, syntax(`${at}[${place}]`, address, addressErrors(slice.addressType, address)));
    }
  }
  for (const [index, port] of (slice.ports ?? []).entries()) {
    const name = port.name ?? '';
    if (name !== '') addErrors(errors, syntax(`ports[${index}].name`, name, dns1123Label(name)));
    addErrors(errors, optionalOneOf(`ports[${index}].protocol`, port.protocol, PROTOCOLS));
  }
  return errors;
}

function addressErrors(type: string | undefined, address: string): string[] {
  if (type === 'IPv4') return isIPv4(address) ? [] : ['must be a valid IPv4 address'];
  if (type === 'IPv6') return isIPv6(address) ? [] : ['must be a valid IPv6 address'];
  return type === 'FQDN' ? dns1123Subdomain(address) : [];
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
  strategy: {
    applyDefaults: (object) => {
      for (const port of sliceOf(object).ports ?? []) {
        port.name ??= '';
        port.protocol ??= 'TCP';
      }
    },
    validateCreate: validateSlice,
    validateUpdate: (object, old) => [
      ...validateSlice(object),
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
