// Rules for requests, limits and other lists of quantities. Defaults are filled already.

import { getOwn } from '../../../lib/own-property.ts';
import { compareQuantities, parseQuantity } from '../../../lib/quantity.ts';
import { addErrors, forbidden, invalid, notFound, oneOf, required, syntax } from '../field-errors.ts';
import { duplicates } from '../metadata.ts';
import { dns1123Label, qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Container, PodSpec } from '../shapes.ts';

const CONTAINER_RESOURCES = ['cpu', 'memory', 'ephemeral-storage'];
const POD_RESOURCES = ['cpu', 'memory'];

type Quantities = { readonly [name: string]: string | undefined };

export function isHugePages(name: string): boolean {
  return name.startsWith('hugepages-');
}

export function isNative(name: string): boolean {
  return !name.includes('/') || name.split('/')[0] === 'kubernetes.io';
}

/** A resource whose limit may exceed its request; huge pages and devices may not. */
export function isOvercommitAllowed(name: string): boolean {
  return isNative(name) && !isHugePages(name);
}

export function validateContainerResourceName(field: string, name: string): FieldError[] {
  const errors = syntax(field, name, qualifiedName(name));
  if (errors.length > 0 || name.includes('/')) return errors;
  if (CONTAINER_RESOURCES.includes(name) || isHugePages(name)) return [];
  return [invalid(field, name, 'must be a standard resource for containers')];
}

function validateQuantity(field: string, name: string, quantity: string | undefined): FieldError[] {
  const nano = parseQuantity(quantity ?? '0');
  if (nano === undefined) return [invalid(field, quantity, 'must be a resource quantity')];
  const errors: FieldError[] = [];
  if (nano < 0n) errors.push(invalid(field, quantity, 'must be greater than or equal to 0'));
  if (!isNative(name) && nano % 1_000_000_000n !== 0n) errors.push(invalid(field, quantity, 'must be an integer'));
  return errors;
}

export function validateResourceRequirements(
  field: string,
  resources: NonNullable<Container['resources']>,
  claims: ReadonlySet<string>,
): FieldError[] {
  const errors: FieldError[] = [];
  const limits: Quantities = resources.limits ?? {};
  const requests: Quantities = resources.requests ?? {};
  for (const [list, values] of [['limits', limits] as const, ['requests', requests] as const]) {
    for (const [name, quantity] of Object.entries(values)) {
      const at = `${field}.${list}[${name}]`;
      const named = `${field}.${list}`;
      addErrors(errors, validateContainerResourceName(list === 'limits' ? at : named, name));
      addErrors(errors, validateQuantity(at, name, quantity));
    }
  }
  for (const [name, request] of Object.entries(requests)) {
    const limit = getOwn(limits, name);
    const overcommit = isOvercommitAllowed(name);
    const at = `${field}.requests`;
    if (limit === undefined) {
      if (!overcommit) errors.push(required(`${field}.limits`, 'Limit must be set for non overcommitable resources'));
      continue;
    }
    if (parseQuantity(request ?? '0') === undefined || parseQuantity(limit) === undefined) continue;
    const order = compareQuantities(request ?? '0', limit);
    if (!overcommit && order !== 0) {
      errors.push(invalid(at, request, `must be equal to ${name} limit of ${limit}`));
    } else if (order > 0) {
      errors.push(invalid(at, request, `must be less than or equal to ${name} limit of ${limit}`));
    }
  }
  addErrors(errors, validateHugePages(field, limits, requests));
  for (const [index, claim] of (resources.claims ?? []).entries()) {
    const name = claim.name ?? '';
    if (name === '') errors.push(required(`${field}.claims[${index}]`));
    else if (!claims.has(name)) errors.push(notFound(`${field}.claims[${index}]`, name));
  }
  addErrors(
    errors,
    duplicates(
      resources.claims ?? [],
      (index) => `${field}.claims[${index}]`,
      (claim) => claim.name,
    ),
  );
  return errors;
}

function validateHugePages(field: string, limits: Quantities, requests: Quantities): FieldError[] {
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (!names.some(isHugePages)) return [];
  if (names.some((name) => name === 'cpu' || name === 'memory')) return [];
  return [forbidden(field, 'HugePages require cpu or memory')];
}

/** Requests and limits of the pod as a whole (PodLevelResources). */
export function validatePodResources(field: string, spec: PodSpec): FieldError[] {
  const resources = spec.resources;
  if (resources === undefined) return [];
  const errors: FieldError[] = [];
  if ((resources.claims ?? []).length > 0)
    errors.push(forbidden(`${field}.claims`, 'claims cannot be set for Resources at pod-level'));
  for (const list of ['limits', 'requests'] as const) {
    for (const name of Object.keys(resources[list] ?? {})) {
      if (!POD_RESOURCES.includes(name) && !isHugePages(name)) {
        errors.push(invalid(`${field}.${list}[${name}]`, name, 'must be a standard resource for pods'));
      }
    }
  }
  return errors.concat(validateResourceRequirements(field, { ...resources, claims: [] }, new Set()));
}

export function validateOverhead(field: string, overhead: Quantities | undefined): FieldError[] {
  return Object.entries(overhead ?? {}).flatMap(([name, quantity]) => [
    ...syntax(`${field}[${name}]`, name, qualifiedName(name)),
    ...validateQuantity(`${field}[${name}]`, name, quantity),
  ]);
}

export function validateResourceClaims(field: string, spec: PodSpec): FieldError[] {
  const claims = spec.resourceClaims ?? [];
  return [
    ...claims.flatMap((claim, index) =>
      (claim.name ?? '') === ''
        ? [required(`${field}[${index}].name`)]
        : syntax(`${field}[${index}].name`, claim.name, dns1123Label(claim.name ?? '')),
    ),
    ...duplicates(
      claims,
      (index) => `${field}[${index}].name`,
      (claim) => claim.name,
    ),
  ];
}

const RESIZE_POLICIES = ['NotRequired', 'RestartContainer'];

/** `podPolicy`: a container that is never restarted cannot be restarted for a resize either. */
export function validateResizePolicy(field: string, container: Container, podPolicy?: string): FieldError[] {
  const policies = container.resizePolicy ?? [];
  return policies.flatMap((policy, index) => {
    const at = `${field}[${index}]`;
    const errors: FieldError[] = [];
    if (policies.findIndex(({ resourceName }) => resourceName === policy.resourceName) < index) {
      errors.push({
        type: 'FieldValueDuplicate',
        field,
        detail: `Duplicate value: ${JSON.stringify(policy.resourceName)}`,
      });
    }
    if (podPolicy === 'Never' && container.restartPolicy === undefined && policy.restartPolicy === 'RestartContainer') {
      errors.push(
        invalid(`${at}.restartPolicy`, policy.restartPolicy, "must be 'NotRequired' when `restartPolicy` is 'Never'"),
      );
    }
    addErrors(errors, oneOf(`${at}.resourceName`, policy.resourceName, POD_RESOURCES));
    addErrors(errors, oneOf(`${at}.restartPolicy`, policy.restartPolicy, RESIZE_POLICIES));
    return errors;
  });
}
