// What an update of a pod may change: nearly nothing, as a pod is never moulded, only replaced. One function per way
// to update it: the pod itself, its status, its ephemeral containers. Its resources are validate-resize.ts.

import { getOwn } from '../../../lib/own-property.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { MIRROR_ANNOTATION } from '../../auth/pod-references.ts';
import { addErrors, forbidden, invalid } from '../field-errors.ts';
import type { FieldError } from '../resource.ts';
import type { Container, Pod, PodSpec } from '../shapes.ts';
import { validatePodSpec } from './validate.ts';
import { type Toleration, validateTolerations } from './validate-scheduling.ts';

const MUTABLE =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

/**
 * For every way to update a pod: that it is a mirror pod is settled when it is created. A node is granted nothing for
 * what a mirror pod refers to, so one that could take the mark away would grant itself those objects.
 */
export function validateMirrorAnnotation(pod: Pod, old: Pod): FieldError[] {
  const [now, before] = [pod, old].map(({ metadata }) => getOwn(metadata.annotations, MIRROR_ANNOTATION));
  if (now === before) return [];
  const why =
    before === undefined ? 'may not add mirror pod annotation' : 'may not remove or update mirror pod annotation';
  return [forbidden(`metadata.annotations[${MIRROR_ANNOTATION}]`, why)];
}

export function validatePodUpdate(pod: Pod, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  const spec = pod.spec ?? {};
  const before = old.spec ?? {};
  // A stored pod was valid; validating the whole spec again yields the same messages for what can change.
  addErrors(errors, validatePodSpec('spec', spec));
  for (const list of ['containers', 'initContainers'] as const) {
    if ((spec[list] ?? []).length !== (before[list] ?? []).length) {
      errors.push(forbidden(`spec.${list}`, 'pod updates may not add or remove containers'));
      return errors;
    }
  }
  addErrors(errors, validateImages(spec));
  addErrors(errors, validateActiveDeadline(spec.activeDeadlineSeconds, before.activeDeadlineSeconds));
  addErrors(errors, validateAddedTolerations(spec.tolerations ?? [], before.tolerations ?? []));
  addErrors(errors, validateGateRemoval(spec, before));
  addErrors(errors, validateFixedFields(spec, before));
  return errors;
}

function validateImages(spec: PodSpec): FieldError[] {
  return (['containers', 'initContainers'] as const).flatMap((list) =>
    (spec[list] ?? []).flatMap((container, index) => {
      const image = container.image ?? '';
      return image !== '' && image.trim() !== image
        ? [invalid(`spec.${list}[${index}].image`, image, 'must not have leading or trailing whitespace')]
        : [];
    }),
  );
}

/** It may be set, and then only be lowered. */
function validateActiveDeadline(after: number | undefined, before: number | undefined): FieldError[] {
  const field = 'spec.activeDeadlineSeconds';
  if (before === undefined) return [];
  if (after === undefined) return [invalid(field, null, `must not update from a positive integer to nil value`)];
  if (after > before) {
    return [invalid(field, after, `must be less than or equal to previous value`)];
  }
  return [];
}

function validateAddedTolerations(now: readonly Toleration[], before: readonly Toleration[]): FieldError[] {
  const field = 'spec.tolerations';
  // An existing toleration may get another tolerationSeconds, as node lifecycle controllers need.
  const kept = before.every((old) =>
    now.some((one) => sameJson({ ...one, tolerationSeconds: 0 }, { ...old, tolerationSeconds: 0 })),
  );
  const errors = kept ? [] : [forbidden(field, 'existing toleration can not be modified except its tolerationSeconds')];
  return [...errors, ...(kept ? [] : validateTolerations(field, now))];
}

function validateGateRemoval(spec: PodSpec, before: PodSpec): FieldError[] {
  const old = new Set((before.schedulingGates ?? []).map((gate) => gate.name));
  const added = (spec.schedulingGates ?? []).filter((gate) => !old.has(gate.name)).map((gate) => gate.name);
  if (added.length === 0) return [];
  return [
    forbidden('spec.schedulingGates', `only deletion is allowed, but found new scheduling gates '${added.join(', ')}'`),
  ];
}

/** Every other field must be as it was. */
function validateFixedFields(spec: PodSpec, before: PodSpec): FieldError[] {
  const gated = (before.schedulingGates ?? []).length > 0;
  const comparable = withMutableFieldsOf(spec, before, gated);
  if (sameJson(comparable, before)) return [];
  const changed = [...new Set([...Object.keys(comparable), ...Object.keys(before)])].filter(
    (name) => !sameJson(fieldOf(comparable, name), fieldOf(before, name)),
  );
  return [forbidden('spec', `${MUTABLE}\n${changed.map((name) => difference(name, before, comparable)).join('')}`)];
}

function fieldOf(spec: PodSpec, name: string): unknown {
  return Object.entries(spec).find(([key]) => key === name)?.[1];
}

