// Warnings about a policy's expressions beside those of kube-apiserver 1.34.2's own type checker (type-checking.json), and the status
// of policies in a server.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { kindsToCheck, typeWarnings } from '../../../../apiserver/admission/policies/type-checking.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import { isOutdated, kindSource } from '../../../../apiserver/policy-status.ts';
import { at, TestApiServer } from '../../../support/api-server.ts';

type Spec = Parameters<typeof typeWarnings>[0];
type Case = readonly [spec: Spec, warnings: readonly (readonly [field: string, warning: string])[]];
const cases: readonly Case[] = JSON.parse(readFileSync(new URL('./type-checking.json', import.meta.url), 'utf8'));
const source = kindSource(() => RESOURCE_KINDS);

function warningsOf(spec: Spec): [string, string][] {
  const steps = typeWarnings(spec, source);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  // Upstream's names of types have a number, too.
  return step.value.map(({ fieldRef, warning }) => [fieldRef, warning.replaceAll(/\b([A-Z][A-Za-z]+)\d\b/g, '$1N')]);
}

describe('the type checker', () => {
  it.each(cases.map(([spec, warnings]) => [spec.validations?.map(({ expression }) => expression), spec, warnings]))(
    '%j',
    (_expressions, spec, warnings) => {
      expect(warningsOf(spec)).toEqual(warnings);
    },
  );

  it('looks at ten kinds, and at none of rules with wildcards', () => {
    const plurals = RESOURCE_KINDS.filter(({ group, version }) => group === '' && version === 'v1').map(
      ({ plural }) => plural,
    );
    const kinds = (apiGroups: string[], resources: string[]): number => {
      const rule = { apiGroups, apiVersions: ['v1'], resources };
      return kindsToCheck({ matchConstraints: { resourceRules: [rule] } }, source).length;
    };
    expect([kinds([''], plurals), kinds(['*'], plurals), kinds([''], ['*', 'pods/status', 'nodes'])]).toEqual([
      10, 0, 1,
    ]);
  });
});

it.each([
  [1, undefined, true],
  [1, 0, true],
  [1, 1, false],
  [2, 1, true],
  [1, 2, false],
])('a policy of generation %s with observed generation %s: %s', (generation, observedGeneration, expected) => {
  const policy = { apiVersion: 'v1', kind: 'ValidatingAdmissionPolicy', metadata: { generation } };
  expect(isOutdated({ ...policy, status: { observedGeneration } })).toBe(expected);
});

describe('the status of a policy', () => {
  let stand: TestApiServer;
  beforeAll(async () => {
    stand = await TestApiServer.start();
  });
  afterAll(() => stand.stop());
  const PATH = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
  const policy = (name: string, resource: Record<string, string[]>, expression: string): object => ({
    metadata: { name },
    spec: {
      matchConstraints: { resourceRules: [{ operations: ['*'], apiVersions: ['v1'], ...resource }] },
      validations: [{ expression }],
    },
  });
  const status = (name: string, generation: number): Promise<unknown> =>
    vi.waitFor(async () => {
      const found = at(await stand.admit('GET', `${PATH}/${name}`), 'status');
      expect(at(found, 'observedGeneration')).toBe(generation);
      return found;
    });
  const PODS = { apiGroups: [''], resources: ['pods'] };

  it('has warnings for its generation, and none once it is right', async () => {
    await stand.admit('POST', PATH, policy('p', PODS, 'object.spec.replicas > 1'));
    expect(await status('p', 1)).toEqual({
      observedGeneration: 1,
      typeChecking: {
        expressionWarnings: [
          {
            fieldRef: 'spec.validations[0].expression',
            warning:
              "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'\n | object.spec.replicas > 1\n | ...........^\n",
          },
        ],
      },
    });
    await stand.admit('PUT', `${PATH}/p`, policy('p', PODS, 'object.spec.hostNetwork == true'));
    // Apply removes an object with the last field in it.
    expect(await status('p', 2)).toEqual({ observedGeneration: 2 });
    const managers = at(await stand.admit('GET', `${PATH}/p`), 'metadata', 'managedFields');
    expect(managers).toContainEqual(
      expect.objectContaining({
        manager: 'validatingadmissionpolicy-status',
        operation: 'Apply',
        subresource: 'status',
      }),
    );
  });

  it('has an empty list of warnings from the start where nothing is wrong', async () => {
    await stand.admit('POST', PATH, policy('right', PODS, 'object.spec.hostNetwork == true'));
    expect(await status('right', 1)).toEqual({ observedGeneration: 1, typeChecking: {} });
  });

  it('knows custom resources by their schemas', async () => {
    const crd = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const openAPIV3Schema = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { size: { type: 'string' } } } },
    };
    await stand.admit('POST', crd, {
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
      },
    });
    await vi.waitFor(async () => {
      expect((await stand.call({ path: '/apis/example.com/v1/widgets', as: stand.admin })).code).toBe(200);
    });
    const widgets = { apiGroups: ['example.com'], resources: ['widgets'] };
    const wrong = "object.spec.size == 1 || object.metadata.labels['a'] == 'x'";
    await stand.admit('POST', PATH, policy('w', widgets, wrong));
    const warning = at(await status('w', 1), 'typeChecking', 'expressionWarnings', 0, 'warning');
    expect(String(warning).split('\n')[0]).toBe(
      "example.com/v1, Kind=Widget: ERROR: <input>:1:18: found no matching overload for '_==_' applied to '(string, int)'",
    );
  });
});
