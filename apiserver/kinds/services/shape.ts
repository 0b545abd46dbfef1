// A Service as its strategy reads it, and what follows from its type: which fields it needs.

import type { Service } from 'kubernetes-types/core/v1';
import type { KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';

export type ServiceObject = Of<Service>;
export type ServiceSpec = NonNullable<ServiceObject['spec']>;
export type ServicePort = NonNullable<ServiceSpec['ports']>[number];

export const serviceOf = (object: KubeObject): ServiceObject => as<Service>(object, 'Service');

export const needsClusterIP = (spec: ServiceSpec): boolean => spec.type !== 'ExternalName';
export const isHeadless = (spec: ServiceSpec): boolean =>
  spec.clusterIPs?.length === 1 && spec.clusterIPs[0] === 'None';
/** Its clients may be outside of the cluster. */
export const isExternal = (spec: ServiceSpec): boolean =>
  spec.type === 'LoadBalancer' ||
  spec.type === 'NodePort' ||
  (spec.type === 'ClusterIP' && (spec.externalIPs ?? []).length > 0);
/** A load balancer asks the nodes whether they have endpoints. */
export const needsHealthCheckPort = (spec: ServiceSpec): boolean =>
  spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local';
export const hasNodePorts = (spec: ServiceSpec): boolean => spec.type === 'NodePort' || spec.type === 'LoadBalancer';
/** New ones are given out; those that are asked for are there even where they are not. */
export const givesNodePorts = (spec: ServiceSpec): boolean =>
  spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false);

export const sameList = (a: readonly string[] = [], b: readonly string[] = []): boolean =>
  a.length === b.length && a.every((item, index) => item === b[index]);
export const sameClusterIPs = (a: ServiceSpec, b: ServiceSpec): boolean =>
  (a.clusterIP ?? '') === (b.clusterIP ?? '') && sameList(a.clusterIPs, b.clusterIPs);
