import { describe, expect, it } from 'vitest';
import { PolicyError, readPolicy } from '../../../../apiserver/audit/load.ts';
import { type AuditedRequest, evaluate } from '../../../../apiserver/audit/policy.ts';

const HEAD = 'apiVersion: audit.k8s.io/v1\nkind: Policy\n';

const POD = { group: '', resource: 'pods', subresource: '', namespace: 'ns', name: 'a' };
const GET: AuditedRequest = {
  user: { name: 'alice', groups: ['devs', 'system:authenticated'] },
  verb: 'get',
  path: '/api/v1/namespaces/ns/pods/a',
  resource: POD,
};
const LOGS: AuditedRequest = { ...GET, resource: { ...POD, subresource: 'log' } };
const SCALE: AuditedRequest = {
  ...GET,
  verb: 'patch',
  resource: { group: 'apps', resource: 'deployments', subresource: 'scale', namespace: 'ns', name: 'd' },
};
const NODES: AuditedRequest = {
  ...GET,
  verb: 'list',
  resource: { group: '', resource: 'nodes', subresource: '', namespace: '', name: '' },
};
const HEALTH: AuditedRequest = { user: undefined, verb: 'get', path: '/healthz/etcd', resource: undefined };

/** What the rule is, a request, and whether it applies. */
const CASES: readonly [string, AuditedRequest, boolean][] = [
  ['{}', GET, true],
  ['{}', HEALTH, true],
  ['users: [alice]', GET, true],
  ['users: [bob]', GET, false],
  ['users: [alice]', HEALTH, false],
  ['userGroups: [ops, devs]', GET, true],
  ['userGroups: [ops]', GET, false],
  ['userGroups: [system:unauthenticated]', HEALTH, false],
  ['verbs: [get, list]', GET, true],
  ['verbs: [watch]', GET, false],
  ['namespaces: [ns]', GET, true],
  ['namespaces: [other]', GET, false],
  ['namespaces: [""]', NODES, true],
  ['namespaces: [""]', GET, false],
  ['namespaces: [ns]', HEALTH, false],
  ['resources: [{group: ""}]', GET, true],
  ['resources: [{group: ""}]', LOGS, true],
  ['resources: [{group: apps}]', GET, false],
  ['resources: [{group: "", resources: [pods]}]', GET, true],
  ['resources: [{group: "", resources: [pods]}]', LOGS, false],
  ['resources: [{group: "", resources: [pods/log]}]', LOGS, true],
  ['resources: [{group: "", resources: [pods/*]}]', LOGS, true],
  ['resources: [{group: "", resources: [pods/*]}]', GET, true],
  ['resources: [{group: "", resources: ["*"]}]', LOGS, true],
  ['resources: [{group: apps, resources: ["*/scale"]}]', SCALE, true],
  ['resources: [{group: "", resources: ["*/log"]}]', GET, false],
  ['resources: [{group: "", resources: [pods], resourceNames: [a]}]', GET, true],
  ['resources: [{group: "", resources: [pods], resourceNames: [b]}]', GET, false],
  ['resources: [{group: "", resources: [pods]}]', HEALTH, false],
  ['nonResourceURLs: ["*"]', HEALTH, true],
  ['nonResourceURLs: ["*"]', GET, false],
  ['nonResourceURLs: [/healthz*]', HEALTH, true],
  ['nonResourceURLs: [/healthz/etcd]', HEALTH, true],
  ['nonResourceURLs: [/healthz]', HEALTH, false],
  ['verbs: [get], users: [alice], namespaces: [ns], resources: [{group: "", resources: [pods]}]', GET, true],
  ['verbs: [get], users: [bob], namespaces: [ns], resources: [{group: "", resources: [pods]}]', GET, false],
];

describe('whether a rule applies', () => {
  it.each(CASES)('%s', (rule, request, applies) => {
    const fields = rule === '{}' ? '' : `, ${rule}`;
    const policy = readPolicy(`${HEAD}rules: [{level: Request${fields}}]`);
    expect(evaluate(policy, request).level).toBe(applies ? 'Request' : 'None');
  });
});

it('the first rule that applies decides; what is omitted adds up, and managed fields go by the rule', () => {
  const policy = readPolicy(`${HEAD}omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: [bob]
- level: RequestResponse
  omitManagedFields: false
  omitStages: [ResponseStarted]
  verbs: [get]
- level: Metadata
`);
  const got = evaluate(policy, GET);
  expect(got).toEqual({
    level: 'RequestResponse',
    omitStages: ['RequestReceived', 'ResponseStarted'],
    omitManagedFields: false,
  });
  expect(evaluate(policy, NODES)).toEqual({
    level: 'Metadata',
    omitStages: ['RequestReceived'],
    omitManagedFields: true,
  });
  expect(evaluate(policy, { ...GET, user: { name: 'bob', groups: [] } }).level).toBe('None');
});

describe('a policy that is refused', () => {
  const WRONG: readonly [string, string][] = [
    [`${HEAD}rules: []`, 'loaded illegal policy with 0 rules'],
    [`${HEAD}rules: [{}]`, 'rules[0].level: Required value'],
    [
      `${HEAD}rules: [{level: All}]`,
      'rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse"',
    ],
    [
      `${HEAD}rules: [{level: None, nonResourceURLs: [logs, "/a*b"]}]`,
      `[rules[0].nonResourceURLs[0]: Invalid value: "logs": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: "/a*b": non-resource URL wildcards '*' must be the final character of the rule]`,
    ],
    [
      `${HEAD}rules: [{level: None, nonResourceURLs: [/logs], namespaces: [a]}]`,
      'rules[0].nonResourceURLs: Invalid value: ["/logs"]: rules cannot apply to both regular resources and non-resource URLs',
    ],
    [
      `${HEAD}rules: [{level: None, resources: [{resourceNames: [a]}]}]`,
      'rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least one resource',
    ],
    [
      `${HEAD}rules: [{level: None, omitStages: [Begin]}]`,
      'rules[0].omitStages[0]: Invalid value: "Begin": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic',
    ],
    [
      `${HEAD}rules: [{level: None, user: [a]}]`,
      'failed decoding: strict decoding error: unknown field "rules[0].user"',
    ],
    [`${HEAD}rules: {}`, 'failed decoding: rules: expected a list'],
    [
      'apiVersion: audit.k8s.io/v2\nkind: Policy\nrules: [{level: None}]',
      'failed decoding: no kind "Policy" is registered for version "audit.k8s.io/v2": expected Policy of audit.k8s.io/v1',
    ],
  ];
  it.each(WRONG)('%s', (text, message) => {
    expect(() => readPolicy(text)).toThrow(new PolicyError(message));
  });
  it('a group that is a group and version', () => {
    const text = `${HEAD}rules: [{level: None, resources: [{group: rbac.authorization.k8s.io/v1}]}]`;
    expect(() => readPolicy(text)).toThrow(
      /^rules\[0\]\.resources\.group: Invalid value: "rbac\.authorization.*RFC 1123/,
    );
  });
});
