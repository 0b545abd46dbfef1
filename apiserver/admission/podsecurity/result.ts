// What one check of the Pod Security Standards says, and the words that checks share. Pure.

import type { KubeObjectMeta } from '../../kinds/resource.ts';
import type { Container, PodSpec } from '../../kinds/shapes.ts';

export interface Violation {
  /** "host namespaces" */
  readonly reason: string;
  /** "hostNetwork=true" */
  readonly detail: string;
}

/** What is wrong with the pod; undefined when nothing is. */
export type CheckPod = (spec: PodSpec, metadata: KubeObjectMeta) => Violation | undefined;

export const quoted = (items: readonly string[]): string => items.map((item) => `"${item}"`).join(', ');

export const sorted = (items: Iterable<string>): string[] => [...new Set(items)].sort();

/** The singular for one, the plural for more. */
export const plural = (one: string, more: string, count: number): string => (count === 1 ? one : more);

/** 'container "a"', 'containers "a", "b"' */
export const named = (names: readonly string[]): string =>
  `${plural('container', 'containers', names.length)} ${quoted(names)}`;

/** Init containers, containers, ephemeral containers. */
export function allContainers(spec: PodSpec): Container[] {
  return [...(spec.initContainers ?? []), ...(spec.containers ?? []), ...(spec.ephemeralContainers ?? [])];
}

/** Names of the containers for which `bad` holds. */
export function containersWith(spec: PodSpec, bad: (container: Container) => boolean): string[] {
  return allContainers(spec)
    .filter(bad)
    .map(({ name = '' }) => name);
}

/** 'pod', 'pod and container "a"', … : who sets something. */
export function setters(pod: boolean, containers: readonly string[]): string[] {
  return [...(pod ? ['pod'] : []), ...(containers.length === 0 ? [] : [named(containers)])];
}

export const isWindows = (spec: PodSpec): boolean => spec.os?.name === 'windows';
