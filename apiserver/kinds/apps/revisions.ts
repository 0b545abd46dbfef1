// ControllerRevisions: what a StatefulSet's or DaemonSet's template was, kept for going back. They never change but for their
// metadata and number.

import type { ControllerRevision } from 'kubernetes-types/apps/v1';
import { isObject } from '../../patch/json-value.ts';
import { namedTable, text } from '../columns.ts';
import { nonNegative, required } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Of } from '../shapes.ts';
import { allOf, validateImmutable } from '../shared/counts.ts';
import { APPS } from './shared.ts';

const of = (object: KubeObject): Of<ControllerRevision> => as<ControllerRevision>(object, 'ControllerRevision');

function validateData(data: unknown): FieldError[] {
  if (data === undefined || data === null) return [required('data', 'data is mandatory')];
  return isObject(data) ? [] : [required('data', 'data must be a valid JSON object')];
}

function controllerCell(object: KubeObject): string {
  const owner = object.metadata.ownerReferences?.find((reference) => reference['controller'] === true);
  if (owner === undefined) return '<none>';
  const [group = '', version] = String(owner['apiVersion']).split('/');
  const kind = version === undefined ? String(owner['kind']) : `${String(owner['kind'])}.${group}`;
  return `${kind.toLowerCase()}/${String(owner['name'])}`;
}

const { categories: _all, ...row } = APPS;

export const controllerrevisions = defineKind({
  ...row,
  kind: 'ControllerRevision',
  plural: 'controllerrevisions',
  singular: 'controllerrevision',
  subresources: [],
  schema: 'io.k8s.api.apps.v1.ControllerRevision',
  updateMeta: ['update', 'rules', 'create', 'own'],
  strategy: {
    applyDefaults: (object) => {
      of(object).revision ??= 0;
    },
    validateCreate: (object) => allOf(nonNegative('revision', of(object).revision), validateData(object['data'])),
    validateUpdate: (object, old) => validateImmutable('data', object['data'], old['data']),
    table: namedTable(
      [
        text('Controller', 'Controller of the object'),
        { name: 'Revision', type: 'integer', description: 'The number of the state.' },
      ],
      (object) => [controllerCell(object), of(object).revision ?? 0],
    ),
  },
});
