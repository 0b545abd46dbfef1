// That the stated effect of each field and feature gate is true, and that docs/kubelet-configuration.md says the same, no more
// and no less.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FEATURE_GATES } from '../../../../agent/config/feature-gates.ts';
import { KUBELET_FIELDS } from '../../../../agent/config/kubelet-fields.ts';
import type { Effect, FieldTable } from '../../../../agent/config/schema.ts';

const root = join(import.meta.dirname, '../../../..');

const sources = readdirSync(join(root, 'agent'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('config/'))
  .map((name) => readFileSync(join(root, 'agent', name), 'utf8'))
  .join('\n');

/** Used by the configuration part itself. */
const INTERNAL = ['mergeDefaultEvictionSettings', 'logging', 'featureGates'];

/** Every field that is no object with a table of its own, by its path. */
function leaves(fields: FieldTable, path = ''): (readonly [path: string, effect: Effect])[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const here = path === '' ? name : `${path}.${name}`;
    const below = field.effect.kind === 'acted' ? field.fields : undefined;
    return below === undefined ? [[here, field.effect] as const] : leaves(below, here);
  });
}

const ALL = leaves(KUBELET_FIELDS);
const page = readFileSync(join(root, 'docs/kubelet-configuration.md'), 'utf8');
/** The text below a heading of the page. */
function section(heading: string): string {
  const [, rest] = page.split(`\n## ${heading}\n`);
  if (rest === undefined) throw new Error(`docs/kubelet-configuration.md has no section "${heading}"`);
  return rest.split('\n## ')[0] ?? '';
}
const listed = (heading: string): string[] =>
  [...section(heading).matchAll(/^- `([\w.]+)`/gm)].map((match) => match[1] ?? '').sort();
/** Names in a list that goes on in a line. */
const named = (heading: string): string[] =>
  [...(section(heading).trim().split('\n')[0] ?? '').matchAll(/`([\w.]+)`(?: \(default [^)]*\))?[,.]/g)]
    .map((match) => match[1] ?? '')
    .sort();
const withEffect = (kind: Effect['kind']): string[] =>
  ALL.flatMap(([path, effect]) => (effect.kind === kind ? [path] : [])).sort();

describe('configuration fields', () => {
  const acted = Object.entries(KUBELET_FIELDS).filter(
    ([name, { effect, fields }]) => effect.kind === 'acted' && fields === undefined && !INTERNAL.includes(name),
  );
  test.each(acted.map(([name]) => name))('%s is marked as implemented, and the agent reads it', (name) => {
    expect(sources).toMatch(new RegExp(`\\b${name}\\b`));
  });

  test('that are acted on are those of the page', () => {
    expect(named('Acted on')).toEqual(withEffect('acted'));
  });

  test.each([
    ['ends', 'Only the default'],
    ['warns', 'Without effect'],
  ] as const)('that are of the kind "%s" are those of the page, each with its reason', (kind, heading) => {
    expect(listed(heading)).toEqual(withEffect(kind));
    for (const [path, effect] of ALL) {
      if (effect.kind !== kind) continue;
      const line = section(heading)
        .split('\n')
        .find((one) => one.startsWith(`- \`${path}\``));
      expect(line).toContain(effect.why);
    }
  });
});

describe('feature gates', () => {
  const rows: readonly (readonly [string, string, string])[] = [
    ['Always on', 'on', 'ends'],
    ['On', 'on', 'warns'],
    ['Not there, and missed', 'off', 'ends'],
    ['Not there', 'off', 'warns'],
  ];
  test.each(rows)('%s: the page and the table are one', (word, code, against) => {
    const line = section('Feature gates')
      .split('\n')
      .find((one) => one.startsWith(`- ${word}: `));
    const inPage = [...(line ?? '').matchAll(/`([A-Z]\w+)`/g)].map((match) => match[1] ?? '');
    const inTable = [...FEATURE_GATES].flatMap(([name, gate]) =>
      gate.code !== 'elsewhere' && gate.code === code && gate.against === against ? [name] : [],
    );
    expect(inPage.sort()).toEqual(inTable.sort());
  });

  test('have one effect each', () => {
    const text = readFileSync(join(root, 'agent/config/feature-gates.ts'), 'utf8');
    const all = [...text.matchAll(/names\(`([^`]*)`\)/g)].flatMap((match) => (match[1] ?? '').trim().split(/\s+/));
    expect(all.filter((name, index) => all.indexOf(name) !== index)).toEqual([]);
    expect(FEATURE_GATES.size).toBe(all.length);
  });
});
