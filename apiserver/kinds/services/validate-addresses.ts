// Rules for the addresses of a Service and their families, new ones and changes of them.

import { duplicate, invalid, notSupported, required, syntax } from '../field-errors.ts';
import type { FieldError } from '../resource.ts';
import { legacyAddress, looseAddress } from '../shared/addresses.ts';
import { isHeadless, type ServiceSpec } from './shape.ts';

const FAMILIES = ['IPv4', 'IPv6'];
const POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];
const isSixth = (address: string): boolean => legacyAddress(address)?.family === 6;

export function validateClusterIPs(spec: ServiceSpec, old?: ServiceSpec): FieldError[] {
  if (spec.type === 'ExternalName') return [];
  const { clusterIP = '', clusterIPs = [], ipFamilies = [] } = spec;
  const field = 'spec.clusterIPs';
  const errors: FieldError[] = [];
  if (clusterIP !== '') {
    if (clusterIPs.length === 0) errors.push(required(field));
    else if (clusterIPs[0] !== clusterIP) errors.push(invalid(field, clusterIPs, 'first value must match `clusterIP`'));
  } else if (clusterIPs.length > 0) {
    errors.push(invalid(field, clusterIPs, 'must be empty when `clusterIP` is not specified'));
  }
  for (const [index, family] of ipFamilies.entries()) {
    if (!FAMILIES.includes(family)) errors.push(notSupported(`spec.ipFamilies[${index}]`, family, FAMILIES));
    if (ipFamilies.indexOf(family) < index) errors.push(duplicate(`spec.ipFamilies[${index}]`, family));
  }
  if (spec.ipFamilyPolicy !== undefined && !POLICIES.includes(spec.ipFamilyPolicy)) {
    errors.push(notSupported('spec.ipFamilyPolicy', spec.ipFamilyPolicy, POLICIES));
  }
  const { wrong, addressErrors } = validateEach(clusterIPs, old?.clusterIPs ?? []);
  errors.push(...addressErrors);
  if (clusterIPs.length > 2) errors.push(invalid(field, clusterIPs, 'may only hold up to 2 values'));
  if (wrong) return errors;
  if (clusterIPs.length > 1 && new Set(clusterIPs.map(isSixth)).size < 2) {
    errors.push(invalid(field, clusterIPs, 'may specify no more than one IP for each IP family'));
  }
  if (!isHeadless(spec)) errors.push(...matchFamilies(clusterIPs, ipFamilies));
  return errors;
}

/** Further rules would only confuse where an address is none. */
function validateEach(addresses: readonly string[], before: readonly string[]) {
  const addressErrors: FieldError[] = [];
  let wrong = false;
  for (const [index, address] of addresses.entries()) {
    if (index === 0 && address === 'None') {
      if (addresses.length === 1) continue;
      wrong = true;
      addressErrors.push(invalid('spec.clusterIPs', addresses, "'None' must be the first and only value"));
      continue;
    }
    const messages = before.includes(address) ? [] : looseAddress(address);
    wrong ||= messages.length > 0;
    addressErrors.push(...syntax(`spec.clusterIPs[${index}]`, address, messages));
  }
  return { wrong, addressErrors };
}

function matchFamilies(addresses: readonly string[], families: readonly string[]): FieldError[] {
  return addresses.flatMap((address, index) => {
    const family = families[index];
    const other = (family === 'IPv4' && isSixth(address)) || (family === 'IPv6' && !isSixth(address));
    return other
      ? [
          invalid(
            `spec.clusterIPs[${index}]`,
            address,
            `expected an ${family} value as indicated by \`ipFamilies[${index}]\``,
          ),
        ]
      : [];
  });
}

/** The first address stays; a second one comes and goes with the policy. */
export function validateClusterIPChange(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  if (spec.type === 'ExternalName' || old.type === 'ExternalName' || (isHeadless(old) && isHeadless(spec))) return [];
  const [now, before] = [spec.clusterIPs ?? [], old.clusterIPs ?? []];
  const changed = (index: number) => invalid(`spec.clusterIPs[${index}]`, now, 'may not change once set');
  if (now.length === before.length) {
    return before.flatMap((address, index) => (address === now[index] ? [] : [changed(index)]));
  }
  const errors: FieldError[] = [];
  if (now.length === 0) errors.push(invalid('spec.clusterIPs[0]', now, 'primary clusterIP can not be unset'));
  if (before.length > 0 && now.length > 0 && now[0] !== before[0]) errors.push(changed(0));
  if (before.length > now.length && now.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    errors.push(
      invalid(
        'spec.ipFamilyPolicy',
        spec.ipFamilyPolicy ?? null,
        "must be set to 'SingleStack' when releasing the secondary clusterIP",
      ),
    );
  }
  return errors;
}

export function validateFamilyChange(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  if (spec.type === 'ExternalName' || old.type === 'ExternalName' || isHeadless(spec) || isHeadless(old)) return [];
  const [now, before] = [spec.ipFamilies ?? [], old.ipFamilies ?? []];
  const changed = (value: readonly string[]) => invalid('spec.ipFamilies[0]', value, 'may not change once set');
  if (now.length === before.length) {
    return before.flatMap((family, index) => (family === now[index] ? [] : [changed(now)]));
  }
  const errors: FieldError[] = [];
  if (now.length < before.length && (spec.clusterIPs ?? []).length === 0) {
    errors.push(invalid('spec.ipFamilies[0]', now, 'primary ipFamily can not be unset'));
  }
  if (before.length > 0 && now.length > 0 && now[0] !== before[0]) errors.push(changed(spec.clusterIPs ?? []));
  if (now.length < before.length && now.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    errors.push(
      invalid(
        'spec.ipFamilyPolicy',
        spec.ipFamilyPolicy ?? null,
        "must be set to 'SingleStack' when releasing the secondary ipFamily",
      ),
    );
  }
  return errors;
}
