// Custom resources as upstream's conformance tests use them: definitions come, change and go, and objects, discovery, OpenAPI
// and field validation follow.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../support/api-server.ts';
import { Client, type Fields, objects, versionOf } from './client.ts';

let client: Client;
beforeAll(async () => {
  client = await Client.start();
});
afterAll(() => client.stop());

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const ANY: Fields = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

interface Version {
  readonly name: string;
  readonly served?: boolean;
  readonly schema?: Fields;
  readonly more?: Fields;
}

function definition(group: string, versions: readonly Version[], kind = 'Foo', labels: Fields = {}): Fields {
  const plural = `${kind.toLowerCase()}s`;
  return {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    metadata: { name: `${plural}.${group}`, labels },
    spec: {
      ...{ group, scope: 'Namespaced', names: { plural, kind } },
      versions: versions.map(({ name, served = true, schema = ANY, more = {} }, index) => ({
        ...{ name, served, storage: index === 0, schema: { openAPIV3Schema: schema } },
        ...more,
      })),
    },
  };
}

const established = (stored: unknown): boolean => {
  const conditions = at(stored, 'status', 'conditions');
  return (
    Array.isArray(conditions) &&
    conditions.some((one) => at(one, 'type') === 'Established' && at(one, 'status') === 'True')
  );
};

/** Creates a definition and waits until it is established. */
async function define(...args: Parameters<typeof definition>): Promise<string> {
  const body = definition(...args);
  const path = `${DEFINITIONS}/${String(at(body, 'metadata', 'name'))}`;
  await client.create(DEFINITIONS, body);
  await expect.poll(async () => established(await client.get(path))).toBe(true);
  return path;
}

const custom = (group: string, name: string, fields: Fields = {}, version = 'v1'): object => ({
  ...{ apiVersion: `${group}/${version}`, kind: 'Foo', metadata: { name } },
  ...fields,
});
const foosOf = (group: string, version = 'v1'): string => `/apis/${group}/${version}/namespaces/default/foos`;

