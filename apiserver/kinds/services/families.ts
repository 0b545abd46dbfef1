// The fields of a Service about its addresses that depend on each other: clusterIP and clusterIPs, the IP families and
// their policy. What a client leaves out is inferred, from what is stored and from what it did write.

import { invalid } from '../field-errors.ts';
import { isIPv6 } from '../names.ts';
import type { FieldError } from '../resource.ts';
import { legacyAddress } from '../shared/addresses.ts';
import {
  givesNodePorts,
  needsClusterIP,
  needsHealthCheckPort,
  type ServiceSpec,
  sameClusterIPs,
  sameList,
} from './shape.ts';
import { validateClusterIPs } from './validate-addresses.ts';

/** The families that the cluster has addresses of, the first one for Services that ask for none. */
const CLUSTER_FAMILIES = ['IPv4'];

/** Keeps what was given to the Service before, where the client does not send it. */
export function keepAllocated(spec: ServiceSpec, old: ServiceSpec): void {
  if (needsClusterIP(old) && needsClusterIP(spec)) {
    if ((spec.clusterIP ?? '') === '' && old.clusterIP !== undefined) spec.clusterIP = old.clusterIP;
    if ((spec.clusterIPs ?? []).length === 0 && (old.clusterIPs ?? []).length > 0) {
      spec.clusterIPs = [...(old.clusterIPs ?? [])];
    }
  }
  if (givesNodePorts(old) && givesNodePorts(spec)) keepNodePorts(spec, old);
  if (needsHealthCheckPort(old) && needsHealthCheckPort(spec)) {
    if ((spec.healthCheckNodePort ?? 0) === 0 && old.healthCheckNodePort !== undefined) {
      spec.healthCheckNodePort = old.healthCheckNodePort;
    }
  }
}

/** By the port's name; not those that another port has now. */
function keepNodePorts(spec: ServiceSpec, old: ServiceSpec): void {
  const now = new Set((spec.ports ?? []).map((port) => port.nodePort ?? 0));
  const byName = new Map((old.ports ?? []).map((port) => [port.name ?? '', port.nodePort ?? 0]));
  for (const port of spec.ports ?? []) {
    const before = byName.get(port.name ?? '') ?? 0;
    if ((port.nodePort ?? 0) === 0 && before !== 0 && !now.has(before)) port.nodePort = before;
  }
}

/** clusterIPs follows clusterIP where a client knows only that. */
export function pairClusterIPs(spec: ServiceSpec, old?: ServiceSpec): void {
  const own = spec.clusterIP ?? '';
  if (old === undefined) {
    if (own !== '' && (spec.clusterIPs ?? []).length === 0) spec.clusterIPs = [own];
    return;
  }
  const before = old.clusterIP ?? '';
  if ((old.clusterIPs ?? []).length > 0 && (spec.clusterIPs ?? []).length === 0 && before === own) {
    spec.clusterIPs = [...(old.clusterIPs ?? [])];
  }
  if (before === own || !sameList(old.clusterIPs, spec.clusterIPs)) return;
  if (own === '') delete spec.clusterIPs;
  else spec.clusterIPs = [own];
}

/** Fills the families and their policy, in place; what cannot be is an error. */
export function chooseFamilies(spec: ServiceSpec, old?: ServiceSpec): FieldError[] {
  if (spec.type === 'ExternalName') return [];
  if (old !== undefined && isUnchangedPreference(spec, old)) return [];
  const headlessWithoutSelector = spec.clusterIP === 'None' && Object.keys(spec.selector ?? {}).length === 0;
  spec.ipFamilyPolicy ??= old?.ipFamilyPolicy ?? (headlessWithoutSelector ? 'RequireDualStack' : 'SingleStack');
  const wrong = validateClusterIPs(spec, old);
  if (wrong.length > 0) return wrong;
  const errors = old === undefined ? [] : releaseSecond(spec, old);
  errors.push(...checkPolicy(spec), ...inferFamilies(spec));
  if (errors.length > 0) return errors;
  if (headlessWithoutSelector) {
    spec.ipFamilies = (spec.ipFamilies ?? []).length === 0 ? CLUSTER_FAMILIES.slice(0, 1) : (spec.ipFamilies ?? []);
    if (spec.ipFamilies.length < 2 && spec.ipFamilyPolicy !== 'SingleStack') {
      spec.ipFamilies.push(spec.ipFamilies[0] === 'IPv4' ? 'IPv6' : 'IPv4');
    }
    return [];
  }
  return checkFamilies(spec);
}

