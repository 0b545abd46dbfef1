// ValidatingAdmissionPolicies against a server: what they see, what they refuse and how, parameters, and their validation.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, at, TestApiServer } from '../../../support/api-server.ts';

let stand: TestApiServer;
beforeAll(async () => {
  stand = await TestApiServer.start();
});
afterAll(() => stand.stop());

const GROUP = '/apis/admissionregistration.k8s.io/v1';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
afterEach(async () => {
  for (const plural of ['validatingadmissionpolicybindings', 'validatingadmissionpolicies']) {
    await stand.admit('DELETE', `${GROUP}/${plural}`);
  }
});

const RULES = [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }];

const post = (path: string, body: object): Promise<Answer> =>
  stand.call({ method: 'POST', path, body, as: stand.admin });
const policy = (spec: object, name = 'p'): Promise<Answer> =>
  post(`${GROUP}/validatingadmissionpolicies`, {
    kind: 'ValidatingAdmissionPolicy',
    apiVersion: 'admissionregistration.k8s.io/v1',
    metadata: { name },
    spec: { matchConstraints: { resourceRules: RULES }, ...spec },
  });
const bind = (spec: object = {}, policyName = 'p'): Promise<Answer> =>
  post(`${GROUP}/validatingadmissionpolicybindings`, {
    kind: 'ValidatingAdmissionPolicyBinding',
    apiVersion: 'admissionregistration.k8s.io/v1',
    metadata: { name: 'b' },
    spec: { policyName, validationActions: ['Deny'], ...spec },
  });
const must = async (answer: Promise<Answer>): Promise<void> => {
  const { code, text } = await answer;
  if (code !== 201) throw new Error(text);
};
const message = ({ json }: Answer): unknown => at(json, 'message');

let count = 0;
const create = (more: object = {}): Promise<Answer> =>
  post(CONFIG_MAPS, { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: `map-${count++}` }, ...more });
const outcome = async (more: object = {}): Promise<unknown> => {
  const answer = await create(more);
  return answer.code === 201
    ? 'created'
    : `${answer.code} ${String(at(answer.json, 'reason'))} ${String(message(answer))}`;
};

