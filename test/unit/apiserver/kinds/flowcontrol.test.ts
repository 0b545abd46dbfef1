import { describe, expect, it } from 'vitest';
import { create, lines, NOW, row } from './support.ts';

type Fields = Record<string, unknown>;
const GROUP = 'flowcontrol.apiserver.k8s.io';
const wrong = (plural: string, spec: Fields, name = 'mine'): string[] =>
  lines(create(row(plural, GROUP), { metadata: { name }, spec }).errors);

describe('a FlowSchema', () => {
  const level = { priorityLevelConfiguration: { name: 'low' } };
  const subjects = [{ kind: 'User', user: { name: 'a' } }];
  const nonResourceRules = [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }];
  const rule = (more: Fields): Fields => ({ ...level, rules: [{ subjects, nonResourceRules, ...more }] });
  const at = 'spec.rules[0]';
  it.each<[Fields, string[]]>([
    [rule({}), []],
    [{}, ['spec.priorityLevelConfiguration.name: Required value: must reference a priority level']],
    [{ ...level, matchingPrecedence: -1 }, ['spec.matchingPrecedence: Invalid value: -1: must be a positive value']],
    [
      { ...level, matchingPrecedence: 10_001 },
      ['spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000'],
    ],
    [
      { ...level, matchingPrecedence: 1 },
      ["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"],
    ],
    [rule({ subjects: [] }), [`${at}.subjects: Required value: subjects must contain at least one value`]],
    [
      rule({ nonResourceRules: [] }),
      [`${at}: Required value: at least one of resourceRules and nonResourceRules has to be non-empty`],
    ],
    [
      rule({ subjects: [{ kind: 'User', group: { name: 'g' } }] }),
      [
        `${at}.subjects[0].user: Required value: user is required when subject kind is 'User'`,
        `${at}.subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'`,
      ],
    ],
    [
      rule({ subjects: [{ kind: 'ServiceAccount', serviceAccount: { name: '*' } }] }),
      [`${at}.subjects[0].serviceAccount.namespace: Required value: must specify namespace for service account`],
    ],
    [
      rule({ nonResourceRules: [{ verbs: ['*', 'get'], nonResourceURLs: ['/a*'] }] }),
      [
        `${at}.nonResourceRules[0].verbs: Invalid value: ["*","get"]: if '*' is present, must not specify other verbs`,
        `${at}.nonResourceRules[0].nonResourceURLs[0]: Invalid value: "/a*": wildcard can only do suffix matching`,
      ],
    ],
    [
      rule({ resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] }),
      [
        `${at}.resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace`,
      ],
    ],
  ])('%j', (spec, expected) => expect(wrong('flowschemas', spec)).toEqual(expected));

  it('that every cluster has is fixed', () => {
    expect(wrong('flowschemas', { ...rule({}), matchingPrecedence: 1 }, 'exempt')).toEqual([
      expect.stringMatching(/^spec: Invalid value: .*: spec of 'exempt' must equal the fixed value$/),
    ]);
  });

  it('shows its level', () => {
    const kind = row('flowschemas', GROUP);
    const made = create(kind, { spec: rule({}) }).object;
    expect(kind.strategy.table?.row(made, NOW)).toEqual(['web', 'low', 1000, '<none>', '<unknown>', '?']);
  });
});

describe('a PriorityLevelConfiguration', () => {
  const limited = (queuing: Fields | undefined, more: Fields = {}): Fields => ({
    type: 'Limited',
    limited: { limitResponse: { type: 'Queue', queuing }, ...more },
  });
  const at = 'spec.limited.limitResponse.queuing';
  it.each<[Fields, string[]]>([
    [limited({}), []],
    [limited(undefined), [`${at}: Required value: must not be empty if limited.limitResponse.type is Limited`]],
    [{ type: 'Limited' }, ['spec.limited: Required value: must not be empty when type is Limited']],
    [{ type: 'Exempt' }, ["spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'"]],
    [limited({ queues: 4 }), [`${at}.handSize: Invalid value: 8: should not be greater than queues (4)`]],
    [
      limited({ queues: 1024 }),
      [
        `${at}.handSize: Invalid value: 8: required entropy bits of deckSize 1024 and handSize 8 should not be greater than 60`,
      ],
    ],
    [
      limited({}, { lendablePercent: 101, nominalConcurrencyShares: -1 }),
      [
        'spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer',
        'spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive',
      ],
    ],
  ])('%j', (spec, expected) => expect(wrong('prioritylevelconfigurations', spec)).toEqual(expected));

  it('gets defaults and shows them', () => {
    const kind = row('prioritylevelconfigurations', GROUP);
    const made = create(kind, { spec: limited({}) }).object;
    expect(kind.strategy.table?.row(made, NOW)).toEqual(['web', 'Limited', 30, 64, 8, 50, '<unknown>']);
    expect(wrong('prioritylevelconfigurations', limited({}), 'catch-all')).toEqual([
      expect.stringMatching(/spec of 'catch-all' must equal the fixed value$/),
    ]);
  });
});
