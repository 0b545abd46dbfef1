// Rules for requests, limits and other lists of quantities. Defaults are filled already.

import { getOwn } from '../../../lib/own-property.ts';
import { compareQuantities, parseQuantity } from '../../../lib/quantity.ts';
import { isHugePages, isNative, isOvercommitAllowed } from '../../../lib/resource-names.ts';
import { canonicalQuantity } from '../../schema/quantity.ts';
import {
  addErrors,
  duplicate,
  forbidden,
  invalid,
  notFoundBecause,
  notSupported,
  oneOf,
  required,
  syntax,
  WHOLE,
} from '../field-errors.ts';
import { dns1123Label, dns1123Subdomain } from '../names.ts';
import { isExtendedResource, isIntegerResource, validateResourceName } from '../quota/shared.ts';
import type { FieldError } from '../resource.ts';
import type { Container, PodSpec } from '../shapes.ts';

const CONTAINER_RESOURCES = ['cpu', 'memory', 'ephemeral-storage'];
const POD_RESOURCES = ['cpu', 'memory'];

type Quantities = { readonly [name: string]: string | undefined };

type NameRule = (field: string, name: string) => FieldError[];

export function validateContainerResourceName(field: string, name: string): FieldError[] {
  const errors = validateResourceName(field, name);
  if (!name.includes('/')) {
    if (!CONTAINER_RESOURCES.includes(name) && !isHugePages(name)) {
      errors.push(invalid(field, name, 'must be a standard resource for containers'));
    }
  } else if (!isNative(name) && !isExtendedResource(name)) {
    errors.push(invalid(field, name, "doesn't follow extended resource name standard"));
  }
  return errors;
}

function validatePodResourceName(field: string, name: string): FieldError[] {
  const errors = validateResourceName(field, name);
  if (errors.length > 0 || POD_RESOURCES.includes(name) || isHugePages(name)) return errors;
  return [notSupported(field, name, ['cpu', 'hugepages-', 'memory'])];
}

export function validateQuantity(field: string, name: string, quantity = '0'): FieldError[] {
  const nano = parseQuantity(quantity) ?? 0n;
  const errors: FieldError[] = [];
  if (nano < 0n) errors.push(invalid(field, quantity, 'must be greater than or equal to 0'));
  if (isIntegerResource(name) && nano % 1_000_000_000n !== 0n) {
    errors.push(invalid(field, quantity, 'must be an integer'));
  }
  return errors;
}

/** A multiple of the size in the name: "hugepages-2Mi". */
function validatePages(field: string, name: string, quantity = '0'): FieldError[] {
  if (!isHugePages(name)) return [];
  const size = parseQuantity(name.slice('hugepages-'.length)) ?? 0n;
  const amount = parseQuantity(quantity) ?? 0n;
  // Upstream counts whole bytes.
  const divisible = size > 0n && amount % size === 0n;
  return divisible ? [] : [invalid(field, quantity, `${quantity} is not positive integer multiple of ${name}`)];
}

type Requirements = NonNullable<Container['resources']>;

export function validateContainerResources(
  field: string,
  resources: Requirements,
  claims: ReadonlySet<string>,
): FieldError[] {
  return validateRequirements(field, resources, claims, validateContainerResourceName);
}

function validateRequirements(
  field: string,
  resources: Requirements,
  claims: ReadonlySet<string>,
  nameRule: NameRule,
): FieldError[] {
  const limits: Quantities = resources.limits ?? {};
  const requests: Quantities = resources.requests ?? {};
  const errors: FieldError[] = [];
  for (const [name, quantity] of Object.entries(limits)) {
    const at = `${field}.limits[${name}]`;
    addErrors(errors, nameRule(at, name), validateQuantity(at, name, quantity), validatePages(at, name, quantity));
  }
  for (const [name, quantity] of Object.entries(requests)) {
    const at = `${field}.requests[${name}]`;
    addErrors(errors, nameRule(at, name), validateQuantity(at, name, quantity));
    addErrors(errors, validateAgainstLimit(field, name, quantity ?? '0', getOwn(limits, name)));
    addErrors(errors, validatePages(at, name, quantity));
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePages) && !names.some((name) => POD_RESOURCES.includes(name))) {
    errors.push(forbidden(field, 'HugePages require cpu or memory'));
  }
  return errors.concat(validateClaimNames(`${field}.claims`, resources.claims ?? [], claims));
}

