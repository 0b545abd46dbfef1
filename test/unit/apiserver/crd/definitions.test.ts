import { describe, expect, it } from 'vitest';
import { CLEANUP_FINALIZER, definitionOf } from '../../../../apiserver/crd/types.ts';
import { discovery } from '../../../../apiserver/discovery/index.ts';
import { customresourcedefinitions as crds } from '../../../../apiserver/kinds/customresourcedefinitions.ts';
import { deleteObject } from '../../../../apiserver/registry/delete.ts';
import { patchObject } from '../../../../apiserver/registry/patch.ts';
import { updateObject } from '../../../../apiserver/registry/write.ts';
import { makeCa } from '../../../support/tls.ts';
import { ADMIN, failureOf } from '../support.ts';
import { type CrdFixture, crdFixture, WIDGET_SCHEMA, widgets } from './support.ts';

const widget = (name: string, rest: Record<string, unknown> = { spec: { size: 'small' } }) => ({
  metadata: { name },
  ...rest,
});

async function established(fixture: CrdFixture, ...args: Parameters<typeof widgets>): Promise<void> {
  fixture.create(crds, widgets(...args));
  await expect.poll(() => fixture.registry.hasRow('example.com', 'widgets')).toBe(true);
}

const definition = ({ registry }: CrdFixture, name = 'widgets.example.com') =>
  definitionOf({ ...registry.get(crds, '', name).object });
const conditions = (fixture: CrdFixture, name?: string): string[] =>
  (definition(fixture, name).status?.conditions ?? []).map(({ type, status, reason }) => `${type}=${status} ${reason}`);

