// Rules beside what kube-apiserver 1.34.2's own code says to the same schema and object (expressions.json): why an expression is refused,
// or what it may cost and what is wrong with the object.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkRules, compileRules } from '../../../../apiserver/crd/rules.ts';
import { RULE_OBJECT, RULE_SCHEMA } from './rule-schema.ts';

type Case = readonly [rule: string, error: string] | readonly [rule: string, cost: number, errors: string];
const cases: readonly Case[] = JSON.parse(readFileSync(new URL('../cel/expressions.json', import.meta.url), 'utf8'));

function outcome(rule: string): unknown[] {
  const spec = { ...RULE_SCHEMA, 'x-kubernetes-validations': [{ rule }] };
  const compiled = compileRules({ type: 'object', properties: { spec } });
  if (compiled.errors.length > 0 || compiled.root === undefined) {
    return [rule, compiled.errors.map(({ detail }) => detail.replace(/^compilation failed: /, '')).join('; ')];
  }
  const errors = checkRules(compiled.root, { spec: RULE_OBJECT }, undefined);
  return [
    rule,
    compiled.costs[0]?.own,
    errors.map(({ detail }) => detail.replace(/^[^:]*: "object": /, '')).join('; '),
  ];
}

describe('as kube-apiserver', () => {
  it.each(cases)('%s', (rule, ...expected) => {
    expect(outcome(rule)).toEqual([rule, ...expected]);
  });
});
