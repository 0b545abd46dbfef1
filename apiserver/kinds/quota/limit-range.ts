// LimitRanges: the row, its defaults and rules. Enforcing them is the admission plugin LimitRanger.

import type { LimitRange, LimitRangeItem } from 'kubernetes-types/core/v1';
import { getOwn, setOwn } from '../../../lib/own-property.ts';
import { isOvercommitAllowed } from '../../../lib/resource-names.ts';
import { NAME_COLUMN } from '../columns.ts';
import { addErrors, duplicate, forbidden, invalid, required, syntax } from '../field-errors.ts';
import { defineKind } from '../metadata.ts';
import { qualifiedName } from '../names.ts';
import { validateContainerResourceName } from '../pods/validate-resources.ts';
import type { FieldError, KubeObject } from '../resource.ts';
import { as, type Loose } from '../shapes.ts';
import { nano, type Quantities, validateResourceName } from './shared.ts';

type Item = Loose<LimitRangeItem>;
const of = (object: KubeObject) => as<LimitRange>(object, 'LimitRange');
const TYPES = ['Pod', 'Container', 'PersistentVolumeClaim'];
const UNIT = 1_000_000_000n;

/** Entries of `from` that `to` lacks. */
function fill(to: Record<string, string | undefined>, from: Quantities | undefined): void {
  for (const [name, quantity] of Object.entries(from ?? {})) {
    if (getOwn(to, name) === undefined) setOwn(to, name, quantity);
  }
}

/** For containers: the limit defaults to the maximum, the request to that limit, and else to the minimum. */
function defaultItem(item: Item): void {
  if (item.type !== 'Container') return;
  const limit = { ...item.default };
  const request = { ...item.defaultRequest };
  fill(limit, item.max);
  fill(request, limit);
  fill(request, item.min);
  if (Object.keys(limit).length > 0) item.default = limit;
  if (Object.keys(request).length > 0) item.defaultRequest = request;
}

function validateType(field: string, type: string): FieldError[] {
  const errors = syntax(field, type, qualifiedName(type));
  if (errors.length > 0 || type.includes('/') || TYPES.includes(type)) return errors;
  return [invalid(field, type, 'must be a standard limit type or fully qualified')];
}

function validateNames(field: string, type: string, lists: readonly [string, Quantities][]): FieldError[] {
  const rule = type === 'Pod' || type === 'Container' ? validateContainerResourceName : validateResourceName;
  return lists.flatMap(([list, values]) =>
    Object.keys(values).flatMap((name) => rule(`${field}.${list}[${name}]`, name)),
  );
}

interface Bounds {
  readonly min: string | undefined;
  readonly max: string | undefined;
  readonly limit: string | undefined;
  readonly request: string | undefined;
  readonly ratio: string | undefined;
}

/** The order of one resource's bounds. */
function validateBounds(field: string, name: string, { min, max, limit, request, ratio }: Bounds): FieldError[] {
  const errors: FieldError[] = [];
  const above = (a: string | undefined, b: string | undefined): boolean =>
    a !== undefined && b !== undefined && nano(a) > nano(b);
  const wrong = (list: string, value: string | undefined, detail: string): void => {
    errors.push(invalid(`${field}.${list}[${name}]`, value, detail));
  };
  if (above(min, max)) wrong('min', min, `min value ${min} is greater than max value ${max}`);
  if (above(min, request)) {
    wrong('defaultRequest', request, `min value ${min} is greater than default request value ${request}`);
  }
  if (above(request, max)) {
    wrong('defaultRequest', request, `default request value ${request} is greater than max value ${max}`);
  }
  if (above(request, limit)) {
    wrong('defaultRequest', request, `default request value ${request} is greater than default limit value ${limit}`);
  }
  if (above(min, limit)) wrong('default', min, `min value ${min} is greater than default value ${limit}`);
  if (above(limit, max)) wrong('default', max, `default value ${limit} is greater than max value ${max}`);
  if (ratio !== undefined) {
    if (nano(ratio) < UNIT) wrong('maxLimitRequestRatio', ratio, `ratio ${ratio} is less than 1`);
    if (min !== undefined && max !== undefined) {
      const highest = Number(nano(max)) / Number(nano(min));
      if (Number(nano(ratio)) / Number(UNIT) > highest) {
        wrong('maxLimitRequestRatio', ratio, `ratio ${ratio} is greater than max/min = ${highest.toFixed(6)}`);
      }
    }
  }
  if (!isOvercommitAllowed(name) && limit !== undefined && request !== undefined && nano(limit) !== nano(request)) {
    wrong('defaultRequest', request, `default value ${limit} must equal to defaultRequest value ${request}`);
  }
  return errors;
}

