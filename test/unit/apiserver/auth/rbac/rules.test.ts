// Rules of RBAC: what one allows, what covers what, and how refusals print them. The cases are those of kube-apiserver's
// own tables (rbac_test, policy_comparator_test).

import { describe, expect, it } from 'vitest';
import {
  breakDown,
  compact,
  type PolicyRule,
  printRule,
  ruleAllows,
  ruleAllowsPath,
  uncovered,
} from '../../../../../apiserver/auth/rbac/rules.ts';

/** "get,list pods,pods/log in apps named a,b"; a group of "core" is "". */
function rule(text: string): PolicyRule {
  const [, verbs = '', resources = '', groups = '', names] = /^(\S+) (\S+) in (\S+)(?: named (\S+))?$/.exec(text) ?? [];
  return {
    verbs: verbs.split(','),
    apiGroups: groups.split(',').map((group) => (group === 'core' ? '' : group)),
    resources: resources.split(','),
    ...(names === undefined ? {} : { resourceNames: names.split(',') }),
  };
}
const urls = (verbs: string, ...nonResourceURLs: string[]): PolicyRule => ({
  verbs: verbs.split(','),
  nonResourceURLs,
});

/** "get pods/log in apps named a" */
function allows(given: PolicyRule, text: string): boolean {
  const [, verb = '', full = '', group = '', name = ''] = /^(\S+) (\S+) in (\S+)(?: named (\S+))?$/.exec(text) ?? [];
  const [resource = '', subresource = ''] = full.split('/');
  return ruleAllows(given, {
    verb,
    group: group === 'core' ? '' : group,
    resource,
    subresource,
    namespace: 'ns',
    name,
  });
}

describe('a rule', () => {
  const cases: readonly [string, string, boolean][] = [
    ['* * in *', 'delete anything/sub in any', true],
    ['get pods in core', 'get pods in core', true],
    ['get pods in core', 'list pods in core', false],
    ['get pods in core', 'get pods in apps', false],
    ['get pods in core', 'get pods/log in core', false],
    ['get pods/log in core', 'get pods in core', false],
    ['get pods/* in core', 'get pods/log in core', false],
    ['get */scale in *', 'get deployments/scale in apps', true],
    ['get */scale in *', 'get deployments in apps', false],
    ['get */scale in *', 'get deployments/status in apps', false],
    ['get */scale in core', 'get deployments/scale in apps', false],
    ['get * in core', 'get pods/exec in core', true],
    ['* pods in core', 'impersonate pods in core', true],
    ['get pods in core named a,b', 'get pods in core named b', true],
    ['get pods in core named a,b', 'get pods in core named c', false],
    ['list pods in core named a', 'list pods in core', false],
  ];
  for (const [given, request, allowed] of cases) {
    it(`"${given}" ${allowed ? 'allows' : 'does not allow'} ${request}`, () =>
      expect(allows(rule(given), request)).toBe(allowed));
  }

  const paths: readonly [string, string, boolean][] = [
    ['/apis', '/apis', true],
    ['/apis', '/apis/', false],
    ['/apis/*', '/apis/apps/v1', true],
    ['/apis/*', '/apis', false],
    ['/ap*', '/apis', true],
    ['*', '/metrics', true],
    ['/a/*/b', '/a/x/b', false],
  ];
  for (const [given, path, allowed] of paths) {
    it(`of ${given} ${allowed ? 'allows' : 'does not allow'} ${path}`, () => {
      expect(ruleAllowsPath(urls('get', given), 'get', path)).toBe(allowed);
      expect(ruleAllowsPath(urls('get', given), 'post', path)).toBe(false);
    });
  }

  it('of resources allows no path, and one of paths no resource', () => {
    expect(ruleAllowsPath(rule('* * in *'), 'get', '/metrics')).toBe(false);
    expect(allows(urls('*', '*'), 'get pods in core')).toBe(false);
  });
});

describe('rules cover', () => {
  const cases: readonly [string, readonly PolicyRule[], readonly PolicyRule[], readonly PolicyRule[]][] = [
    ['themselves', [rule('get pods in core')], [rule('get pods in core')], []],
    ['by a star each', [rule('* * in *')], [rule('get,list pods,pods/log in core,apps named a')], []],
    [
      'together what none does alone',
      [rule('get pods in core'), rule('list pods in core')],
      [rule('get,list pods in core')],
      [],
    ],
    [
      'not what another group has',
      [rule('get pods in core')],
      [rule('get pods in core,apps')],
      [rule('get pods in apps')],
    ],
    ['not a star', [rule('get,list,watch pods in core')], [rule('* pods in core')], [rule('* pods in core')]],
    ['named objects by all', [rule('get pods in core')], [rule('get pods in core named a')], []],
    [
      'not all by named ones',
      [rule('get pods in core named a')],
      [rule('get pods in core')],
      [rule('get pods in core')],
    ],
    [
      'not other names',
      [rule('get pods in core named a')],
      [rule('get pods in core named a,b')],
      [rule('get pods in core named b')],
    ],
    ['a subresource of everything', [rule('get */scale in apps')], [rule('get deployments/scale in apps')], []],
    [
      'not the object by its subresource',
      [rule('get */scale in apps')],
      [rule('get deployments in apps')],
      [rule('get deployments in apps')],
    ],
    [
      'not a subresource that is named like a resource',
      [rule('get */pods in core')],
      [rule('get pods in core')],
      [rule('get pods in core')],
    ],
    ['paths below one', [urls('get', '/api/*')], [urls('get', '/api/v1', '/api/*')], []],
    ['not the path itself', [urls('get', '/api/*')], [urls('get', '/api')], [urls('get', '/api')]],
    ['not all paths', [urls('*', '/api/*')], [urls('get', '*')], [urls('get', '*')]],
    ['nothing by paths', [urls('*', '*')], [rule('get pods in core')], [rule('get pods in core')]],
  ];
  for (const [what, owners, wanted, missing] of cases) {
    it(what, () => expect(uncovered(owners, wanted)).toEqual(missing));
  }

  it('broken down to single actions, which are put together again by resource', () => {
    const single = breakDown(rule('get,list pods,nodes in core'));
    expect(single).toHaveLength(4);
    expect(compact([...single, urls('get', '/a')])).toEqual([
      urls('get', '/a'),
      rule('get,list pods in core'),
      rule('get,list nodes in core'),
    ]);
  });

  it('and are printed as kube-apiserver does', () => {
    expect(printRule(rule('get,list pods in core named a'))).toBe(
      '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}',
    );
    expect(printRule(urls('get', '*'))).toBe('{NonResourceURLs:["*"], Verbs:["get"]}');
  });
});
