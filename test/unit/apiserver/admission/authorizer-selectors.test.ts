// Field and label selectors of `authorizer` in expressions, as the Node authorizer reads them.

import { expect, it } from 'vitest';
import { authorizerOf } from '../../../../apiserver/admission/policies/authorizer.ts';
import { conditionProgram } from '../../../../apiserver/admission/webhooks/condition-programs.ts';
import { ChainAuthorizer } from '../../../../apiserver/auth/authorize.ts';
import { RbacPolicy } from '../../../../apiserver/auth/rbac/policy.ts';
import { CelBudget, evaluate } from '../../../../apiserver/cel/cel.ts';
import { lookupOf } from '../kinds/support.ts';

const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } };
const authorizer = authorizerOf({
  authorizer: new ChainAuthorizer(new RbacPolicy(), lookupOf({ group: '', plural: 'nodes', object: node })),
  user: { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] },
  resource: { group: '', version: 'v1', plural: 'configmaps', subresource: '' },
  namespace: 'default',
  name: 'x',
});

it.each<[string, boolean]>([
  ["resource('pods').fieldSelector('spec.nodeName=n1').check('list')", true],
  ["resource('pods').fieldSelector('spec.nodeName=n1').labelSelector('a=b').check('watch')", true],
  ["resource('pods').fieldSelector('spec.nodeName=n2').check('list')", false],
  ["resource('pods').fieldSelector('spec.nodeName!=n1').check('list')", false],
  ["resource('pods').fieldSelector('spec.nodeName').check('list')", false],
  ["resource('pods').labelSelector('a=b').check('list')", false],
  ["resource('pods').check('list')", false],
])('%s: %s', (check, expected) => {
  const program = conditionProgram(`authorizer.group('').${check}.allowed()`);
  expect(evaluate(program, { authorizer }, new CelBudget(1_000_000))).toBe(expected);
});