describe('a definition', () => {
  it('is watched as it is created, changed and deleted', async () => {
    using watch = await client.watch(DEFINITIONS, 'fieldSelector=metadata.name%3Dfoos.watched.example.com');
    const path = await define('watched.example.com', [{ name: 'v1' }]);
    await client.patch(path, { metadata: { labels: { changed: 'yes' } } });
    await client.delete(path);
    await watch.until(({ shown }) => shown.at(-1)?.startsWith('DELETED') === true);
    const types = watch.events.map(({ type }) => type);
    expect([types[0], types.includes('MODIFIED'), types.at(-1)]).toEqual(['ADDED', true, 'DELETED']);
  });

  it('is listed by its labels and deleted as a collection', async () => {
    const labels = { crds: 'mine' };
    for (const index of [0, 1, 2]) await define(`list-${index}.example.com`, [{ name: 'v1' }], 'Foo', labels);
    await define('other.example.com', [{ name: 'v1' }]);
    expect(objects(await client.get(`${DEFINITIONS}?labelSelector=crds%3Dmine`)).length).toBe(3);
    await client.delete(`${DEFINITIONS}?labelSelector=crds%3Dmine`);
    await expect.poll(() => client.names(`${DEFINITIONS}?labelSelector=crds%3Dmine`)).toEqual([]);
    expect(await client.names(DEFINITIONS)).toContain('foos.other.example.com');
  });

  it('has a status that is read, updated and patched', async () => {
    const path = await define('status.example.com', [{ name: 'v1' }]);
    const stored = await client.get(`${path}/status`);
    expect(established(stored)).toBe(true);
    const condition = { type: 'StatusUpdate', status: 'True', reason: 'E2E', message: 'Set from an e2e test' };
    const conditions = at(stored, 'status', 'conditions');
    if (!Array.isArray(conditions)) throw new Error('a definition has conditions');
    const status = { ...Object(at(stored, 'status')), conditions: [...conditions, condition] };
    const updated = await client.update(`${path}/status`, { ...Object(stored), status });
    expect(at(updated, 'status', 'conditions')).toContainEqual(expect.objectContaining(condition));
    const patch = { metadata: { annotations: { patched: 'yes' } } };
    expect(at(await client.patch(`${path}/status`, patch), 'status', 'conditions')).toContainEqual(
      expect.objectContaining(condition),
    );
  });

  it('is in plain and in aggregated discovery', async () => {
    await define('discovered.example.com', [{ name: 'v1' }]);
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
    const aggregated = async (): Promise<unknown> => {
      const call = { path: '/apis', as: client.stand.admin, headers: { accept } };
      return at((await client.stand.call(call)).json, 'items');
    };
    const group = expect.objectContaining({ metadata: expect.objectContaining({ name: 'discovered.example.com' }) });
    await expect.poll(aggregated).toContainEqual(group);
    expect(await aggregated()).toContainEqual(
      expect.objectContaining({
        metadata: expect.objectContaining({ name: 'apiextensions.k8s.io' }),
        versions: [
          expect.objectContaining({
            version: 'v1',
            resources: [expect.objectContaining({ resource: 'customresourcedefinitions', scope: 'Cluster' })],
          }),
        ],
      }),
    );
    expect(at(await client.get('/apis/discovered.example.com/v1'), 'resources')).toContainEqual(
      expect.objectContaining({ name: 'foos', kind: 'Foo', namespaced: true }),
    );
    expect(at(await client.get('/apis'), 'groups')).toContainEqual(
      expect.objectContaining({ name: 'apiextensions.k8s.io' }),
    );
    expect(at(await client.get('/apis/apiextensions.k8s.io/v1'), 'resources')).toContainEqual(
      expect.objectContaining({ name: 'customresourcedefinitions' }),
    );
  });

  it('gives defaults to what is requested and to what was stored before it had them', async () => {
    const group = 'defaults.example.com';
    const schema = (properties: Fields): Fields => ({ type: 'object', properties });
    const path = await define(group, [
      { name: 'v1', schema: schema({ a: { type: 'string' }, b: { type: 'string' } }) },
    ]);
    await client.create(foosOf(group), custom(group, 'before'));
    const setDefaults = (properties: Fields): Promise<unknown> =>
      client.patch(
        path,
        [{ op: 'replace', path: '/spec/versions/0/schema/openAPIV3Schema/properties', value: properties }],
        'json',
      );
    await setDefaults({ a: { type: 'string', default: 'A' }, b: { type: 'string' } });
    await expect.poll(async () => at(await client.get(`${foosOf(group)}/before`), 'a')).toBe('A');
    const created = await client.create(foosOf(group), custom(group, 'after'));
    expect([at(created, 'a'), at(created, 'b')]).toEqual(['A', undefined]);
    await setDefaults({ a: { type: 'string' }, b: { type: 'string', default: 'B' } });
    await expect.poll(async () => at(await client.get(`${foosOf(group)}/after`), 'b')).toBe('B');
    // What was a default when it was created is stored; what was only shown is not.
    expect(at(await client.get(`${foosOf(group)}/after`), 'a')).toBe('A');
    const before = await client.get(`${foosOf(group)}/before`);
    expect([at(before, 'a'), at(before, 'b')]).toEqual([undefined, 'B']);
  });

  it('names fields by which objects are listed and watched', async () => {
    const group = 'selected.example.com';
    const properties = { hostPort: { type: 'string' }, other: { type: 'string' } };
    const selectableFields = [{ jsonPath: '.hostPort' }];
    await define(group, [{ name: 'v1', schema: { type: 'object', properties }, more: { selectableFields } }]);
    const selected = 'fieldSelector=hostPort%3Dhost1:80';
    using watch = await client.watch(foosOf(group), selected);
    await client.create(foosOf(group), custom(group, 'one', { hostPort: 'host1:80' }));
    await client.create(foosOf(group), custom(group, 'two', { hostPort: 'host2:80' }));
    expect(await client.names(`${foosOf(group)}?${selected}`)).toEqual(['one']);
    await client.patch(`${foosOf(group)}/one`, { hostPort: 'host2:80' });
    await watch.until(({ events }) => events.length >= 2);
    expect(watch.shown).toEqual(['ADDED one', 'DELETED one']);
    expect(await client.refusal('GET', `${foosOf(group)}?fieldSelector=other%3Dx`)).toEqual([400, 'BadRequest']);
  });
});