function validateAgainstLimit(field: string, name: string, request: string, limit: string | undefined): FieldError[] {
  const overcommit = isOvercommitAllowed(name);
  if (limit === undefined) {
    return overcommit ? [] : [required(`${field}.limits`, 'Limit must be set for non overcommitable resources')];
  }
  const order = compareQuantities(request, limit);
  const at = `${field}.requests`;
  if (!overcommit && order !== 0) return [invalid(at, request, `must be equal to ${name} limit of ${limit}`)];
  return order > 0 ? [invalid(at, request, `must be less than or equal to ${name} limit of ${limit}`)] : [];
}

/** A claim as a whole and requests of it are not both named. */
function validateClaimNames(
  field: string,
  list: NonNullable<Requirements['claims']>,
  known: ReadonlySet<string>,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [index, claim] of list.entries()) {
    const at = `${field}[${index}]`;
    const { name = '' } = claim;
    const request = 'request' in claim && typeof claim.request === 'string' ? claim.request : '';
    if (name === '') {
      errors.push(required(at));
      continue;
    }
    if (seen.has(name)) errors.push(duplicate(at, name));
    else {
      if (request !== '') addErrors(errors, syntax(`${at}.request`, request, dns1123Label(request)));
      const key = request === '' ? name : `${name}/${request}`;
      if (seen.has(key)) errors.push(duplicate(at, key));
      else if (request === '') {
        for (const other of seen) if (other.startsWith(`${name}/`)) errors.push(duplicate(at, name));
      }
      seen.add(key);
    }
    if (!known.has(name)) {
      const names = known.size === 0 ? ' which is empty' : `: ${[...known].sort().join(', ')}`;
      errors.push(notFoundBecause(at, name, `must be one of the names in pod.spec.resourceClaims${names}`));
    }
  }
  return errors;
}

/** Requests and limits of the pod as a whole (PodLevelResources). */
export function validatePodResources(field: string, spec: PodSpec): FieldError[] {
  const { resources } = spec;
  if (resources === undefined) return [];
  if (spec.os?.name === 'windows') return [forbidden(field, 'may not be set for a windows pod')];
  const errors: FieldError[] = [];
  if (resources.claims !== undefined) {
    errors.push(forbidden(`${field}.claims`, 'claims may not be set for Resources at pod-level'));
  }
  const claims = new Set((spec.resourceClaims ?? []).map(({ name = '' }) => name));
  addErrors(errors, validateRequirements(field, resources, claims, validatePodResourceName));
  return errors.concat(validateConsistency(field, spec));
}

/** The containers together fit into the pod. */
function validateConsistency(field: string, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const requests: Quantities = spec.resources?.requests ?? {};
  const limits: Quantities = spec.resources?.limits ?? {};
  for (const [name, total] of aggregate(spec, 'requests')) {
    const own = getOwn(requests, name);
    if (own === undefined || compareQuantities(total, own) <= 0) continue;
    const why = `must be greater than or equal to aggregate container requests of ${total}`;
    errors.push(invalid(`${field}.requests[${name}]`, own, why));
  }
  for (const [name, total] of aggregate(spec, 'limits')) {
    const own = getOwn(limits, name);
    if (!isHugePages(name) || own === undefined || compareQuantities(total, own) <= 0) continue;
    const why = `must be greater than or equal to aggregate container limits of ${total}`;
    errors.push(invalid(`${field}.limits[${name}]`, own, why));
  }
  for (const [index, container] of (spec.containers ?? []).entries()) {
    for (const [name, limit = '0'] of Object.entries(container.resources?.limits ?? {})) {
      const own = getOwn(limits, name);
      if (own === undefined || compareQuantities(limit, own) <= 0) continue;
      const why = `must be less than or equal to pod limits of ${own}`;
      errors.push(invalid(`${field}.containers[${index}][${name}].limits`, limit, why));
    }
  }
  return errors;
}

