import { describe, expect, it } from 'vitest';
import { checkBodyAs } from '../../../../apiserver/schema/decode.ts';
import { childNode, itemNode, mergeInfo, schemaNode } from '../../../../apiserver/schema/definitions.ts';
import { duplicateFields } from '../../../../apiserver/schema/duplicates.ts';
import { canonicalQuantity, quantityError } from '../../../../apiserver/schema/quantity.ts';

const POD = 'io.k8s.api.core.v1.Pod';

function decodePod(body: Record<string, unknown>) {
  const object = structuredClone(body);
  return { ...checkBodyAs(POD, object), object };
}

describe('a body of the wrong JSON type is refused in the words of the real server', () => {
  it.each([
    [{ spec: 'x' }, 'json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec'],
    [
      { spec: { containers: 'web' } },
      'json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container',
    ],
    [
      { spec: { containers: [{ env: [{ name: 'A', value: 1 }] }] } },
      'json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string',
    ],
    [
      { spec: { containers: [{ args: ['a', true] }] } },
      'json: cannot unmarshal bool into Go struct field Container.spec.containers.args of type string',
    ],
    [
      { metadata: { labels: { a: 1 } } },
      'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
    ],
    [
      { spec: { priority: 1.5 } },
      'json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32',
    ],
    [
      { spec: { priority: 3000000000 } },
      'json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority of type int32',
    ],
    [
      { spec: { containers: [{ resources: { limits: { cpu: 'lots' } } }] } },
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
    [
      { spec: { containers: [{ livenessProbe: { httpGet: { port: true } } }] } },
      'json: cannot unmarshal bool into Go value of type int32',
    ],
    [
      { metadata: { creationTimestamp: 'yesterday' } },
      'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
    ],
  ])('%j', (body, message) => {
    expect(decodePod(body).fatal).toBe(message);
  });

  it('bytes that are not base64 are named by position', () => {
    expect(checkBodyAs('io.k8s.api.core.v1.Secret', { data: { a: 'ab!d' } }).fatal).toBe(
      'illegal base64 data at input byte 2',
    );
  });
});

describe('unknown and duplicate fields', () => {
  it('are named by their whole path and dropped', () => {
    const { strict, object } = decodePod({ spec: { foo: 1, containers: [{ name: 'a', imagee: 'x' }] } });
    expect(strict).toEqual(['unknown field "spec.foo"', 'unknown field "spec.containers[0].imagee"']);
    expect(object).toEqual({ spec: { containers: [{ name: 'a' }] } });
  });

  it('are case-sensitive', () => {
    expect(decodePod({ spec: { NodeName: 'a' } }).strict).toEqual(['unknown field "spec.NodeName"']);
  });

  it('named like a method of every object are unknown too', () => {
    expect(decodePod({ spec: { constructor: 'a' } }).strict).toEqual(['unknown field "spec.constructor"']);
  });

  it('that stand twice in the text are found there', () => {
    const text = '{"spec":{"nodeName":"a", "containers":[{}, {"name":"x","name":"\\"}","name":"z"}],"nodeName":"b"}}';
    expect(duplicateFields(text)).toEqual(['spec.containers[1].name', 'spec.nodeName']);
    expect(checkBodyAs(POD, JSON.parse(text), text).strict[1]).toBe('duplicate field "spec.nodeName"');
  });

  it('are in order of appearance; an unknown one that stands twice is only unknown, and nothing below it is read', () => {
    const text = '{"spec":{"a":{"x":1,"x":2},"a":1,"nodeName":"a","nodeName":"b","z":1,"hostname":"a","hostname":"b"}}';
    expect(checkBodyAs(POD, JSON.parse(text), text).strict).toEqual([
      'unknown field "spec.a"',
      'duplicate field "spec.nodeName"',
      'unknown field "spec.z"',
      'duplicate field "spec.hostname"',
    ]);
  });
});

describe('what is stored is what Go would have written', () => {
  it.each([
    ['null is no value', { metadata: { creationTimestamp: null, name: 'a' } }, { metadata: { name: 'a' } }],
    ['empty lists and maps vanish', { metadata: { labels: {}, finalizers: [] } }, { metadata: {} }],
    ['a required list stays', { spec: { containers: [] } }, { spec: { containers: [] } }],
    ['an empty struct stays', { spec: { volumes: [{ emptyDir: {} }] } }, { spec: { volumes: [{ emptyDir: {} }] } }],
    ['an empty string vanishes', { spec: { nodeName: '' } }, { spec: {} }],
    ['an empty string behind a pointer stays', { spec: { runtimeClassName: '' } }, { spec: { runtimeClassName: '' } }],
    ['hostNetwork: false vanishes', { spec: { hostNetwork: false } }, { spec: {} }],
    [
      'enableServiceLinks: false stays',
      { spec: { enableServiceLinks: false } },
      { spec: { enableServiceLinks: false } },
    ],
    [
      'a null in a map of strings is the empty string',
      { metadata: { labels: { a: null } } },
      { metadata: { labels: { a: '' } } },
    ],
    [
      'times are in UTC and whole seconds',
      { metadata: { creationTimestamp: '2024-05-01T12:00:00.5+02:00' } },
      { metadata: { creationTimestamp: '2024-05-01T10:00:00Z' } },
    ],
    [
      'quantities are canonical, numbers too',
      { spec: { overhead: { cpu: 0.5, memory: '1024Mi' } } },
      { spec: { overhead: { cpu: '500m', memory: '1Gi' } } },
    ],
    [
      'raw fields are kept as they are',
      { metadata: { managedFields: [{ fieldsV1: { 'f:metadata': { '.': {} } } }] } },
      { metadata: { managedFields: [{ fieldsV1: { 'f:metadata': { '.': {} } } }] } },
    ],
  ])('%s', (_name, body, stored) => {
    const { fatal, strict, object } = decodePod(body);
    expect({ fatal, strict }).toEqual({ fatal: undefined, strict: [] });
    expect(object).toEqual(stored);
  });

  it('micro times keep six digits', () => {
    const lease = { spec: { renewTime: '2024-05-01T12:00:00.1234567Z' } };
    checkBodyAs('io.k8s.api.coordination.v1.Lease', lease);
    expect(lease.spec.renewTime).toBe('2024-05-01T12:00:00.123456Z');
  });
});

describe('quantities have one canonical form', () => {
  it.each([
    ['1', '1'],
    ['1000m', '1'],
    ['1500m', '1500m'],
    ['0.1', '100m'],
    ['1000', '1k'],
    ['1024', '1024'],
    ['1024Ki', '1Mi'],
    ['1.5Gi', '1536Mi'],
    ['0.5Mi', '512Ki'],
    ['1000Ki', '1000Ki'],
    ['0.5Ki', '512'],
    ['1e3', '1e3'],
    ['12e6', '12e6'],
    ['0', '0'],
    ['0Mi', '0'],
    ['-1000', '-1k'],
    ['0.0000000001', '1n'],
    ['100000000000000000000', '9223372036854775807'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalQuantity(text)).toBe(canonical);
  });

  it.each([
    ['abc', /must match the regular expression/],
    ['1.2.3', /unable to parse numeric part/],
    ['1Kx', /must match the regular expression/],
    ['1KKi', /unable to parse quantity's suffix/],
    [' 1', /must match the regular expression/],
  ])('%s is none', (text, message) => {
    expect(quantityError(text)).toMatch(message);
  });
});

describe('strategic merge facts', () => {
  it.each([
    [['spec', 'containers'], 'name'],
    [['spec', 'containers', 'ports'], 'containerPort'],
    [['spec', 'containers', 'env'], 'name'],
    [['spec', 'initContainers', 'volumeMounts'], 'mountPath'],
    [['spec', 'volumes'], 'name'],
    [['spec', 'imagePullSecrets'], 'name'],
    [['spec', 'hostAliases'], 'ip'],
    [['spec', 'topologySpreadConstraints'], 'topologyKey'],
    [['status', 'conditions'], 'type'],
    [['metadata', 'ownerReferences'], 'uid'],
  ])('%j merges by %s', (path, key) => {
    expect(mergeInfo(POD, path)).toMatchObject({ strategy: expect.arrayContaining(['merge']), key });
  });

  it('finalizers merge as a set, tolerations and args are replaced', () => {
    expect(mergeInfo(POD, ['metadata', 'finalizers'])).toEqual({ strategy: ['merge'] });
    expect(mergeInfo(POD, ['spec', 'tolerations'])).toBeUndefined();
    expect(mergeInfo(POD, ['spec', 'containers', 'args'])).toBeUndefined();
  });

  it('volumes also retain keys', () => {
    expect(mergeInfo(POD, ['spec', 'volumes'])?.strategy).toContain('retainKeys');
  });

  it('a walk says what each place is', () => {
    const spec = childNode(schemaNode(POD), 'spec');
    const containers = childNode(spec, 'containers');
    expect([spec.shape, containers.shape, itemNode(containers).shape]).toEqual(['object', 'list', 'object']);
    expect(childNode(spec, 'nodeSelector').shape).toBe('map');
    expect(childNode(spec, 'nodeName').shape).toBe('leaf');
    expect(childNode(spec, 'nothing').shape).toBe('unknown');
  });
});
