// What kubectl explain has to show: every type has a description, and every field that has one upstream.

import { expect, it } from 'vitest';
import { describe as describeType, earlierDescriptions } from '../../../../apiserver/discovery/descriptions.ts';
import { readComments } from '../../../../apiserver/discovery/dts-comments.ts';
import { OWN_DESCRIPTIONS } from '../../../../apiserver/discovery/own-descriptions.ts';
import { published, publishedFacts } from '../../../../apiserver/discovery/published.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import { definitions } from '../../../../apiserver/schema/definitions.ts';

/** All definitions that a kind leads to. */
function served(): string[] {
  const found = new Set<string>();
  const visit = (name: string): void => {
    if (found.has(name) || definitions()[name] === undefined) return;
    found.add(name);
    for (const type of Object.values(published(name).fields))
      if (type.includes('#')) visit(type.slice(type.indexOf('#') + 1));
  };
  for (const { schema } of RESOURCE_KINDS) visit(schema);
  return [...found];
}

/** What kube-apiserver 1.34 has no words for either. */
const UNEXPLAINED: readonly string[] = [
  'certificates.v1.CertificateSigningRequest.metadata',
  'networking.v1.IngressRule.http',
];
/** JSON Schema's own words. */
const JSON_SCHEMA = /^apiextensions\.v1\.(JSONSchemaProps|ExternalDocumentation)\./;

it('no type is without one, and no field that upstream explains', () => {
  const without = served().flatMap((name) => {
    const fields = Object.keys(published(name).fields);
    const shown = describeType(name, fields);
    const bare = fields.filter((field) => (shown.fields.get(field) ?? '') === '');
    const short = name.split('.').slice(-3).join('.');
    return [...(shown.type === '' ? [short] : []), ...bare.map((field) => `${short}.${field}`)];
  });
  expect(without.filter((name) => !JSON_SCHEMA.test(name)).sort()).toEqual(UNEXPLAINED);
});

it('none of ours is for a type that is not there, or that a package describes', () => {
  for (const [name, { type, fields }] of Object.entries(OWN_DESCRIPTIONS)) {
    const names = Object.keys(definitions()[name]?.fields ?? {});
    const shown = describeType(name, names);
    expect(shown.type).toBe(type);
    for (const [field, text] of Object.entries(fields)) expect([field, shown.fields.get(field)]).toEqual([field, text]);
  }
});

it('where the later package has changed the words, those of the earlier one are shown', () => {
  const name = 'io.k8s.api.authentication.v1.BoundObjectReference';
  expect(publishedFacts()[name]?.earlier).toEqual(['apiVersion', 'kind', 'name', 'uid']);
  const shown = describeType(name, ['uid']).fields.get('uid') ?? '';
  expect(earlierDescriptions(name, '', { uid: shown })).toEqual(['uid']);
});

it('the comments of a declaration file are read with their lines, and without its marks', () => {
  const text = [
    '/**',
    ' * A type.',
    ' *',
    ' *  - with `a \\* b`',
    ' * @deprecated',
    ' */',
    'export interface IThing extends Base {',
    '    "kind": "Thing";',
    '    /**',
    '     * A field.',
    '     */',
    '    "field"?: {',
    '        [key: string]: string;',
    '    };',
    '}',
    '/** One line. */',
    'export type Other = string;',
  ].join('\n');
  const found = readComments(text);
  expect(found.get('IThing')?.type).toBe('A type.\n\n - with `a * b`');
  expect([...(found.get('IThing')?.fields ?? [])]).toEqual([
    ['kind', ''],
    ['field', 'A field.'],
  ]);
  expect(found.get('Other')?.type).toBe('One line.');
});
