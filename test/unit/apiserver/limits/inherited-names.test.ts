// Names that every object inherits, end to end through the real server: where a name is free they are names like any
// other, where it names something they name nothing, and they never reach what all objects share.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BodiesServer } from '../../../hostile/bodies/server.ts';

const NAMES = ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'];
/** Those that are label keys and keys of a ConfigMap; a label must begin with a letter or a digit. */
const LABELS = NAMES.filter((name) => !name.startsWith('_'));
const NS = '/api/v1/namespaces/default';
const JSON_TYPE = 'application/json';

let directory: string;
let server: BodiesServer;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-names-'));
  server = await BodiesServer.start(directory);
  await post(`${NS}/serviceaccounts`, { kind: 'ServiceAccount', metadata: { name: 'default' } });
});
afterAll(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

const post = (path: string, body: unknown) =>
  server.send({ method: 'POST', path, contentType: JSON_TYPE, body: JSON.stringify(body) });
/** An object literal would take `__proto__` for something else. */
const keyed = (names: readonly string[], value: unknown): object =>
  Object.fromEntries(names.map((name) => [name, value]));
const pod = (spec: object): object => ({ kind: 'Pod', metadata: { name: 'p' }, spec });
const container = (more: object = {}): object => ({ name: 'c', image: 'i', ...more });

describe('names of Object.prototype', () => {
  it('are keys of ConfigMaps and Secrets, and come back', async () => {
    for (const [plural, kind, data] of [
      ['configmaps', 'ConfigMap', keyed(NAMES, 'value')],
      ['secrets', 'Secret', keyed(NAMES, 'AAAA')],
    ] as const) {
      const created = await post(`${NS}/${plural}`, { kind, metadata: { name: 'keys' }, data });
      expect([created.code, created.body]).toEqual([201, created.body]);
      const read = JSON.parse((await server.send({ method: 'GET', path: `${NS}/${plural}/keys` })).body);
      expect(Object.entries(read.data)).toEqual(Object.entries(data));
    }
    // In protobuf's and in YAML's way, too.
    const yaml = `kind: ConfigMap\nmetadata: {name: yaml}\ndata:\n${NAMES.map((name) => `  ${name}: v`).join('\n')}`;
    const path = `${NS}/configmaps`;
    const fromYaml = await server.send({ method: 'POST', path, contentType: 'application/yaml', body: yaml });
    expect(Object.keys(JSON.parse(fromYaml.body).data)).toEqual(NAMES);
  });

  it('are labels, annotations, environment, resources and node selectors', async () => {
    const created = await post(`${NS}/pods?dryRun=All`, {
      kind: 'Pod',
      metadata: { name: 'p', labels: keyed(LABELS, 'a'), annotations: keyed(LABELS, 'b') },
      spec: {
        nodeSelector: keyed(LABELS, 'a'),
        containers: [
          container({
            name: 'constructor',
            env: NAMES.map((name) => ({ name, value: 'v' })),
            volumeMounts: [{ name: 'constructor', mountPath: '/x' }],
            resources: { limits: keyed(['example.com/constructor'], '1') },
          }),
        ],
        volumes: [{ name: 'constructor', emptyDir: {} }],
      },
    });
    expect(created.code, created.body).toBe(201);
    const { spec, metadata } = JSON.parse(created.body);
    expect(Object.keys(metadata.labels)).toEqual(LABELS);
    expect(spec.containers[0].env.map(({ name }: { name: string }) => name)).toEqual(NAMES);
    expect(spec.containers[0].resources.requests).toEqual({ 'example.com/constructor': '1' });
  });

  it.each(NAMES)('%s is no priority class, runtime class, fieldPath, field or type of a secret', async (name) => {
    const refused = [
      await post(`${NS}/pods?dryRun=All`, pod({ priorityClassName: name, containers: [container()] })),
      await post(`${NS}/pods?dryRun=All`, pod({ runtimeClassName: name, containers: [container()] })),
      await post(
        `${NS}/pods?dryRun=All`,
        pod({ containers: [container({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: name } } }] })] }),
      ),
      await server.send({ method: 'GET', path: `${NS}/pods?fieldSelector=${name}=x` }),
      await server.send({ method: 'GET', path: `${NS}/${name}` }),
      await server.send({ method: 'GET', path: `${NS}/pods/${name}` }),
      await server.send({ method: 'GET', path: `/api/v1/nodes/${name}/${name}` }),
      await post(`${NS}/pods/p/${name}`, {}),
    ];
    for (const { code, body } of refused) {
      expect(code, body).toBeGreaterThanOrEqual(400);
      expect(code, body).toBeLessThan(500);
    }
    const secret = { kind: 'Secret', metadata: { name: 's' }, type: name };
    expect((await post(`${NS}/secrets?dryRun=All`, secret)).code).toBe(201);
    const listed = await server.send({ method: 'GET', path: `${NS}/pods?${name}=1&labelSelector=a%3Db` });
    expect(listed.code).toBe(200);
  });

  it('stay ordinary in patches', async () => {
    await post(`${NS}/configmaps`, { kind: 'ConfigMap', metadata: { name: 'patched' } });
    const path = `${NS}/configmaps/patched`;
    const patch = (contentType: string, body: unknown) =>
      server.send({ method: 'PATCH', path, contentType, body: JSON.stringify(body) });
    const add = (at: string) => [{ op: 'add', path: at, value: 'polluted' }];
    for (const at of [
      '/__proto__/x',
      '/metadata/__proto__/x',
      '/constructor/prototype/x',
      '/metadata/labels/__proto__',
    ]) {
      const { code, body } = await patch('application/json-patch+json', add(at));
      expect([400, 422], `${at}: ${body}`).toContain(code);
    }
    for (const type of ['application/merge-patch+json', 'application/strategic-merge-patch+json']) {
      const patched = await patch(type, { data: keyed(NAMES, type) });
      expect(patched.code, patched.body).toBe(200);
      expect(JSON.parse(patched.body).data).toEqual(keyed(NAMES, type));
      const gone = await patch(type, { data: keyed(NAMES, null) });
      expect(JSON.parse(gone.body).data ?? {}).toEqual({});
    }
    const directive = { metadata: { '$setElementOrder/__proto__': [], $patch: { toString: 1 } } };
    expect((await patch('application/strategic-merge-patch+json', directive)).code).toBe(400);
    const clean = await server.send({ method: 'GET', path });
    expect(clean.body).not.toContain('polluted');
  });

  it('and an object where text is expected is refused, not an internal error', async () => {
    const odd = { toString: 1, valueOf: 1 };
    const bodies = [
      { kind: odd },
      { apiVersion: odd },
      { kind: 'ConfigMap', metadata: odd },
      { metadata: { name: odd } },
    ];
    const codes: number[] = [];
    for (const body of bodies) codes.push((await post(`${NS}/configmaps`, body)).code);
    expect(codes).toEqual([400, 400, 422, 400]);
  });
});
