// What the kinds of apps/v1 have in common: the rules of their selectors, and the first half of their row.

import { invalid, required } from '../field-errors.ts';
import type { FieldError, ResourceKind } from '../resource.ts';
import type { PodTemplate } from '../shapes.ts';
import { allOf } from '../shared/counts.ts';
import { validateRunningTemplate, validateTemplate } from '../shared/pod-template.ts';
import {
  isEmptySelector,
  isUnusable,
  type LabelSelector,
  matchesSelector,
  validateLabelSelector,
} from '../shared/selectors.ts';

/** The fields of a row that all kinds of the group share. */
export const APPS = {
  group: 'apps',
  version: 'v1',
  namespaced: true,
  categories: ['all'],
} as const satisfies Partial<ResourceKind>;

export interface Workload {
  selector?: LabelSelector | undefined;
  template?: PodTemplate | undefined;
}

/** `kind` is the word of the message: "empty selector is invalid for deployment". */
export function validateSelector(spec: Workload, kind: string): FieldError[] {
  const { selector } = spec;
  if (selector === undefined) return [required('spec.selector')];
  const errors = validateLabelSelector('spec.selector', selector);
  if (isEmptySelector(selector)) {
    errors.push(invalid('spec.selector', selector, `empty selector is invalid for ${kind}`));
  }
  return errors;
}

/** The template has the labels that are selected. */
export function validateSelected(spec: Workload, template = spec.template): FieldError[] {
  const { selector } = spec;
  const labels = template?.metadata?.labels;
  if (selector !== undefined && (isEmptySelector(selector) || matchesSelector(selector, labels))) return [];
  return [invalid('spec.template.metadata.labels', labels ?? null, '`selector` does not match template `labels`')];
}

/** Of a Deployment or a ReplicaSet: selector and template together. */
export function validateReplicated(spec: Workload): FieldError[] {
  return allOf(
    validateSelector(spec, 'deployment'),
    isUnusable(spec.selector)
      ? [invalid('spec.selector', spec.selector, 'invalid label selector')]
      : allOf(
          validateSelected(spec),
          validateTemplate('spec.template', spec.template),
          validateRunningTemplate('spec.template', spec.template, 'ReplicaSet'),
        ),
  );
}