/** What the containers need at most at one time: all of them and the sidecars, or one init container. */
function aggregate(spec: PodSpec, list: 'requests' | 'limits'): Map<string, string> {
  const of = (container: Container): [string, bigint][] =>
    Object.entries(container.resources?.[list] ?? {}).map(([name, value]) => [name, parseQuantity(value ?? '0') ?? 0n]);
  const total = new Map<string, bigint>();
  const add = (to: Map<string, bigint>, name: string, value: bigint): void => {
    to.set(name, (to.get(name) ?? 0n) + value);
  };
  for (const container of spec.containers ?? []) for (const [name, value] of of(container)) add(total, name, value);
  const [sidecars, most] = [new Map<string, bigint>(), new Map<string, bigint>()];
  for (const container of spec.initContainers ?? []) {
    const own = new Map(of(container));
    if (container.restartPolicy === 'Always') {
      for (const [name, value] of own) {
        add(total, name, value);
        add(sidecars, name, value);
      }
    }
    const needed = container.restartPolicy === 'Always' ? sidecars : own;
    for (const [name, value] of needed) {
      const before = container.restartPolicy === 'Always' ? 0n : (sidecars.get(name) ?? 0n);
      const sum = value + before;
      if (sum > (most.get(name) ?? 0n)) most.set(name, sum);
    }
  }
  for (const [name, value] of most) if (value > (total.get(name) ?? 0n)) total.set(name, value);
  return new Map(Array.from(total, ([name, value]) => [name, canonicalQuantity(formatNano(value))]));
}

function formatNano(nano: bigint): string {
  return nano % 1_000_000_000n === 0n ? String(nano / 1_000_000_000n) : `${nano}n`;
}

export function validateOverhead(field: string, overhead: Quantities | undefined): FieldError[] {
  return validateContainerResources(field, { limits: { ...overhead } }, new Set());
}

export function validateResourceClaims(field: string, spec: PodSpec, isMirror: boolean): FieldError[] {
  const names = new Set<string>();
  return (spec.resourceClaims ?? []).flatMap((claim, index) => {
    if (isMirror) return [forbidden(WHOLE, 'static pods do not support resource claims')];
    const at = `${field}[${index}]`;
    const { name = '', resourceClaimName: own, resourceClaimTemplateName: template } = claim;
    const errors: FieldError[] = [];
    if (name === '') errors.push(required(`${at}.name`));
    else if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    else addErrors(errors, syntax(`${at}.name`, name, dns1123Label(name)));
    if (name !== '') names.add(name);
    if (own !== undefined && template !== undefined) {
      const why = 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified';
      errors.push(invalid(at, claim, why));
    }
    if (own === undefined && template === undefined) {
      errors.push(invalid(at, claim, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'));
    }
    if (own !== undefined) addErrors(errors, syntax(`${at}.resourceClaimName`, own, dns1123Subdomain(own)));
    if (template !== undefined) {
      addErrors(errors, syntax(`${at}.resourceClaimTemplateName`, template, dns1123Subdomain(template)));
    }
    return errors;
  });
}

const RESIZE_POLICIES = ['NotRequired', 'RestartContainer'];

/** A pod whose containers are never restarted cannot have one restarted for a resize either. */
export function validateResizePolicy(
  field: string,
  policies: NonNullable<Container['resizePolicy']>,
  podPolicy: string | undefined,
): FieldError[] {
  const seen = new Set<string | undefined>();
  return policies.flatMap(({ resourceName, restartPolicy }, index) => {
    const errors = seen.has(resourceName) ? [duplicate(`${field}[${index}]`, resourceName)] : [];
    seen.add(resourceName);
    addErrors(errors, oneOf(field, resourceName, POD_RESOURCES), oneOf(field, restartPolicy, RESIZE_POLICIES));
    if (podPolicy === 'Never' && restartPolicy !== 'NotRequired') {
      errors.push(invalid(field, restartPolicy, "must be 'NotRequired' when `restartPolicy` is 'Never'"));
    }
    return errors;
  });
}
