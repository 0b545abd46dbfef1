// Which rules of a definition are refused because of what they may cost at most: upstream's limits and messages. Pure.

import { forbidden } from '../kinds/field-errors.ts';
import type { FieldError } from '../kinds/resource.ts';
import type { RuleCost } from './rules.ts';

const MAX_EXPRESSION = 10_000_000;
const MAX_SCHEMA = 100_000_000;
/** The most expensive ones are named, where they are at least a hundredth of the limit. */
const NAMED = 4;
const NAMED_FROM = MAX_SCHEMA / 100;

function beyond(what: string, cost: number, limit: number): string {
  const times = cost / limit;
  const factor = times > 100 ? 'more than 100x' : `${times.toFixed(times < 1.5 ? 6 : 1)}x`;
  return `${what} exceeds budget by factor of ${factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)`;
}

/** Single expressions; `field` is the schema's. */
export function expensiveRules(costs: readonly RuleCost[], field: string): FieldError[] {
  return costs
    .filter(({ total }) => total > MAX_EXPRESSION)
    .map((cost) =>
      forbidden(`${field}${cost.field}`, beyond(`estimated ${cost.kind} cost`, cost.total, MAX_EXPRESSION)),
    );
}

/** All of them together. */
export function expensiveSchema(costs: readonly RuleCost[], field: string): FieldError[] {
  const sum = costs.reduce((total, cost) => total + cost.total, 0);
  if (sum <= MAX_SCHEMA) return [];
  const named = costs
    .filter(({ total }) => total >= NAMED_FROM)
    .toSorted((a, b) => b.total - a.total)
    .slice(0, NAMED);
  const why = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
  const all = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
  return [
    ...named.map((cost) => forbidden(`${field}${cost.field}`, why)),
    forbidden(field, beyond(all, sum, MAX_SCHEMA)),
  ];
}
