// pods/<name>/resize: cpu and memory of containers that run, and nothing else (KEP-1287, with the rules of 1.34). What
// an update may carry over, and what it may not.

import { getOwn, setOwn } from '../../../lib/own-property.ts';
import { computePodQOS } from '../../../lib/qos-class.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { isSidecar } from '../../../lib/sidecar.ts';
import { MIRROR_ANNOTATION } from '../../auth/pod-references.ts';
import { addErrors, forbidden, invalid, WHOLE } from '../field-errors.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { type Container, type Pod, type PodSpec, podOf } from '../shapes.ts';
import { validatePod } from './validate.ts';

const LISTS = ['containers', 'initContainers'] as const;
const RESIZABLE = ['cpu', 'memory'];

type Quantities = { readonly [name: string]: string | undefined };

/** The old pod with the resources of each container as the update has them; in place. Names and order are validated later. */
export function prepareResize(object: KubeObject, old: KubeObject): void {
  const pod = podOf(object);
  const before = podOf(old).spec ?? {};
  const requested = pod.spec ?? {};
  const merged = (list: (typeof LISTS)[number]): Container[] | undefined =>
    requested[list]?.map((container) => {
      const same = before[list]?.find(({ name }) => name === container.name);
      if (same === undefined) return container;
      const { resources, resizePolicy, ...rest } = same;
      return {
        ...rest,
        ...(container.resources === undefined ? {} : { resources: container.resources }),
        ...(container.resizePolicy === undefined ? {} : { resizePolicy: container.resizePolicy }),
      };
    });
  for (const field of new Set([...Object.keys(object), ...Object.keys(old)])) {
    if (field === 'spec') continue;
    if (getOwn(old, field) === undefined) delete object[field];
    else setOwn(object, field, getOwn(old, field));
  }
  object.metadata = { ...old.metadata };
  const spec: PodSpec = { ...before };
  for (const list of LISTS) {
    const containers = merged(list);
    if (containers === undefined) delete spec[list];
    else spec[list] = containers;
  }
  pod.spec = spec;
}

export function validateResize(pod: Pod, old: Pod): FieldError[] {
  const spec = pod.spec ?? {};
  const before = old.spec ?? {};
  const errors = validatePod(pod);
  const refusal = refuseResize(pod, old);
  if (refusal !== undefined) return [forbidden(WHOLE, refusal)];
  if (computePodQOS(spec) !== (old.status?.qosClass ?? computePodQOS(before))) {
    errors.push(invalid('spec', pod.status?.qosClass ?? '', 'Pod QOS Class may not change as a result of resizing'));
  }
  if (!nodeResizes(old)) errors.push(forbidden('spec', 'Pod running on node without support for resize'));
  const disorder = LISTS.flatMap((list) => validateOrder(list, spec[list] ?? [], before[list] ?? []));
  if (disorder.length > 0) return [...errors, ...disorder];
  for (const list of LISTS) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      const was = before[list]?.[index];
      if (was === undefined || !isResizable(list, was)) continue;
      addErrors(errors, validateContainer(`spec.${list}[${index}].resources`, container, was));
    }
  }
  for (const list of LISTS) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      const was = before[list]?.[index];
      if (was === undefined || !changesMore(list, container, was)) continue;
      errors.push(forbidden('spec', whyFixed(list, was)));
    }
  }
  return errors;
}

function whyFixed(list: (typeof LISTS)[number], was: Container): string {
  if (list === 'containers') return 'only cpu and memory resources are mutable';
  return isSidecar(was)
    ? 'only cpu and memory resources for sidecar containers are mutable'
    : 'resources for non-sidecar init containers are immutable';
}

/** Pods that are not resized at all. */
function refuseResize(pod: Pod, old: Pod): string | undefined {
  const hasOwn = ({ spec }: Pod): boolean =>
    Object.keys({ ...spec?.resources?.requests, ...spec?.resources?.limits }).length > 0;
  if (hasOwn(pod) || hasOwn(old)) return 'pods with pod-level resources cannot be resized';
  if (old.metadata.annotations?.[MIRROR_ANNOTATION] !== undefined) return 'static pods cannot be resized';
  return old.spec?.os?.name === 'windows' ? 'windows pods cannot be resized' : undefined;
}

/** A node that reports no resources of its containers does not support resize. */
function nodeResizes(pod: Pod): boolean {
  const running = (pod.status?.containerStatuses ?? []).find(({ state }) => state?.running !== undefined);
  return running === undefined || running.resources !== undefined;
}

/** An init container that ends is not resized; one that stays (a sidecar) is. */
function isResizable(list: (typeof LISTS)[number], container: Container): boolean {
  return list === 'containers' || isSidecar(container);
}

function validateOrder(
  list: (typeof LISTS)[number],
  now: readonly Container[],
  was: readonly Container[],
): FieldError[] {
  if (now.length !== was.length) return [forbidden(`spec.${list}`, `${list} may not be added or removed on resize`)];
  return now.flatMap(({ name }, index) =>
    name === was[index]?.name
      ? []
      : [forbidden(`spec.${list}[${index}].name`, `${list} may not be renamed or reordered on resize`)],
  );
}

function validateContainer(field: string, container: Container, was: Container): FieldError[] {
  const errors: FieldError[] = [];
  const [now, before] = [container.resources ?? {}, was.resources ?? {}];
  for (const list of ['requests', 'limits'] as const) {
    if (Object.keys(before[list] ?? {}).some((name) => getOwn(now[list], name) === undefined)) {
      errors.push(forbidden(`${field}.${list}`, `resource ${list} cannot be removed`));
    }
  }
  return errors;
}

function withoutResizable(quantities: Quantities | undefined): Quantities {
  return Object.fromEntries(Object.entries(quantities ?? {}).filter(([name]) => !RESIZABLE.includes(name)));
}

/** Whether anything but cpu and memory of what can be resized differs. */
function changesMore(list: (typeof LISTS)[number], container: Container, before: Container): boolean {
  const rest = (one: Container): unknown => {
    const { resources = {}, ...others } = one;
    if (!isResizable(list, before)) return { ...others, resources };
    const { requests, limits, ...more } = resources;
    return { ...others, ...more, requests: withoutResizable(requests), limits: withoutResizable(limits) };
  };
  return !sameJson(rest(container), rest(before));
}