function validateItem(field: string, item: Item): FieldError[] {
  const { type = '', min = {}, max = {}, default: limit = {}, defaultRequest = {}, maxLimitRequestRatio = {} } = item;
  const errors = validateType(`${field}.type`, type);
  addErrors(
    errors,
    validateNames(field, type, [
      ['max', max],
      ['min', min],
    ]),
  );
  if (type === 'Pod') {
    for (const list of ['default', 'defaultRequest'] as const) {
      if (Object.keys(item[list] ?? {}).length > 0) {
        errors.push(forbidden(`${field}.${list}`, "may not be specified when `type` is 'Pod'"));
      }
    }
  } else {
    addErrors(
      errors,
      validateNames(field, type, [
        ['default', limit],
        ['defaultRequest', defaultRequest],
      ]),
    );
  }
  if (
    type === 'PersistentVolumeClaim' &&
    getOwn(min, 'storage') === undefined &&
    getOwn(max, 'storage') === undefined
  ) {
    const why = 'either minimum or maximum storage value is required, but neither was provided';
    errors.push(required(`${field}.limits`, why));
  }
  addErrors(errors, validateNames(field, type, [['maxLimitRequestRatio', maxLimitRequestRatio]]));
  const counted: Quantities[] = type === 'Pod' ? [min, max] : [min, max, limit, defaultRequest];
  const names = new Set([...counted, maxLimitRequestRatio].flatMap((list) => Object.keys(list)));
  for (const name of names) {
    const bounds = {
      min: getOwn(min, name),
      max: getOwn(max, name),
      limit: type === 'Pod' ? undefined : getOwn(limit, name),
      request: type === 'Pod' ? undefined : getOwn(defaultRequest, name),
      ratio: getOwn(maxLimitRequestRatio, name),
    };
    addErrors(errors, validateBounds(field, name, bounds));
  }
  return errors;
}

function validate(object: KubeObject): FieldError[] {
  const seen = new Set<string>();
  return (of(object).spec?.limits ?? []).flatMap((item, index) => {
    const field = `spec.limits[${index}]`;
    const { type = '' } = item;
    const errors = validateItem(field, item);
    if (seen.has(type)) errors.push(duplicate(`${field}.type`, type));
    seen.add(type);
    return errors;
  });
}

export const limitranges = defineKind({
  group: '',
  version: 'v1',
  kind: 'LimitRange',
  plural: 'limitranges',
  singular: 'limitrange',
  shortNames: ['limits'],
  namespaced: true,
  subresources: [],
  schema: 'io.k8s.api.core.v1.LimitRange',
  updateMeta: ['rules', 'create'],
  strategy: {
    applyDefaults: (object) => {
      for (const item of of(object).spec?.limits ?? []) defaultItem(item);
    },
    validateCreate: validate,
    table: {
      columns: [
        NAME_COLUMN,
        { name: 'Created At', type: 'date', description: 'When this object was created, by the server.' },
      ],
      row: ({ metadata }) => [metadata.name ?? '', metadata.creationTimestamp ?? ''],
    },
  },
});