describe('a definition', () => {
  it('gets its defaults, its names, its conditions, and its rows', async () => {
    const fixture = crdFixture();
    await established(fixture);
    const { spec, status } = definition(fixture);
    expect(spec?.names).toMatchObject({ singular: 'widget', listKind: 'WidgetList' });
    expect(spec?.conversion).toEqual({ strategy: 'None' });
    expect(status).toMatchObject({ storedVersions: ['v1'], acceptedNames: { plural: 'widgets', kind: 'Widget' } });
    expect(conditions(fixture)).toEqual(['NamesAccepted=True NoConflicts', 'Established=True InitialNamesAccepted']);
    expect(fixture.row()).toMatchObject({ kind: 'Widget', namespaced: true, schema: 'com.example.v1.Widget' });
  });

  it.each<[string, Parameters<typeof widgets>[0], string]>([
    [
      'another name',
      { name: 'gadgets.example.com' },
      'metadata.name: Invalid value: "gadgets.example.com": must be spec.names.plural+"."+spec.group',
    ],
    [
      'no scope',
      { spec: { scope: 'Global' } },
      'spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"',
    ],
    ['no storage version', { version: { storage: false } }, 'must have exactly one version marked as storage version'],
    ['no schema', { version: { schema: undefined } }, 'spec.versions[0].schema.openAPIV3Schema: Required value'],
    [
      'kind as list kind',
      { names: { listKind: 'Widget' } },
      'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same',
    ],
    [
      'a column without a path',
      { version: { additionalPrinterColumns: [{ name: 'A', type: 'string', jsonPath: 'spec' }] } },
      'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path starting with .',
    ],
    [
      'a scale elsewhere',
      { version: { subresources: { scale: { specReplicasPath: '.status.x', statusReplicasPath: '.status.r' } } } },
      'spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path under .spec',
    ],
    [
      'a selectable field that is none',
      { version: { selectableFields: [{ jsonPath: '.spec.colour' }] } },
      'spec.selectableFields[0].jsonPath: Invalid value: ".spec.colour": is an invalid path: does not refer to a valid field',
    ],
    [
      'a protected group',
      { spec: { group: 'apps.k8s.io' }, name: 'widgets.apps.k8s.io' },
      'metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation',
    ],
    [
      'a webhook without a client',
      { spec: { conversion: { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'] } } } },
      'spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook',
    ],
  ])('with %s is refused', (_name, overrides, message) => {
    expect(failureOf(() => crdFixture().create(crds, widgets(overrides))).message).toContain(message);
  });

  const webhook = (clientConfig: object): object => ({
    strategy: 'Webhook',
    webhook: { clientConfig, conversionReviewVersions: ['v1'] },
  });
  const HTTPS = `spec.conversion.webhookClientConfig.url: Invalid value: "": 'https' is the only allowed URL scheme; desired format: https://host[/path]`;
  const HOST =
    'spec.conversion.webhookClientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]';
  const EMPTY_WARNING = 'spec.versions[0].deprecationWarning: Invalid value: "": ';
  it.each<[string, Parameters<typeof widgets>[0], readonly string[]]>([
    ['an empty URL', { spec: { conversion: webhook({ url: '' }) } }, [HTTPS, HOST]],
    ['a scheme alone for a URL', { spec: { conversion: webhook({ url: 'https://' }) } }, [HOST]],
    [
      'an empty URL beside a service',
      { spec: { conversion: webhook({ url: '', service: { namespace: 'a', name: 'b' } }) } },
      ['spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required'],
    ],
    [
      'an empty warning',
      { version: { deprecated: true, deprecationWarning: '' } },
      [`${EMPTY_WARNING}must not be an empty string`],
    ],
    [
      'an empty warning about nothing',
      { version: { deprecationWarning: '' } },
      [`${EMPTY_WARNING}can only be set for deprecated versions`],
    ],
  ])('with %s is refused: it is not absent', (_name, overrides, causes) => {
    const { message } = failureOf(() => crdFixture().create(crds, widgets(overrides)));
    const all = causes.length === 1 ? causes.join('') : `[${causes.join(', ')}]`;
    expect(message).toBe(`CustomResourceDefinition.apiextensions.k8s.io "widgets.example.com" is invalid: ${all}`);
  });

  const bundle = (pem: string): object =>
    webhook({ url: 'https://hook.example/convert', caBundle: Buffer.from(pem).toString('base64') });
  const replace = (fixture: CrdFixture, conversion: object): unknown =>
    patchObject(
      fixture.registry,
      crds,
      '',
      'widgets.example.com',
      { spec: { conversion } },
      'application/merge-patch+json',
      ADMIN,
    );

  it('whose webhook has a bad bundle of CAs is not established before it has a good one', async () => {
    const fixture = crdFixture();
    fixture.create(crds, widgets({ spec: { conversion: bundle('no PEM') } }));
    await expect
      .poll(() => conditions(fixture))
      .toEqual(['NamesAccepted=True NoConflicts', 'Established=False InvalidCABundle']);
    expect(fixture.registry.hasRow('example.com', 'widgets')).toBe(false);
    replace(fixture, bundle((await makeCa()).cert));
    await expect.poll(() => fixture.registry.hasRow('example.com', 'widgets')).toBe(true);
  });

  it('that is established gets no bad bundle of CAs', async () => {
    const fixture = crdFixture();
    await established(fixture);
    const { cert } = await makeCa();
    const bad = cert.replace(/\n[^-]{40}/, '\nAAAA');
    for (const [pem, why] of [
      ['no PEM', 'unable to parse bytes as PEM block'],
      ['-----BEGIN KEY-----\nYQ==\n-----END KEY-----\n', 'no valid certificate authority data seen'],
      [bad, 'failed to parse certificate: x509: malformed certificate'],
    ] as const) {
      const shown = JSON.stringify(Buffer.from(pem).toString('base64'));
      expect(failureOf(() => replace(fixture, bundle(pem))).message).toContain(
        `spec.conversion.webhookClientConfig.caBundle: Invalid value: ${shown}: unable to load root certificates: ${why}`,
      );
    }
    for (const good of [webhook({ url: 'https://hook.example/convert' }), bundle(`${bad}${cert}`)])
      replace(fixture, good);
    expect(definition(fixture).spec?.conversion?.strategy).toBe('Webhook');
  });

  it('whose names another one has is not established until they are free', async () => {
    const fixture = crdFixture();
    await established(fixture);
    fixture.create(crds, widgets({ name: 'gadgets.example.com', names: { plural: 'gadgets', kind: 'Widget' } }));
    await expect
      .poll(() => conditions(fixture, 'gadgets.example.com'))
      .toEqual(['NamesAccepted=False SingularConflict', 'Established=False NotAccepted']);
    expect(fixture.registry.hasRow('example.com', 'gadgets')).toBe(false);
    deleteObject(fixture.registry, crds, '', 'widgets.example.com', { dryRun: false });
    await expect.poll(() => fixture.registry.hasRow('example.com', 'gadgets')).toBe(true);
  });

  it('keeps scope and kind once established, and versions that objects are stored in', async () => {
    const fixture = crdFixture();
    await established(fixture);
    const change = (path: string, value: unknown): string =>
      failureOf(() =>
        patchObject(
          fixture.registry,
          crds,
          '',
          'widgets.example.com',
          [{ op: 'replace', path, value }],
          'application/json-patch+json',
          ADMIN,
        ),
      ).message;
    expect(change('/spec/scope', 'Cluster')).toContain('spec.scope: Invalid value: "Cluster": field is immutable');
    expect(change('/spec/versions/0/name', 'v2')).toContain(
      'missing from spec.versions; v1 was previously a storage version',
    );
  });

  it('that is deleted goes after its objects, and creates none meanwhile', async () => {
    const fixture = crdFixture();
    await established(fixture);
    const row = fixture.row();
    for (const name of ['a', 'b']) fixture.create(row, widget(name), 'ns');
    fixture.create(
      row,
      { metadata: { name: 'held', finalizers: ['example.com/hold'] }, spec: { size: 'large' } },
      'ns',
    );
    deleteObject(fixture.registry, crds, '', 'widgets.example.com', { dryRun: false });
    await expect.poll(() => fixture.registry.find(row, 'ns', 'b')).toBeUndefined();
    expect(definition(fixture).metadata.finalizers).toEqual([CLEANUP_FINALIZER]);
    expect(conditions(fixture)).toContain('Terminating=True InstanceDeletionPending');
    expect(fixture.row().custom?.noCreate).toMatch('create not allowed');
    patchObject(
      fixture.registry,
      fixture.row(),
      'ns',
      'held',
      { metadata: { finalizers: null } },
      'application/merge-patch+json',
      ADMIN,
    );
    await expect.poll(() => fixture.registry.find(crds, '', 'widgets.example.com')).toBeUndefined();
    await expect.poll(() => fixture.registry.hasRow('example.com', 'widgets')).toBe(false);
    expect(fixture.log).toEqual([]);
  });
});

describe('a custom object', () => {
  it('has any finalizer, and a warning of a new one without a domain', async () => {
    const fixture = crdFixture();
    await established(fixture);
    const row = fixture.row();
    const object = fixture.create(
      row,
      {
        metadata: { name: 'a', finalizers: ['mine', 'my.own', 'example.com/x', 'orphan'] },
        spec: { size: 'small' },
      },
      'ns',
    );
    expect(object.metadata.finalizers).toHaveLength(4);
    const added = {
      ...object,
      metadata: { ...object.metadata, finalizers: [...(object.metadata.finalizers ?? []), 'new'] },
    };
    expect(row.strategy.validateUpdate?.(added, object)).toEqual([]);
    expect(row.strategy.warnings?.(object)).toEqual([
      'metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers',
      'metadata.finalizers: "my.own": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers',
    ]);
    expect(row.strategy.warnings?.(added, object)).toEqual([
      'metadata.finalizers: "new": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers',
    ]);
  });

  it('is defaulted, validated, and counts its generations', async () => {
    const fixture = crdFixture();
    await established(fixture);
    const row = fixture.row();
    expect(fixture.create(row, widget('a'), 'ns')).toMatchObject({
      spec: { size: 'small', replicas: 1 },
      metadata: { generation: 1 },
    });
    expect(failureOf(() => fixture.create(row, widget('b', { spec: { size: 'huge' } }), 'ns'))).toEqual({
      code: 422,
      reason: 'Invalid',
      message:
        'Widget.example.com "b" is invalid: spec.size: Unsupported value: "huge": supported values: "small", "large"',
    });
    expect(failureOf(() => fixture.create(row, widget('c', { spec: { size: 'small', other: 1 } }), 'ns')).message).toBe(
      'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.other"',
    );
    const patch = (value: unknown) =>
      patchObject(fixture.registry, row, 'ns', 'a', value, 'application/merge-patch+json', ADMIN).object;
    expect(patch({ metadata: { labels: { a: 'b' } } }).metadata.generation).toBe(1);
    expect(patch({ spec: { replicas: 2 } }).metadata.generation).toBe(2);
    // Without a status subresource the status is a field like any other.
    expect(patch({ status: { ready: true } })).toMatchObject({ status: { ready: true }, metadata: { generation: 3 } });
  });

  it('with a status subresource keeps its status through updates', async () => {
    const fixture = crdFixture();
    await established(fixture, { version: { subresources: { status: {} } } });
    const row = fixture.row();
    const created = fixture.create(row, widget('a', { spec: { size: 'small' }, status: { ready: true } }), 'ns');
    expect(created['status']).toBeUndefined();
    const body = { ...structuredClone(created), status: { ready: true } };
    expect(updateObject(fixture.registry, row, 'ns', 'a', body, ADMIN).object['status']).toBeUndefined();
  });

  it('is seen in each served version, with the defaults of that version', async () => {
    const fixture = crdFixture();
    const schema = {
      openAPIV3Schema: {
        ...WIDGET_SCHEMA,
        properties: { ...WIDGET_SCHEMA.properties, extra: { type: 'string', default: 'x' } },
      },
    };
    const versions = [
      { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: WIDGET_SCHEMA } },
      { name: 'v2beta1', served: true, storage: false, deprecated: true, schema },
      { name: 'v3', served: false, storage: false, schema },
    ];
    await established(fixture, { spec: { versions } });
    expect(fixture.registry.row('example.com', 'v3', 'widgets')).toBeUndefined();
    expect(fixture.registry.rowOf('example.com', 'widgets').version).toBe('v1');
    fixture.create(fixture.row('v2beta1'), widget('a'), 'ns');
    expect(fixture.registry.get(fixture.row('v1'), 'ns', 'a').object).toMatchObject({
      apiVersion: 'example.com/v1',
      extra: 'x',
    });
    fixture.create(fixture.row('v1'), widget('b'), 'ns');
    expect(fixture.registry.get(fixture.row('v2beta1'), 'ns', 'b').object).toMatchObject({
      apiVersion: 'example.com/v2beta1',
      extra: 'x',
    });
    expect(fixture.row('v2beta1').warning).toBe('example.com/v2beta1 Widget is deprecated');
  });
});

it('discovery and OpenAPI show a kind while it is defined', async () => {
  const fixture = crdFixture();
  const serve = discovery(fixture.registry.rows);
  const get = (path: string) => {
    const document = serve(path, 'application/json', new URLSearchParams());
    return document === undefined ? undefined : JSON.parse(String(document.body));
  };
  expect(get('/apis/example.com')).toBeUndefined();
  await established(fixture, { names: { shortNames: ['wd'] } });
  expect(get('/apis/example.com/v1').resources).toMatchObject([
    { name: 'widgets', shortNames: ['wd'], kind: 'Widget' },
  ]);
  const before = get('/openapi/v3').paths['apis/example.com/v1'].serverRelativeURL;
  const { schemas } = get('/openapi/v3/apis/example.com/v1').components;
  expect(schemas['com.example.v1.Widget'].properties.spec.properties.replicas).toMatchObject({
    type: 'integer',
    default: 1,
  });
  expect(get('/openapi/v2').definitions['com.example.v1.Widget'].properties.metadata.$ref).toContain('ObjectMeta');
  const unrelated = get('/openapi/v3').paths['api/v1'].serverRelativeURL;
  const change = [{ op: 'add', path: '/spec/versions/0/schema/openAPIV3Schema/description', value: 'A widget.' }];
  patchObject(fixture.registry, crds, '', 'widgets.example.com', change, 'application/json-patch+json', ADMIN);
  await expect.poll(() => get('/openapi/v3').paths['apis/example.com/v1'].serverRelativeURL).not.toBe(before);
  expect(get('/openapi/v3').paths['api/v1'].serverRelativeURL).toBe(unrelated);
  deleteObject(fixture.registry, crds, '', 'widgets.example.com', { dryRun: false });
  await expect.poll(() => get('/apis/example.com')).toBeUndefined();
  expect(get('/openapi/v3').paths['apis/example.com/v1']).toBeUndefined();
});
