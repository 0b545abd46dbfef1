// Pod templates: defaults, rules, and how tables print them. Whatever makes pods validates its template here.

import { getOwn } from '../../../lib/own-property.ts';
import { MIRROR_ANNOTATION } from '../../auth/pod-references.ts';
import { type Cell, text } from '../columns.ts';
import { addErrors, forbidden, invalid, notSupported } from '../field-errors.ts';
import { validateAnnotations, validateLabels } from '../metadata.ts';
import { dns1123Label } from '../names.ts';
import { defaultPodSpec } from '../pods/defaults.ts';
import { validatePodSpec } from '../pods/validate.ts';
import type { FieldError, KubeObject, TableColumn } from '../resource.ts';
import type { PodSpec, PodTemplate } from '../shapes.ts';
import { podWarnings } from './pod-warnings.ts';

const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';

/** The template of a spec that has one; an absent one is an empty one, as in Go. */
export function defaultTemplate(owner: { template?: PodTemplate | undefined }): void {
  owner.template ??= {};
  owner.template.spec ??= {};
  defaultPodSpec(owner.template.spec);
}

export function validateTemplate(field: string, template: PodTemplate = {}): FieldError[] {
  const { metadata = {}, spec = {} } = template;
  const annotations = Object.fromEntries(
    Object.entries(metadata.annotations ?? {}).map(([key, value]) => [key, value ?? '']),
  );
  const errors = validateLabels(`${field}.labels`, metadata.labels);
  addErrors(errors, validateAnnotations(`${field}.annotations`, annotations));
  addErrors(errors, validatePodAnnotations(`${field}.annotations`, annotations, spec));
  addErrors(errors, validatePodSpec(`${field}.spec`, spec));
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(forbidden(`${field}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'));
  }
  return errors;
}

function validatePodAnnotations(field: string, annotations: Record<string, string>, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const mirror = getOwn(annotations, MIRROR_ANNOTATION);
  if (mirror !== undefined && (spec.nodeName ?? '') === '') {
    errors.push(
      invalid(`${field}[${MIRROR_ANNOTATION}]`, mirror, 'must set spec.nodeName if mirror pod annotation is set'),
    );
  }
  const cost = getOwn(annotations, DELETION_COST);
  if (cost !== undefined && !isInt32(cost)) {
    errors.push(invalid(`${field}[${DELETION_COST}]`, cost, 'must be a 32bit integer'));
  }
  return errors;
}

function isInt32(value: string): boolean {
  if (!/^(0|-?[1-9]\d{0,9})$/.test(value)) return false;
  const number = Number(value);
  return number >= -(2 ** 31) && number < 2 ** 31;
}

/** For what keeps pods running: `kind` is named in the message. */
export function validateRunningTemplate(field: string, template: PodTemplate = {}, kind: string): FieldError[] {
  const { restartPolicy = '', activeDeadlineSeconds } = template.spec ?? {};
  const errors: FieldError[] = [];
  if (restartPolicy !== 'Always') {
    errors.push(notSupported(`${field}.spec.restartPolicy`, restartPolicy, ['Always']));
  }
  if (activeDeadlineSeconds !== undefined) {
    errors.push(forbidden(`${field}.spec.activeDeadlineSeconds`, `activeDeadlineSeconds in ${kind} is not Supported`));
  }
  return errors;
}

/** On an update only where it is one of the spec. `at`: "spec.template.". */
export function templateWarnings(
  object: KubeObject,
  old: KubeObject | undefined,
  at: string,
  template: PodTemplate = {},
): string[] {
  return old !== undefined && object.metadata.generation === old.metadata.generation ? [] : podWarnings(at, template);
}

/** For what gives its name to pods. */
export function nameWarnings({ metadata: { name = '' } }: KubeObject, old: KubeObject | undefined): string[] {
  const messages = old === undefined ? dns1123Label(name) : [];
  if (messages.length === 0) return [];
  return [
    `metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [${messages.join(' ')}]`,
  ];
}

export function templateColumns(priority = 1): TableColumn[] {
  return [
    text('Containers', 'Names of each container in the template.', priority),
    text('Images', 'Images referenced by each container in the template.', priority),
  ];
}

export function templateCells(template: PodTemplate | undefined): Cell[] {
  const containers = template?.spec?.containers ?? [];
  return [containers.map(({ name = '' }) => name).join(','), containers.map(({ image = '' }) => image).join(',')];
}
