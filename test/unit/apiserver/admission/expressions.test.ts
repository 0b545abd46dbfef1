// Expressions of policies and match conditions of webhooks when they are written, beside what kube-apiserver 1.34.2 answered to the same
// objects (expressions.json): the fields and messages of what it refuses.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { validatingadmissionpolicies } from '../../../../apiserver/kinds/admission-policies.ts';
import type { FieldError, KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { validatingwebhookconfigurations } from '../../../../apiserver/kinds/webhooks.ts';

type Case = readonly [expression: string, policy: readonly string[], webhook: readonly string[]];
const cases: readonly Case[] = JSON.parse(readFileSync(new URL('./expressions.json', import.meta.url), 'utf8'));

const RULE = {
  apiGroups: ['apps'],
  apiVersions: ['v1'],
  operations: ['CREATE'],
  resources: ['deployments'],
  scope: '*',
};
const VARIABLES = [
  { name: 'a', expression: 'object.x' },
  { name: 'n', expression: '1' },
  { name: 'ns', expression: 'namespaceObject' },
  { name: 'm', expression: 'request.operation' },
];

function object(kind: string, fields: object): KubeObject {
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata: { name: 'p' }, ...fields };
}

const printed = (errors: readonly FieldError[] = []): string[] =>
  errors.map(({ field, detail }) => `${field}: ${detail}`);

function policyErrors(spec: object): string[] {
  const matchConstraints = { matchPolicy: 'Equivalent', resourceRules: [RULE] };
  const policy = object('ValidatingAdmissionPolicy', { spec: { matchConstraints, failurePolicy: 'Fail', ...spec } });
  return printed(validatingadmissionpolicies.strategy.validateCreate?.(policy));
}

describe.each(cases)('%s', (expression, policy, webhook) => {
  it('of a policy', () =>
    expect(policyErrors({ variables: VARIABLES, validations: [{ expression }] })).toEqual(policy));

  it('of a webhook', () => {
    const condition = { name: 'a', expression };
    const one = {
      ...{ name: 'a.b.c', admissionReviewVersions: ['v1'], sideEffects: 'None', clientConfig: { url: 'https://a/b' } },
      ...{ failurePolicy: 'Fail', matchPolicy: 'Equivalent', timeoutSeconds: 10, matchConditions: [condition] },
    };
    const configuration = object('ValidatingWebhookConfiguration', { webhooks: [one] });
    expect(printed(validatingwebhookconfigurations.strategy.validateCreate?.(configuration))).toEqual(webhook);
  });
});

describe('the variables of a policy', () => {
  const at = (field: string, expression: string, issue: string): string =>
    `${field}: Invalid value: ${JSON.stringify(expression)}: ${issue}`;
  const undefinedField = (expression: string, field: string, column: number): string =>
    `compilation failed: ERROR: <input>:1:${column}: undefined field '${field}'\n | ${expression}\n | ${'.'.repeat(column - 1)}^`;
  const valid = [{ expression: 'true' }];

  it('know those before them alone', () => {
    const variables = [
      { name: 'a', expression: 'variables.b' },
      { name: 'b', expression: '1' },
    ];
    expect(policyErrors({ variables, validations: [{ expression: 'variables.a && variables.b == 1' }] })).toEqual([
      at('spec.variables[0].expression', 'variables.b', undefinedField('variables.b', 'b', 10)),
    ]);
  });

  it('have the types of their expressions', () => {
    const variables = [{ name: 'a', expression: '1' }];
    const validations = [{ expression: 'true', messageExpression: 'variables.a' }];
    const auditAnnotations = [{ key: 'k', valueExpression: 'variables.a' }];
    expect(policyErrors({ variables, validations, auditAnnotations })).toEqual([
      at('spec.validations[0].messageExpression', 'variables.a', 'must evaluate to string but got int'),
      at(
        'spec.auditAnnotations[0].valueExpression',
        'variables.a',
        'must evaluate to one of [string null_type] but got int',
      ),
    ]);
  });

  it('are not known to conditions', () => {
    const variables = [{ name: 'a', expression: '1' }];
    const matchConditions = [{ name: 'c', expression: 'variables.a == 1' }];
    const issue =
      "compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')\n | variables.a == 1\n | ^";
    expect(policyErrors({ variables, matchConditions, validations: valid })).toEqual([
      at('spec.matchConditions[0].expression', 'variables.a == 1', issue),
    ]);
  });

  it('are of any type where there are more than 32', () => {
    const many = Array.from({ length: 33 }, (_, index) => ({ name: `v${index}`, expression: '1' }));
    const validations = [{ expression: 'variables.none == 1' }];
    expect(policyErrors({ variables: many, validations })).toEqual([]);
    expect(policyErrors({ variables: many.slice(1), validations })).toHaveLength(1);
  });
});
