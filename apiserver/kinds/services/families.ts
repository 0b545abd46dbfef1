// The fields of a Service about its addresses that depend on each other: clusterIP and clusterIPs, the IP families and
// their policy. What a client leaves out is inferred, from what is stored and from what it did write.

import { invalid } from '../field-errors.ts';
import { isIPv6 } from '../names.ts';
import type { FieldError, IPFamily } from '../resource.ts';
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

/**
 * Fills the families and their policy, in place; what cannot be is an error. `cluster`: the families that the cluster has
 * addresses of, the first one for Services that name none.
 */
export function chooseFamilies(spec: ServiceSpec, cluster: readonly IPFamily[], old?: ServiceSpec): FieldError[] {
  if (spec.type === 'ExternalName') return [];
  if (old !== undefined && isUnchangedPreference(spec, old)) return [];
  const headlessWithoutSelector = spec.clusterIP === 'None' && Object.keys(spec.selector ?? {}).length === 0;
  spec.ipFamilyPolicy ??= old?.ipFamilyPolicy ?? (headlessWithoutSelector ? 'RequireDualStack' : 'SingleStack');
  const wrong = validateClusterIPs(spec, old);
  if (wrong.length > 0) return wrong;
  const errors = old === undefined ? [] : releaseSecond(spec, old);
  errors.push(...checkPolicy(spec), ...inferFamilies(spec, cluster));
  if (errors.length > 0) return errors;
  if (headlessWithoutSelector) {
    fillFamilies(spec, cluster, true);
    return [];
  }
  const unavailable = checkFamilies(spec, cluster);
  if (unavailable.length === 0) fillFamilies(spec, cluster, cluster.length === 2);
  return unavailable;
}

/** The cluster's first family where there is none, and the other one where the policy wants both. */
function fillFamilies(spec: ServiceSpec, cluster: readonly IPFamily[], both: boolean): void {
  const chosen = spec.ipFamilies ?? [];
  const families = chosen.length === 0 ? cluster.slice(0, 1) : [...chosen];
  if (both && families.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    families.push(families[0] === 'IPv4' ? 'IPv6' : 'IPv4');
  }
  spec.ipFamilies = families;
}

/** Whether an update is to be left as it is: the cluster's own change of families changes no Service. */
export function isUnchangedPreference(spec: ServiceSpec, old: ServiceSpec): boolean {
  return (
    spec.type === old.type &&
    needsClusterIP(spec) &&
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
function inferFamilies(spec: ServiceSpec, cluster: readonly IPFamily[]): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, address] of (spec.clusterIPs ?? []).entries()) {
    if (address === 'None') break;
    if (index < (spec.ipFamilies ?? []).length) continue;
    const family = familyOf(address);
    if (cluster.includes(family)) spec.ipFamilies = [...(spec.ipFamilies ?? []), family];
    else {
      errors.push(invalid(`spec.clusterIPs[${index}]`, spec.clusterIPs, `${family} is not configured on this cluster`));
    }
  }
  return errors;
}

export function familyOf(address: string): IPFamily {
  const found = legacyAddress(address);
  return (found === undefined ? isIPv6(address) : found.family === 6) ? 'IPv6' : 'IPv4';
}

/** Whether the cluster has the families that the Service wants. */
function checkFamilies(spec: ServiceSpec, cluster: readonly IPFamily[]): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.ipFamilyPolicy === 'RequireDualStack' && cluster.length < 2) {
    errors.push(
      invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, 'this cluster is not configured for dual-stack services'),
    );
  }
  for (const [index, family] of (spec.ipFamilies ?? []).entries()) {
    if (!cluster.some((one) => one === family)) {
      errors.push(invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'));
    }
  }
  return errors;
}
