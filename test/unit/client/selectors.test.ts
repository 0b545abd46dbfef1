import { describe, expect, test } from 'vitest';
import { matchesLabelSelector, matchesNodeSelector, matchesRequirement } from '../../../client/selectors.ts';

const LABELS = { tier: 'web', cores: '8' };

describe('a requirement', () => {
  const rows: readonly [string, string, readonly string[], boolean][] = [
    ['tier', 'In', ['db', 'web'], true],
    ['tier', 'In', ['db'], false],
    ['zone', 'In', [''], false],
    ['tier', 'NotIn', ['web'], false],
    ['zone', 'NotIn', ['a'], true],
    ['tier', 'Exists', [], true],
    ['zone', 'Exists', [], false],
    ['constructor', 'Exists', [], false],
    ['constructor', 'DoesNotExist', [], true],
    ['cores', 'Gt', ['7'], true],
    ['cores', 'Gt', ['8'], false],
    ['cores', 'Lt', ['+9'], true],
    ['tier', 'Gt', ['1'], false],
    ['zone', 'Lt', ['1'], false],
    ['tier', 'Like', ['web'], false],
  ];
  test.each(rows)('%s %s %j: %s', (key, operator, values, expected) => {
    expect(matchesRequirement({ key, operator, values }, LABELS)).toBe(expected);
  });
});

test('a label selector wants every label and every expression, and nothing when it is empty', () => {
  const expression = { key: 'cores', operator: 'Exists' };
  expect(matchesLabelSelector({}, LABELS)).toBe(true);
  expect(matchesLabelSelector({ matchLabels: { tier: 'web' }, matchExpressions: [expression] }, LABELS)).toBe(true);
  expect(matchesLabelSelector({ matchLabels: { tier: 'db' }, matchExpressions: [expression] }, LABELS)).toBe(false);
  expect(matchesLabelSelector({ matchExpressions: [{ ...expression, operator: 'DoesNotExist' }] }, LABELS)).toBe(false);
});

test('a node selector is met by any of its terms, a term by all it asks for, an empty term by nothing', () => {
  const node = { name: 'node-1', labels: LABELS };
  const named = (name: string) => ({ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] });
  expect(matchesNodeSelector({ nodeSelectorTerms: [named('other'), named('node-1')] }, node)).toBe(true);
  expect(matchesNodeSelector({ nodeSelectorTerms: [{}] }, node)).toBe(false);
  const both = { ...named('node-1'), matchExpressions: [{ key: 'tier', operator: 'In', values: ['db'] }] };
  expect(matchesNodeSelector({ nodeSelectorTerms: [both] }, node)).toBe(false);
  const unknown = { matchFields: [{ key: 'metadata.uid', operator: 'Exists' }] };
  expect(matchesNodeSelector({ nodeSelectorTerms: [unknown] }, node)).toBe(false);
});
