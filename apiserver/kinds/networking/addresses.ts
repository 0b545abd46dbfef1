// ServiceCIDRs and IPAddresses: rows and rules. Services take their addresses in services/allocate.ts; conditions and
// finalizers are service-cidrs.ts's.

import { namedTable, text } from '../columns.ts';
import { IMMUTABLE, invalid, required, syntax } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { dns1123Subdomain, pathSegment } from '../names.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { parseRange, strictAddress, strictRange } from '../shared/addresses.ts';
import { allOf, validateImmutable } from '../shared/counts.ts';

interface ServiceCIDR {
  spec?: { cidrs?: string[] };
  status?: { conditions?: object[] };
}
interface IPAddress {
  spec?: { parentRef?: { group?: string; resource?: string; namespace?: string; name?: string } };
}

const rangesOf = (object: KubeObject): Of<ServiceCIDR> => as<ServiceCIDR>(object, 'ServiceCIDR');
const addressOf = (object: KubeObject): Of<IPAddress> => as<IPAddress>(object, 'IPAddress');
const RANGES = 'spec.cidrs';

function validateRanges({ spec = {} }: Of<ServiceCIDR>): FieldError[] {
  const { cidrs = [] } = spec;
  if (cidrs.length === 0) return [required(RANGES, 'at least one CIDR required')];
  if (cidrs.length > 2) return [invalid(RANGES, spec, 'may only hold up to 2 values')];
  const [first, second] = cidrs.map((cidr) => parseRange(cidr)?.family);
  const alike = first !== undefined && first === second;
  return allOf(
    ...cidrs.map((cidr, index) => syntax(`${RANGES}[${index}]`, cidr, strictRange(cidr))),
    alike
      ? [
          invalid(
            RANGES,
            cidrs,
            'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64',
          ),
        ]
      : [],
  );
}

/** A second range may be added, nothing else. */
function validateRangesUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const { cidrs = [] } = rangesOf(object).spec ?? {};
  const { cidrs: before = [] } = rangesOf(old).spec ?? {};
  const grows = before.length === 1 && cidrs.length === 2;
  if (cidrs.length !== before.length && !grows) return [invalid(RANGES, cidrs, IMMUTABLE)];
  const changed = before.flatMap((cidr, index) =>
    cidr === cidrs[index] ? [] : [invalid(`${RANGES}[${index}]`, cidrs[index], IMMUTABLE)],
  );
  return grows ? allOf(changed, validateRanges(rangesOf(object))) : changed;
}

export const servicecidrs = defineKind({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'ServiceCIDR',
  plural: 'servicecidrs',
  singular: 'servicecidr',
  namespaced: false,
  subresources: ['status'],
  schema: 'io.k8s.api.networking.v1.ServiceCIDR',
  strategy: {
    countsGenerations: false,
    applyDefaults: (object) => {
      rangesOf(object).spec ??= {};
    },
    prepareForCreate: () => undefined,
    validateCreate: (object) => validateRanges(rangesOf(object)),
    validateUpdate: validateRangesUpdate,
    table: namedTable([text('CIDRs', 'The ranges of addresses for Services.')], (object) => [
      (rangesOf(object).spec?.cidrs ?? []).join(','),
    ]),
  },
});

function validateParent(object: KubeObject): FieldError[] {
  const parent = addressOf(object).spec?.parentRef;
  const at = 'spec.parentRef';
  if (parent === undefined) return [required(at)];
  const { group = '', resource = '', namespace = '', name = '' } = parent;
  const segment = (field: string, value: string): FieldError[] => syntax(field, value, pathSegment(value));
  return allOf(
    group === '' ? [] : syntax(`${at}.group`, group, dns1123Subdomain(group)),
    resource === '' ? [required(`${at}.resource`)] : segment(`${at}.resource`, resource),
    name === '' ? [required(`${at}.name`)] : segment(`${at}.name`, name),
    namespace === '' ? [] : segment(`${at}.namespace`, namespace),
  );
}

function parentCell({ spec }: Of<IPAddress>): string {
  const parent = spec?.parentRef;
  if (parent === undefined) return '<none>';
  const { group = '', resource = '', namespace = '', name = '' } = parent;
  const type = (group === '' ? resource : `${resource}.${group}`).toLowerCase();
  return [type, ...(namespace === '' ? [] : [namespace]), name].join('/');
}

export const ipaddresses = defineKind({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'IPAddress',
  plural: 'ipaddresses',
  singular: 'ipaddress',
  shortNames: ['ip'],
  namespaced: false,
  subresources: [],
  schema: 'io.k8s.api.networking.v1.IPAddress',
  updateMeta: ['rules', 'create', 'update', 'own'],
  nameRule: strictAddress,
  strategy: {
    validateCreate: validateParent,
    validateUpdate: (object, old) =>
      validateImmutable('spec.parentRef', addressOf(object).spec?.parentRef, addressOf(old).spec?.parentRef),
    table: namedTable([text('ParentRef', 'What the address belongs to.')], (object) => [parentCell(addressOf(object))]),
  },
});