describe('OpenAPI', () => {
  /** The schema of a kind in both documents; undefined where neither has it. */
  async function published(group: string, version = 'v1', kind = 'Foo'): Promise<unknown> {
    const name = [...group.split('.').toReversed(), version, kind].join('.');
    const v2 = at(await client.get('/openapi/v2'), 'definitions', name);
    const answer = await client.send('GET', `/openapi/v3/apis/${group}/${version}`);
    const v3 = at(answer.json, 'components', 'schemas', name);
    expect([name, v2 === undefined]).toEqual([name, v3 === undefined]);
    return v3;
  }

  const schema: Fields = {
    type: 'object',
    properties: {
      spec: {
        ...{ type: 'object', description: 'Specification of Foo' },
        properties: {
          bars: {
            type: 'array',
            items: {
              ...{ type: 'object', required: ['name'] },
              properties: { name: { type: 'string', description: 'Name of Bar.' }, age: { type: 'string' } },
            },
          },
        },
      },
    },
  };

  it('has the schema of a definition, its kinds, and x-kubernetes-preserve-unknown-fields where it stands', async () => {
    await define('schema.example.com', [{ name: 'v1', schema }]);
    expect(await published('schema.example.com')).toMatchObject({
      type: 'object',
      properties: { spec: schema['properties'] && Object(schema['properties'])['spec'] },
      'x-kubernetes-group-version-kind': [{ group: 'schema.example.com', version: 'v1', kind: 'Foo' }],
    });
    await define('open.example.com', [{ name: 'v1' }]);
    expect(await published('open.example.com')).toMatchObject({ 'x-kubernetes-preserve-unknown-fields': true });
    await define('embedded.example.com', [{ name: 'v1', schema: { type: 'object', properties: { spec: ANY } } }]);
    expect(await published('embedded.example.com')).toMatchObject({
      properties: { spec: { 'x-kubernetes-preserve-unknown-fields': true } },
    });
  });

  it('has definitions of several groups, versions and kinds side by side', async () => {
    await define('side-a.example.com', [{ name: 'v1', schema }]);
    await define('side-b.example.com', [
      { name: 'v1', schema },
      { name: 'v2', schema },
    ]);
    await define('side-a.example.com', [{ name: 'v1', schema }], 'Bar');
    for (const [group, version, kind] of [
      ['side-a.example.com', 'v1', 'Foo'],
      ['side-a.example.com', 'v1', 'Bar'],
      ['side-b.example.com', 'v1', 'Foo'],
      ['side-b.example.com', 'v2', 'Foo'],
    ] as const) {
      expect(await published(group, version, kind)).toBeDefined();
    }
  });

  it('loses a version that is renamed or no longer served', async () => {
    const path = await define('renamed.example.com', [
      { name: 'v2', schema },
      { name: 'v3', schema },
    ]);
    const replace = (pointer: string, value: unknown): Promise<unknown> =>
      client.patch(path, [{ op: 'replace', path: pointer, value }], 'json');
    await replace('/spec/versions/1/name', 'v4');
    await expect.poll(() => published('renamed.example.com', 'v4')).toBeDefined();
    expect(await published('renamed.example.com', 'v3')).toBeUndefined();
    expect(await published('renamed.example.com', 'v2')).toBeDefined();
    await replace('/spec/versions/1/served', false);
    await expect.poll(() => published('renamed.example.com', 'v4')).toBeUndefined();
    expect(await published('renamed.example.com', 'v2')).toBeDefined();
  });
});

