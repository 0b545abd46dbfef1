// That "nodelet acts on it" is true, and that what it does not act on is written down for users.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { KUBELET_FIELDS } from '../../../../agent/config/kubelet-fields.ts';
import type { FieldTable } from '../../../../agent/config/schema.ts';

const root = join(import.meta.dirname, '../../../..');

const sources = readdirSync(join(root, 'agent'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('config/'))
  .map((name) => readFileSync(join(root, 'agent', name), 'utf8'))
  .join('\n');

/** Used by the configuration part itself. */
const INTERNAL = ['mergeDefaultEvictionSettings', 'logging'];

function accepted(fields: FieldTable, path = ''): string[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const here = path === '' ? name : `${path}.${name}`;
    if (!field.acted) return [here];
    return field.fields === undefined ? [] : accepted(field.fields, here);
  });
}

describe('configuration fields', () => {
  const acted = Object.entries(KUBELET_FIELDS).filter(([name, field]) => field.acted && !INTERNAL.includes(name));
  test.each(acted.map(([name]) => name))('%s is said to be acted on, and the agent reads it', (name) => {
    expect(sources).toMatch(new RegExp(`\\b${name}\\b`));
  });

  test('that are accepted and not acted on are all in docs/kubelet-configuration.md, and no others', () => {
    const page = readFileSync(join(root, 'docs/kubelet-configuration.md'), 'utf8');
    const listed = [...page.matchAll(/^- `([\w.]+)`/gm)].map((match) => match[1]);
    expect([...listed].sort()).toEqual(accepted(KUBELET_FIELDS).sort());
  });
});
