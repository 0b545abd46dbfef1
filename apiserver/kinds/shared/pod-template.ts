// Pod templates: defaults, rules, and how tables print them. Whatever makes pods validates its template here.

import { type Cell, text } from '../columns.ts';
import { addErrors, forbidden, notSupported } from '../field-errors.ts';
import { validateAnnotations, validateLabels } from '../metadata.ts';
import { dns1123Label } from '../names.ts';
import { defaultPodSpec } from '../pods/defaults.ts';
import { validatePodSpec } from '../pods/validate.ts';
import { validatePodAnnotations } from '../pods/validate-annotations.ts';
import type { FieldError, KubeObject, TableColumn } from '../resource.ts';
import type { PodTemplate } from '../shapes.ts';
import { podWarnings } from './pod-warnings.ts';

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