/** "-" what it was, "+" what it would be. */
function difference(name: string, before: PodSpec, after: PodSpec): string {
  const show = (value: unknown): string => (value === undefined ? 'null' : JSON.stringify(value));
  return `  ${name}:\n- ${show(fieldOf(before, name))}\n+ ${show(fieldOf(after, name))}\n`;
}

/** The new spec as if nothing that may change had: what still differs then may not. */
function withMutableFieldsOf(spec: PodSpec, before: PodSpec, gated: boolean): PodSpec {
  const images = (now: Container[] | undefined, old: Container[] | undefined): Container[] | undefined =>
    now?.map((container, index) => ({ ...container, image: old?.[index]?.image }));
  const result: PodSpec = {
    ...spec,
    containers: images(spec.containers, before.containers),
    initContainers: images(spec.initContainers, before.initContainers),
    activeDeadlineSeconds: before.activeDeadlineSeconds,
    tolerations: before.tolerations,
    schedulingGates: before.schedulingGates,
  };
  // A negative grace period of old may be mended.
  if ((before.terminationGracePeriodSeconds ?? 0) < 0 && spec.terminationGracePeriodSeconds === 1) {
    result.terminationGracePeriodSeconds = before.terminationGracePeriodSeconds;
  }
  if (gated) {
    // While scheduling is gated the pod may still be narrowed to fewer nodes.
    if (includesSelector(spec.nodeSelector, before.nodeSelector)) result.nodeSelector = before.nodeSelector;
    if (before.affinity?.nodeAffinity === undefined) result.affinity = before.affinity;
  }
  return result;
}

type Selector = { readonly [key: string]: string | undefined } | undefined;

function includesSelector(now: Selector, before: Selector): boolean {
  return Object.entries(before ?? {}).every(([key, value]) => getOwn(now, key) === value);
}

/** A binding or a status report never changes where a pod is; and what has ended stays ended. */
export function validatePodStatusUpdate(pod: Pod, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  const node = pod.status?.nominatedNodeName;
  if (node !== undefined && node !== '' && /[^a-z0-9.-]/.test(node)) {
    errors.push(invalid('status.nominatedNodeName', node, 'must be a node name'));
  }
  for (const [list, specList] of [
    ['containerStatuses', 'containers'],
    ['initContainerStatuses', 'initContainers'],
  ] as const) {
    addErrors(errors, validateTransitions(list, pod, old, specList));
  }
  const qos = old.status?.qosClass;
  if (qos !== undefined && pod.status?.qosClass !== undefined && pod.status.qosClass !== qos) {
    errors.push(invalid('status.qosClass', pod.status.qosClass, 'field is immutable'));
  }
  return errors.concat(validateIps(pod));
}

/** A terminated container that is not to be restarted cannot run again. */
function validateTransitions(
  list: 'containerStatuses' | 'initContainerStatuses',
  pod: Pod,
  old: Pod,
  specList: 'containers' | 'initContainers',
): FieldError[] {
  const policy = pod.spec?.restartPolicy;
  if (policy === 'Always') return [];
  return (old.status?.[list] ?? []).flatMap((before) => {
    const ended = before.state?.terminated;
    if (ended === undefined) return [];
    if (policy === 'OnFailure' && ended.exitCode !== 0) return [];
    const container = pod.spec?.[specList]?.find((one) => one.name === before.name);
    if (container?.restartPolicy === 'Always' || (container?.restartPolicyRules ?? []).length > 0) return [];
    const index = (pod.status?.[list] ?? []).findIndex((one) => one.name === before.name);
    const now = pod.status?.[list]?.[index];
    if (now === undefined || now.state?.terminated !== undefined) return [];
    return [forbidden(`status.${list}[${index}].state`, 'may not be transitioned to non-terminated state')];
  });
}

function validateIps(pod: Pod): FieldError[] {
  const ips = pod.status?.podIPs ?? [];
  const primary = pod.status?.podIP ?? '';
  if (ips.length > 0 && primary !== '' && ips[0]?.ip !== primary) {
    return [invalid('status.podIPs', ips, '`podIP` must be the first of `podIPs`')];
  }
  return [];
}

/** pods/<name>/ephemeralcontainers: they may be added, never changed or removed. */
export function validateEphemeralContainersUpdate(pod: Pod, old: Pod): FieldError[] {
  const errors = validatePodSpec('spec', pod.spec ?? {});
  const now = pod.spec?.ephemeralContainers ?? [];
  for (const before of old.spec?.ephemeralContainers ?? []) {
    const same = now.find((container) => container.name === before.name);
    if (same === undefined) {
      errors.push(
        forbidden(
          'spec.ephemeralContainers',
          `existing ephemeral containers ${JSON.stringify(before.name)} may not be removed\n`,
        ),
      );
    } else if (!sameJson(same, before)) {
      errors.push(
        forbidden(
          'spec.ephemeralContainers',
          `existing ephemeral containers ${JSON.stringify(before.name)} may not be changed\n`,
        ),
      );
    }
  }
  return errors;
}
