// What LimitRange and ResourceQuota have in common: names of resources, as the API groups them, and reading quantities.

import { parseQuantity } from '../../../lib/quantity.ts';
import { isHugePages, isNative } from '../../../lib/resource-names.ts';
import { invalid, syntax } from '../field-errors.ts';
import { qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';

export type Quantities = Readonly<Record<string, string | undefined>>;

/** Compute resources that a quota may name. */
export const COMPUTE_QUOTA = ['cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory'];
const COUNTED = [
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
];
const STANDARD_QUOTA = new Set([
  ...COMPUTE_QUOTA,
  ...COUNTED,
  'ephemeral-storage',
  'requests.storage',
  'requests.ephemeral-storage',
  'limits.ephemeral-storage',
]);
const STANDARD = new Set([...STANDARD_QUOTA, 'storage']);

export function isStandardQuotaResource(name: string): boolean {
  return STANDARD_QUOTA.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-');
}

/** nvidia.com/gpu: what is neither Kubernetes' own nor a quota's name for requests. */
export function isExtendedResource(name: string): boolean {
  return !isNative(name) && !name.startsWith('requests.') && qualifiedName(`requests.${name}`).length === 0;
}

/** Resources that exist in whole numbers. */
export function isIntegerResource(name: string): boolean {
  return COUNTED.includes(name) || isExtendedResource(name);
}

/** A qualified name; without a prefix one that the API knows. */
export function validateResourceName(field: string, name: string): FieldError[] {
  const errors = syntax(field, name, qualifiedName(name));
  if (errors.length > 0 || name.includes('/') || STANDARD.has(name) || isStandardQuotaResource(name)) return errors;
  return [invalid(field, name, 'must be a standard resource type or fully qualified')];
}

export const nano = (quantity: string | undefined): bigint => parseQuantity(quantity ?? '0') ?? 0n;
