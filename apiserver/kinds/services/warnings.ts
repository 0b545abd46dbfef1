// What is worth a warning about a valid Service, in upstream's words.

import type { KubeObject } from '../resource.ts';
import { addressWarnings, rangeWarnings } from '../shared/addresses.ts';
import { serviceOf } from './shape.ts';

const TOPOLOGY_HINTS = 'service.kubernetes.io/topology-aware-hints';

export function serviceWarnings(object: KubeObject): string[] {
  const spec = serviceOf(object).spec ?? {};
  const warnings: string[] = [];
  if (object.metadata.annotations?.[TOPOLOGY_HINTS] !== undefined) {
    warnings.push(`annotation ${TOPOLOGY_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead`);
  }
  if ((spec.clusterIP ?? '') !== '' && spec.clusterIP !== 'None') {
    for (const [index, ip] of (spec.clusterIPs ?? []).entries()) {
      warnings.push(...addressWarnings(`spec.clusterIPs[${index}]`, ip));
    }
  }
  if (spec.type === 'ClusterIP' && spec.clusterIP === 'None') {
    if ((spec.loadBalancerIP ?? '') !== '') warnings.push('spec.loadBalancerIP is ignored for headless services');
    if ((spec.externalIPs ?? []).length > 0) warnings.push('spec.externalIPs is ignored for headless services');
    if (spec.sessionAffinity !== 'None') warnings.push('spec.SessionAffinity is ignored for headless services');
  }
  for (const [index, ip] of (spec.externalIPs ?? []).entries()) {
    warnings.push(...addressWarnings(`spec.externalIPs[${index}]`, ip));
  }
  warnings.push(...addressWarnings('spec.loadBalancerIP', spec.loadBalancerIP ?? ''));
  for (const [index, range] of (spec.loadBalancerSourceRanges ?? []).entries()) {
    warnings.push(...rangeWarnings(`spec.loadBalancerSourceRanges[${index}]`, range));
  }
  if (spec.type === 'ExternalName' && (spec.externalIPs ?? []).length > 0) {
    warnings.push('spec.externalIPs is ignored when spec.type is "ExternalName"');
  }
  if (spec.type !== 'ExternalName' && (spec.externalName ?? '') !== '') {
    warnings.push('spec.externalName is ignored when spec.type is not "ExternalName"');
  }
  return warnings;
}
