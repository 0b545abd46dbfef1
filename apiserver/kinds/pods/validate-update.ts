// What an update of a pod may change: nearly nothing, as a pod is never moulded, only replaced. One function per way
// to update it: the pod itself, its status, its ephemeral containers. Its resources are validate-resize.ts.

import { getOwn } from '../../../lib/own-property.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { MIRROR_ANNOTATION } from '../../auth/pod-references.ts';
import { addErrors, forbidden, invalid, required, WHOLE } from '../field-errors.ts';
import type { FieldError } from '../resource.ts';
import type { Container, Pod, PodSpec } from '../shapes.ts';
import { validatePod } from './validate.ts';
import { validatePodAnnotations } from './validate-annotations.ts';
import { validateNarrowing } from './validate-narrowing.ts';
import { type Toleration, validateTolerations } from './validate-scheduling.ts';

const MUTABLE =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

const APPARMOR = 'container.apparmor.security.beta.kubernetes.io/';

/**
 * For every way to update a pod: that it is a mirror pod is settled when it is created. A node is granted nothing for
 * what a mirror pod refers to, so one that could take the mark away would grant itself those objects.
 */
export function validateAnnotationChanges(pod: Pod, old: Pod): FieldError[] {
  const [now, before] = [pod.metadata.annotations ?? {}, old.metadata.annotations ?? {}];
  const field = 'metadata.annotations';
  const errors: FieldError[] = [];
  const settled = (key: string): string | undefined => {
    if (key.startsWith(APPARMOR)) return 'AppArmor annotations';
    return key === MIRROR_ANNOTATION ? 'mirror pod annotation' : undefined;
  };
  for (const [key, value] of Object.entries(before)) {
    const what = settled(key);
    if (what === undefined || getOwn(now, key) === value) continue;
    errors.push(forbidden(`${field}[${key}]`, `may not remove or update ${what}`));
  }
  for (const key of Object.keys(now)) {
    const what = settled(key);
    if (what === undefined || getOwn(before, key) !== undefined) continue;
    errors.push(forbidden(`${field}[${key}]`, `may not add ${what}`));
  }
  return errors.concat(validatePodAnnotations(field, now, pod.spec ?? {}));
}

export function validatePodUpdate(pod: Pod, old: Pod): FieldError[] {
  const spec = pod.spec ?? {};
  const before = old.spec ?? {};
  const errors = validatePod(pod);
  addErrors(errors, validateAnnotationChanges(pod, old));
  for (const list of ['containers', 'initContainers'] as const) {
    if ((spec[list] ?? []).length !== (before[list] ?? []).length) {
      errors.push(forbidden(`spec.${list}`, 'pod updates may not add or remove containers'));
      return errors;
    }
    addErrors(errors, validateImages(`spec.${list}`, spec[list] ?? []));
  }
  const deadline = validateActiveDeadline(spec.activeDeadlineSeconds, before.activeDeadlineSeconds);
  addErrors(errors, deadline);
  if (deadline.length > 0 && spec.activeDeadlineSeconds !== undefined) return errors;
  addErrors(errors, validateAddedTolerations(spec.tolerations ?? [], before.tolerations ?? []));
  addErrors(errors, validateGateRemoval(spec, before));
  return sameJson(spec, before) ? errors : errors.concat(validateFixedFields(spec, before));
}

function validateImages(field: string, containers: readonly Container[]): FieldError[] {
  return containers.flatMap(({ image = '' }, index) => {
    const at = `${field}[${index}].image`;
    if (image === '') return [required(at)];
    return image.trim() === image ? [] : [invalid(at, image, 'must not have leading or trailing whitespace')];
  });
}

/** It may be set, and then only be lowered. */
function validateActiveDeadline(after: number | undefined, before: number | undefined): FieldError[] {
  const field = 'spec.activeDeadlineSeconds';
  if (after === undefined) {
    return before === undefined ? [] : [invalid(field, null, 'must not update from a positive integer to nil value')];
  }
  if (after < 0 || after > 2 ** 31 - 1) return [invalid(field, after, 'must be between 0 and 2147483647, inclusive')];
  return before !== undefined && after > before
    ? [invalid(field, after, 'must be less than or equal to previous value')]
    : [];
}

function validateAddedTolerations(now: readonly Toleration[], before: readonly Toleration[]): FieldError[] {
  const field = 'spec.tolerations';
  // An existing toleration may get another tolerationSeconds, as node lifecycle controllers need.
  const kept = before.every((old) =>
    now.some((one) => sameJson({ ...one, tolerationSeconds: 0 }, { ...old, tolerationSeconds: 0 })),
  );
  return kept
    ? validateTolerations(field, now)
    : [forbidden(field, 'existing toleration can not be modified except its tolerationSeconds')];
}

function validateGateRemoval(spec: PodSpec, before: PodSpec): FieldError[] {
  const old = new Set((before.schedulingGates ?? []).map((gate) => gate.name));
  const added = new Map((spec.schedulingGates ?? []).map((gate, index) => [gate.name, index]));
  return [...added]
    .filter(([name]) => !old.has(name))
    .map(([name, index]) =>
      forbidden(
        `spec.schedulingGates[${index}].name`,
        `only deletion is allowed, but found new scheduling gate '${name}'`,
      ),
    );
}

/** Every other field must be as it was. */
function validateFixedFields(spec: PodSpec, before: PodSpec): FieldError[] {
  const comparable = withMutableFieldsOf(spec, before);
  const errors = (before.schedulingGates ?? []).length > 0 ? validateNarrowing(comparable, before) : [];
  if (sameJson(comparable, before)) return errors;
  const changed = [...new Set([...Object.keys(comparable), ...Object.keys(before)])].filter(
    (name) => !sameJson(fieldOf(comparable, name), fieldOf(before, name)),
  );
  const lines = changed.map((name) => difference(name, before, comparable)).join('');
  return errors.concat(forbidden('spec', `${MUTABLE}\n${lines}`));
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
function withMutableFieldsOf(spec: PodSpec, before: PodSpec): PodSpec {
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
  return result;
}

/** pods/<name>/ephemeralcontainers: they may be added, never changed or removed. */
export function validateEphemeralContainersUpdate(pod: Pod, old: Pod): FieldError[] {
  const errors = validatePod(pod);
  addErrors(errors, validateAnnotationChanges(pod, old));
  if (getOwn(old.metadata.annotations, MIRROR_ANNOTATION) !== undefined) {
    return [forbidden(WHOLE, 'static pods do not support ephemeral containers')];
  }
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
