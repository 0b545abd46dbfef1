// What kubectl explain has to show: every type and every field that is served has a description.

import { expect, it } from 'vitest';
import { describe as describeType } from '../../../../apiserver/discovery/descriptions.ts';
import { OWN_DESCRIPTIONS } from '../../../../apiserver/discovery/own-descriptions.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import { definitions } from '../../../../apiserver/schema/definitions.ts';

/** All definitions that a kind leads to. */
function served(): string[] {
  const found = new Set<string>();
  const visit = (name: string): void => {
    const definition = definitions()[name];
    if (found.has(name) || definition === undefined) return;
    found.add(name);
    for (const type of Object.values(definition.fields))
      if (type.includes('#')) visit(type.slice(type.indexOf('#') + 1));
  };
  for (const { schema } of RESOURCE_KINDS) visit(schema);
  return [...found];
}

/** JSON Schema's own words, which upstream does not explain either. */
const UNEXPLAINED = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps';

it('no type and no field is without one', () => {
  const without = served().flatMap((name) => {
    const definition = definitions()[name];
    if (definition === undefined) return [];
    const { type, fields } = describeType(name, definition);
    const bare =
      name === UNEXPLAINED ? [] : Object.keys(definition.fields).filter((field) => (fields.get(field) ?? '') === '');
    return [...(type === '' ? [name] : []), ...bare.map((field) => `${name}.${field}`)];
  });
  expect(without).toEqual([]);
});

it('none of ours is for a type or a field that is not there, or that the package describes', () => {
  const all = definitions();
  for (const [name, { type, fields = {} }] of Object.entries(OWN_DESCRIPTIONS)) {
    const definition = all[name];
    expect(definition, name).toBeDefined();
    if (definition === undefined) continue;
    const shown = describeType(name, definition);
    if (type !== undefined) expect(shown.type).toBe(type);
    for (const [field, text] of Object.entries(fields)) expect([field, shown.fields.get(field)]).toEqual([field, text]);
  }
});
