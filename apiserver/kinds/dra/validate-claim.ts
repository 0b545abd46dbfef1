// Rules for what a ResourceClaim asks for: its requests, what they have in common, and configuration for drivers.

import { addErrors, invalid, notSupported, required, syntax } from '../field-errors.ts';
import { dns1123Label, dns1123Subdomain, labelValue, qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Loose } from '../shapes.ts';
import { allOf } from '../shared/counts.ts';
import {
  BY_ITSELF,
  BY_NAME,
  Expressions,
  MAX_ITEMS,
  validateConfiguration,
  validateFullName,
  validateList,
  validateSet,
} from './rules.ts';
import type { ClaimSpec, DeviceChoice, Request, Toleration } from './types.ts';

type Spec = Loose<ClaimSpec>;
const MAX_ALTERNATIVES = 8;
const MODES = ['All', 'ExactCount'];
const NO_REQUEST =
  "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/** The names that other parts of the claim may refer to: "gpu", "gpu/large". */
export function requestNames({ devices }: Spec = {}): ReadonlySet<string> {
  return new Set(
    (devices?.requests ?? []).flatMap(({ name = '', firstAvailable = [] }) => [
      name,
      ...firstAvailable.map((one) => `${name}/${one.name ?? ''}`),
    ]),
  );
}

export function validateRequestRef(field: string, name: string, names: ReadonlySet<string>): FieldError[] {
  const parts = name.split('/');
  if (parts.length > 2) return [invalid(field, name, NO_REQUEST)];
  const errors = parts.flatMap((part) => syntax(field, part, dns1123Label(part)));
  return names.has(name) ? errors : [...errors, invalid(field, name, NO_REQUEST)];
}

/** `stored`: an update, which may keep what was stored under older limits. */
export function validateClaimSpec(at: string, spec: Spec = {}, stored = false): FieldError[] {
  const { requests = [], constraints = [], config = [] } = spec.devices ?? {};
  const names = requestNames(spec);
  const expressions = new Expressions();
  const field = `${at}.devices`;
  const refs = (place: string, list: readonly string[] | undefined): FieldError[] =>
    validateSet(place, list, MAX_ITEMS, (one, name) => validateRequestRef(one, name, names), BY_ITSELF);
  return allOf(
    validateSet(
      `${field}.requests`,
      requests,
      MAX_ITEMS,
      (one, request) => validateRequest(one, request, expressions),
      BY_NAME,
    ),
    validateList(`${field}.constraints`, constraints, MAX_ITEMS, (one, constraint) => [
      ...refs(`${one}.requests`, constraint.requests),
      ...(constraint.matchAttribute === undefined
        ? [required(`${one}.matchAttribute`)]
        : validateFullName(`${one}.matchAttribute`, constraint.matchAttribute)),
    ]),
    validateList(`${field}.config`, config, MAX_ITEMS, (one, configuration) => [
      ...refs(`${one}.requests`, configuration.requests),
      ...validateConfiguration(one, configuration, stored),
    ]),
  );
}

function validateRequest(at: string, request: Loose<Request>, expressions: Expressions): FieldError[] {
  const { name = '', exactly, firstAvailable = [] } = request;
  const errors = syntax(`${at}.name`, name, dns1123Label(name));
  if (firstAvailable.length > 0) {
    addErrors(
      errors,
      validateSet(
        `${at}.firstAvailable`,
        firstAvailable,
        MAX_ALTERNATIVES,
        (one, choice: Loose<DeviceChoice> & { name?: string | undefined }) => [
          ...syntax(`${one}.name`, choice.name ?? '', dns1123Label(choice.name ?? '')),
          ...validateChoice(one, choice, expressions),
        ],
        BY_NAME,
      ),
    );
  }
  if (exactly !== undefined) addErrors(errors, validateChoice(`${at}.exactly`, exactly, expressions));
  const why = 'exactly one of `exactly` or `firstAvailable` is required';
  if (exactly === undefined && firstAvailable.length === 0) errors.push(required(at, why));
  if (exactly !== undefined && firstAvailable.length > 0) {
    errors.push(invalid(at, null, `${why}, but multiple fields are set`));
  }
  return errors;
}

function validateChoice(at: string, choice: Loose<DeviceChoice>, expressions: Expressions): FieldError[] {
  const { deviceClassName: name = '', selectors, tolerations = [] } = choice;
  const field = `${at}.deviceClassName`;
  return allOf(
    name === '' ? [required(field)] : syntax(field, name, dns1123Subdomain(name)),
    expressions.validate(`${at}.selectors`, selectors),
    validateMode(at, choice),
    ...tolerations.map((toleration, index) => validateToleration(`${at}.tolerations[${index}]`, toleration)),
  );
}

function validateMode(at: string, { allocationMode = '', count = 0 }: Loose<DeviceChoice>): FieldError[] {
  const field = `${at}.count`;
  if (!MODES.includes(allocationMode)) return [notSupported(`${at}.allocationMode`, allocationMode, MODES)];
  if (allocationMode === 'All') {
    return count === 0 ? [] : [invalid(field, count, "must not be specified when allocationMode is 'All'")];
  }
  return count > 0 ? [] : [invalid(field, count, 'must be greater than zero')];
}

function validateToleration(at: string, toleration: Loose<Toleration>): FieldError[] {
  const { key = '', operator = '', value = '', effect = '' } = toleration;
  const errors = key === '' ? [] : syntax(`${at}.key`, key, qualifiedName(key));
  const effects = ['NoExecute', 'NoSchedule'];
  if (operator === 'Exists') {
    if (value !== '') errors.push(invalid(`${at}.value`, value, 'must be empty for operator `Exists`'));
  } else if (operator === 'Equal') addErrors(errors, syntax(`${at}.value`, value, labelValue(value)));
  else if (operator === '') errors.push(required(`${at}.operator`));
  else errors.push(notSupported(`${at}.operator`, operator, ['Equal', 'Exists']));
  if (effect !== '' && !effects.includes(effect)) errors.push(notSupported(`${at}.effect`, effect, effects));
  return errors;
}