describe('a policy', () => {
  it('refuses in the words of kube-apiserver once it is bound', async () => {
    await must(policy({ validations: [{ expression: "has(object.data) && 'a' in object.data" }] }));
    expect(await outcome()).toBe('created');
    await must(bind());
    expect(await outcome({ data: { a: '1' } })).toBe('created');
    const refused = await create();
    const why =
      "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: has(object.data) && 'a' in object.data";
    const name = `map-${count - 1}`;
    expect(refused.json).toMatchObject({
      code: 422,
      reason: 'Invalid',
      message: `configmaps "${name}" is forbidden: ${why}`,
      details: { name, kind: 'configmaps', causes: [{ message: why }] },
    });
  });

  it.each<[object, string]>([
    [{ message: 'no maps' }, '422 Invalid'],
    [{ message: 'no maps', reason: 'Forbidden' }, '403 Forbidden'],
    [{ messageExpression: "'no ' + 'maps'", reason: 'Unauthorized' }, '401 Unauthorized'],
    [{ message: 'no maps', messageExpression: 'string(object.data.none)' }, '422 Invalid'],
  ])('with %j', async (more, expected) => {
    await must(policy({ validations: [{ expression: 'false', ...more }] }));
    await must(bind());
    const refused = String(await outcome());
    expect(refused).toContain(expected);
    expect(refused).toMatch(/denied request: no maps$/);
  });

  it('sees the old object, the request and the namespace', async () => {
    const expressions = [
      "request.operation != 'UPDATE' || oldObject.data.a == object.data.a",
      "request.userInfo.username == 'kubernetes-admin'",
      "namespaceObject.metadata.name == 'default'",
      "request.operation == 'UPDATE' || oldObject == null",
    ];
    await must(policy({ validations: expressions.map((expression) => ({ expression })) }));
    await must(bind());
    const made = await create({ data: { a: '1' } });
    expect(made.code).toBe(201);
    const path = `${CONFIG_MAPS}/${String(at(made.json, 'metadata', 'name'))}`;
    const headers = { 'content-type': 'application/merge-patch+json' };
    const change = (data: object): Promise<Answer> =>
      stand.call({ method: 'PATCH', path, body: { data }, as: stand.admin, headers });
    expect((await change({ b: '1' })).code).toBe(200);
    expect(message(await change({ a: '2' }))).toContain(`failed expression: ${expressions[0]}`);
  });

  it('asks what the caller may do beside', async () => {
    const expressions = [
      "authorizer.group('').resource('secrets').namespace('default').name('a').check('get').allowed()",
      "authorizer.requestResource.check('delete').allowed()",
      "authorizer.path('/metrics').check('get').allowed()",
      "!authorizer.serviceAccount('default', 'nowhere').group('').resource('secrets').check('list').allowed()",
    ];
    await must(policy({ validations: expressions.map((expression) => ({ expression })) }));
    await must(bind());
    expect(await outcome()).toBe('created');
    const message = { expression: 'true', messageExpression: "authorizer.path('/a').check('get').reason()" };
    expect(at((await policy({ validations: [message] }, 'q')).json, 'message')).toContain(
      "undeclared reference to 'authorizer'",
    );
  });

  it('has variables, which are evaluated when they are read', async () => {
    const variables = [
      { name: 'broken', expression: 'object.data.none' },
      { name: 'size', expression: 'has(object.data) ? object.data.size() : 0' },
      { name: 'isLarge', expression: 'variables.size > 1' },
    ];
    await must(policy({ variables, validations: [{ expression: '!variables.isLarge' }] }));
    await must(bind());
    expect(await outcome({ data: { a: '1' } })).toBe('created');
    expect(await outcome({ data: { a: '1', b: '2' } })).toContain('failed expression: !variables.isLarge');
  });

  it('that cannot be evaluated fails the request, or not, as its policy says', async () => {
    const validations = [{ expression: "object.data.none == 'x'" }];
    await must(policy({ validations }));
    await must(bind());
    expect(await outcome()).toContain(
      "denied request: expression 'object.data.none == 'x'' resulted in error: no such key: ",
    );
    await stand.admit('DELETE', `${GROUP}/validatingadmissionpolicies/p`);
    await must(policy({ validations, failurePolicy: 'Ignore' }));
    expect(await outcome()).toBe('created');
  });

  it('warns where its binding says so', async () => {
    await must(policy({ validations: [{ expression: 'false', message: 'careful' }] }));
    await must(bind({ validationActions: ['Warn', 'Audit'] }));
    const made = await create();
    expect([made.code, made.warnings]).toEqual([
      201,
      ["299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': careful\""],
    ]);
  });

  it('concerns what its match, its conditions and its binding select', async () => {
    const exclude = { excludeResourceRules: [{ ...RULES[0], resourceNames: ['spared'] }] };
    await must(
      policy({
        matchConstraints: { resourceRules: RULES, ...exclude },
        matchConditions: [{ name: 'not-tests', expression: "!has(object.data) || object.data.kind != 'test'" }],
        validations: [{ expression: 'false' }],
      }),
    );
    await must(bind({ matchResources: { objectSelector: { matchLabels: { app: 'web' } } } }));
    const labels = { app: 'web' };
    expect(await outcome()).toBe('created');
    expect(await outcome({ metadata: { name: 'spared', labels } })).toBe('created');
    expect(await outcome({ metadata: { name: 'tested', labels }, data: { kind: 'test' } })).toBe('created');
    expect(await outcome({ metadata: { name: 'caught', labels } })).toContain('422 Invalid');
  });

  it('takes parameters from objects that its binding names or selects', async () => {
    await must(create({ metadata: { name: 'limits', labels: { limits: 'yes' } }, data: { most: '1' } }));
    const paramKind = { apiVersion: 'v1', kind: 'ConfigMap' };
    const validations = [{ expression: '!has(object.data) || object.data.size() <= int(params.data.most)' }];
    await must(policy({ paramKind, validations }));
    await must(bind({ paramRef: { selector: { matchLabels: { limits: 'yes' } }, parameterNotFoundAction: 'Deny' } }));
    expect(await outcome({ data: { a: '1' } })).toBe('created');
    expect(await outcome({ data: { a: '1', b: '2' } })).toContain('422 Invalid');
    await stand.admit('DELETE', `${GROUP}/validatingadmissionpolicybindings`);
    await must(bind({ paramRef: { name: 'gone', namespace: 'default', parameterNotFoundAction: 'Deny' } }));
    expect(await outcome()).toContain(
      'denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction',
    );
    await stand.admit('DELETE', `${GROUP}/validatingadmissionpolicybindings`);
    await must(bind({ paramRef: { name: 'gone', parameterNotFoundAction: 'Allow' } }));
    expect(await outcome()).toBe('created');
  });

  it.each<[object, string]>([
    [{}, 'spec.validations: Required value: validations or auditAnnotations must contain at least one item'],
    [
      { validations: [{ expression: '1' }] },
      'spec.validations[0].expression: Invalid value: "1": must evaluate to bool but got int',
    ],
    [
      { validations: [{ expression: 'params.x == 1' }] },
      "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')",
    ],
    [
      { validations: [{ expression: 'true', message: 'a\nb' }] },
      'spec.validations[0].message: Invalid value: "a\\nb": message must not contain line breaks',
    ],
    [
      { validations: [{ expression: 'true', reason: 'Whim' }] },
      'spec.validations[0].reason: Unsupported value: "Whim"',
    ],
    [
      { matchConstraints: { resourceRules: [] }, validations: [{ expression: 'true' }] },
      'spec.matchConstraints.resourceRules: Required value',
    ],
    [
      { variables: [{ name: '1a', expression: 'true' }], validations: [{ expression: 'true' }] },
      'spec.variables[0].name: Invalid value: "1a": name is not a valid CEL identifier',
    ],
  ])('with %j is refused', async (spec, why) => {
    const refused = await policy(spec);
    expect(refused.code).toBe(422);
    expect(message(refused)).toContain(why);
  });
});

describe('a binding', () => {
  it.each<[object, string]>([
    [{ validationActions: [] }, 'spec.validationActions: Required value: at least one validation action is required'],
    [{ validationActions: ['Deny', 'Warn'] }, 'must not contain both Deny and Warn'],
    [{ policyName: '' }, 'spec.policyName: Required value'],
    [
      { paramRef: { parameterNotFoundAction: 'Deny' } },
      'spec.paramRef: Required value: one of name or selector must be specified',
    ],
    [{ paramRef: { name: 'a' } }, 'spec.paramRef.parameterNotFoundAction: Required value'],
  ])('with %j is refused', async (spec, why) => {
    const refused = await bind(spec);
    expect(refused.code).toBe(422);
    expect(message(refused)).toContain(why);
  });
});