function isUnchangedPreference(spec: ServiceSpec, old: ServiceSpec): boolean {
  return (
    spec.type === old.type &&
    spec.ipFamilyPolicy === 'PreferDualStack' &&
    (old.ipFamilyPolicy ?? 'PreferDualStack') === 'PreferDualStack' &&
    sameClusterIPs(spec, old) &&
    sameList(spec.ipFamilies, old.ipFamilies)
  );
}

/** A change to a single stack releases the second address; without it, nothing may be left out. */
function releaseSecond(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const { clusterIPs = [], ipFamilies = [] } = spec;
  if (spec.ipFamilyPolicy === 'SingleStack') {
    if (sameClusterIPs(old, spec) && clusterIPs.length > 1) spec.clusterIPs = clusterIPs.slice(0, 1);
    if (sameList(old.ipFamilies, ipFamilies) && ipFamilies.length > 1) spec.ipFamilies = ipFamilies.slice(0, 1);
    return errors;
  }
  const field = 'spec.ipFamilyPolicy';
  if (isReduced(clusterIPs, old.clusterIPs)) {
    errors.push(invalid(field, spec.ipFamilyPolicy, "must be 'SingleStack' to release the secondary cluster IP"));
  }
  if (isReduced(ipFamilies, old.ipFamilies)) {
    errors.push(invalid(field, spec.ipFamilyPolicy, "must be 'SingleStack' to release the secondary IP family"));
  }
  return errors;
}

function isReduced(now: readonly string[], before: readonly string[] = []): boolean {
  return now.length > 0 && now.length < before.length;
}

function checkPolicy(spec: ServiceSpec): FieldError[] {
  if (spec.ipFamilyPolicy !== 'SingleStack') return [];
  const must = "must be 'RequireDualStack' or 'PreferDualStack' when multiple";
  return [
    ...(spec.clusterIPs?.length === 2
      ? [invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, `${must} cluster IPs are specified`)]
      : []),
    ...(spec.ipFamilies?.length === 2
      ? [invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, `${must} IP families are specified`)]
      : []),
  ];
}

/** The families of addresses that the client chose. */
function inferFamilies(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, address] of (spec.clusterIPs ?? []).entries()) {
    if (address === 'None') break;
    if (index < (spec.ipFamilies ?? []).length) continue;
    const family = familyOf(address);
    if (CLUSTER_FAMILIES.includes(family)) spec.ipFamilies = [...(spec.ipFamilies ?? []), family];
    else {
      errors.push(invalid(`spec.clusterIPs[${index}]`, spec.clusterIPs, `${family} is not configured on this cluster`));
    }
  }
  return errors;
}

export function familyOf(address: string): 'IPv4' | 'IPv6' {
  const found = legacyAddress(address);
  return (found === undefined ? isIPv6(address) : found.family === 6) ? 'IPv6' : 'IPv4';
}

function checkFamilies(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.ipFamilyPolicy === 'RequireDualStack' && CLUSTER_FAMILIES.length < 2) {
    errors.push(
      invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, 'this cluster is not configured for dual-stack services'),
    );
  }
  for (const [index, family] of (spec.ipFamilies ?? []).entries()) {
    if (!CLUSTER_FAMILIES.includes(family)) {
      errors.push(invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'));
    }
  }
  if (errors.length === 0 && (spec.ipFamilies ?? []).length === 0) spec.ipFamilies = CLUSTER_FAMILIES.slice(0, 1);
  return errors;
}