describe('fieldValidation=Strict of a custom resource', () => {
  const embedded: Fields = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          cronSpec: { type: 'string' },
          template: {
            ...{ type: 'object', 'x-kubernetes-embedded-resource': true },
            properties: { metadata: { type: 'object' }, spec: { type: 'object' } },
          },
        },
      },
    },
  };
  const apply = (group: string, fields: Fields): Promise<unknown> =>
    client.apply(`${foosOf(group)}/one`, 'test&fieldValidation=Strict', custom(group, 'one', fields));
  const message = async (group: string, body: unknown): Promise<string> =>
    String(at((await client.send('POST', `${foosOf(group)}?fieldValidation=Strict`, body)).json, 'message'));

  it('takes anything where the schema does, and what is valid where there is one', async () => {
    await define('anything.example.com', [{ name: 'v1' }]);
    await client.create(
      `${foosOf('anything.example.com')}?fieldValidation=Strict`,
      custom('anything.example.com', 'made', { spec: { unknown: 1 } }),
    );
    expect(at(await apply('anything.example.com', { spec: { unknown: 1 } }), 'spec', 'unknown')).toBe(1);
    await define('valid.example.com', [{ name: 'v1', schema: embedded }]);
    expect(at(await apply('valid.example.com', { spec: { cronSpec: '* * *' } }), 'spec', 'cronSpec')).toBe('* * *');
  });

  it('refuses what the schema does not have, duplicates, and unknown metadata in the object and in embedded ones', async () => {
    const group = 'refused.example.com';
    await define(group, [{ name: 'v1', schema: embedded }]);
    expect(await message(group, custom(group, 'extra', { spec: { extra: 1 } }))).toContain(
      'unknown field "spec.extra"',
    );
    await expect(apply(group, { spec: { extra: 1 } })).rejects.toThrow('spec.extra');
    const head = `"apiVersion":"${group}/v1","kind":"Foo"`;
    const inner = '"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","unknownSub":1}}';
    const text = await message(group, `{${head},"metadata":{"name":"a","unknownMeta":1},"spec":{${inner}}}`);
    expect(text).toContain('unknown field "metadata.unknownMeta"');
    expect(text).toContain('unknown field "spec.template.metadata.unknownSub"');
    await define('duplicates.example.com', [{ name: 'v1' }]);
    const twice = `{"apiVersion":"duplicates.example.com/v1","kind":"Foo","metadata":{"name":"a"},"spec":{"x":1,"x":2}}`;
    expect(await message('duplicates.example.com', twice)).toContain('duplicate field "spec.x"');
  });
});

describe('objects of a definition', () => {
  it('are patched after the storage version has changed', async () => {
    const group = 'moved.example.com';
    const path = await define(group, [{ name: 'v1' }, { name: 'v2' }]);
    await client.create(foosOf(group), custom(group, 'one', { data: { stored: 'v1' } }));
    const versions = at(await client.get(path), 'spec', 'versions');
    if (!Array.isArray(versions)) throw new Error('a definition has versions');
    await client.patch(path, { spec: { versions: versions.map((one, index) => ({ ...one, storage: index === 1 })) } });
    await client.patch(`${foosOf(group)}/one`, { data: { added: 'yes' } });
    const stored = await client.get(`${foosOf(group, 'v2')}/one`);
    expect(at(stored, 'data')).toEqual({ stored: 'v1', added: 'yes' });
    expect(versionOf(stored)).toMatch(/^\d+$/);
    expect(at(await client.get(path), 'status', 'storedVersions')).toEqual(['v1', 'v2']);
  });
});
