// Objects of any kind, made from a seed by the kind's own schema: of the right types and mostly plausible, so that they get as
// far as validation and the store, with something odd here and there. Never sends anything.

import type { ResourceKind } from '../../../apiserver/kinds/resource.ts';
import { definition } from '../../../apiserver/schema/definitions.ts';
import { getOwn } from '../../../lib/own-property.ts';
import { oddText, oddValue } from '../bodies/inputs.ts';
import type { Random } from '../random.ts';

/** What is at the end of the paths below; few, so that requests meet. */
export const NAMES = ['one', 'two', 'three', 'default', 'web-0', 'keeper'] as const;
export const SANDBOX = 'sandbox';

/** How odd a generated object is: the part of its values that are replaced. */
export interface Oddity {
  readonly values: number;
  readonly fields: number;
}

const DEEPEST = 9;
const TEXTS = [
  ...['a', 'web', 'one', 'default', 'v1', 'apps/v1', 'Pod', 'Always', 'None', 'Exists', 'In', 'Equals', 'TCP'],
  ...['10.0.0.1', '10.0.0.0/24', 'fd00::1', 'a.example.com', 'example.com/key', '/path', '1', '*', '', '5m', '100%'],
  ...['*/5 * * * *', 'kubernetes.io/tls', 'metadata.name', 'object.spec.size > 1', 'RollingUpdate', 'ReadWriteOnce'],
] as const;
const QUANTITIES = ['0', '1', '500m', '64Mi', '1Gi', '1e3', '-1', '0.5', '9223372036854775807', '1.5Ei'] as const;
const NUMBERS = [0, 1, 2, 3, 10, 80, 443, 600, 65_535, -1, 2 ** 31 - 1] as const;
const TIMES = ['2030-01-01T00:00:00Z', '1970-01-01T00:00:00Z', '0001-01-01T00:00:00Z', '2030-01-01T00:00:00.000001Z'];
/** Fields of strings in which few texts make sense. */
const BY_FIELD: Readonly<Record<string, readonly [string, ...string[]]>> = {
  name: ['one', 'two', 'three', 'web'],
  namespace: [SANDBOX, 'one', 'kube-system'],
  image: ['image:1', 'registry.example.com/image'],
  key: ['app', 'tier', 'example.com/key'],
  operator: ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Equal'],
  restartPolicy: ['Always', 'Never', 'OnFailure'],
  mountPath: ['/data', '/data/one'],
  apiVersion: ['v1', 'apps/v1'],
  kind: ['Pod', 'Deployment', 'ConfigMap'],
  fieldPath: ['metadata.name', 'spec.nodeName', 'status.podIP'],
  serviceName: ['web'],
  schedule: ['*/5 * * * *', '@daily'],
  claimName: ['one'],
};

function scalar(type: string, field: string, random: Random): unknown {
  switch (type) {
    case 'string':
      return random.next() < 0.75 ? random.pick(getOwn(BY_FIELD, field) ?? TEXTS) : random.pick(TEXTS);
    case 'bool':
      return random.next() < 0.5;
    case 'int32':
    case 'int64':
      return random.pick(NUMBERS);
    case 'double':
      return random.pick([0, 0.5, -1.5]);
    case 'quantity':
      return random.pick(QUANTITIES);
    case 'intstr':
      return random.pick([1, 80, '50%', 'http', '-1%']);
    case 'time':
    case 'microtime':
      return TIMES[random.below(TIMES.length)];
    case 'bytes':
      return random.pick(['AAAA', '', 'YQ==']);
    default:
      return random.pick<unknown>([{ a: 1 }, {}, [], 'raw', { kind: 'ConfigMap', metadata: { name: 'one' } }]);
  }
}

/** A value of the schema's type. */
export function typedValue(type: string, field: string, random: Random, oddity: Oddity, depth = 0): unknown {
  if (random.next() < oddity.values) return oddValue(random);
  if (type.startsWith('[]')) {
    const count = depth > DEEPEST ? 0 : 1 + random.below(random.next() < 0.9 ? 2 : 4);
    return Array.from({ length: count }, () => typedValue(type.slice(2), field, random, oddity, depth + 1));
  }
  if (type.startsWith('map:')) {
    const keys = ['app', 'tier', 'cpu', 'memory', 'storage', 'example.com/key'] as const;
    const count = random.below(3);
    const entry = () => [random.pick(keys), typedValue(type.slice(4), field, random, oddity, depth + 1)] as const;
    return Object.fromEntries(Array.from({ length: count }, entry));
  }
  return type.startsWith('#') ? fieldsOf(type.slice(1), random, oddity, depth) : scalar(type, field, random);
}

function fieldsOf(schema: string, random: Random, oddity: Oddity, depth: number): Record<string, unknown> {
  const { fields, required = [], enums } = definition(schema);
  const object: Record<string, unknown> = {};
  const share = depth > DEEPEST ? 0 : depth < 2 ? 0.7 : 0.15;
  for (const [field, type] of Object.entries(fields)) {
    if (random.next() >= (required.includes(field) ? 0.97 : share)) continue;
    const known = getOwn(enums, field) ?? [];
    const [first, ...rest] = known;
    const isEnum = first !== undefined && type === 'string' && random.next() < 0.9;
    object[field] = isEnum ? random.pick([first, ...rest]) : typedValue(type, field, random, oddity, depth + 1);
  }
  if (random.next() < oddity.fields) object[oddText(random).slice(0, 40)] = oddValue(random);
  return object;
}

function metadataOf(random: Random, row: Pick<ResourceKind, 'namespaced'>, name: string): Record<string, unknown> {
  const metadata: Record<string, unknown> = random.next() < 0.05 ? { generateName: `${name}-` } : { name };
  if (row.namespaced && random.next() < 0.5) metadata['namespace'] = random.next() < 0.97 ? SANDBOX : 'outside';
  if (random.next() < 0.5) metadata['labels'] = { app: random.pick(['a', 'b']) };
  if (random.next() < 0.1) metadata['finalizers'] = ['example.com/wait'];
  if (random.next() < 0.1) metadata['annotations'] = { note: oddText(random).slice(0, 200) };
  if (random.next() < 0.05) metadata['resourceVersion'] = String(random.below(100));
  if (random.next() < 0.05) metadata['ownerReferences'] = [oddValue(random)];
  if (random.next() < 0.03)
    metadata['managedFields'] = [{ manager: 'x', operation: 'Apply', fieldsV1: oddValue(random) }];
  return metadata;
}

/** A kind that requests are made for; a custom kind has no schema here. */
export type Target = Pick<ResourceKind, 'group' | 'version' | 'kind' | 'plural' | 'namespaced' | 'subresources'> & {
  readonly schema?: string;
};

/** An object of the kind, by default rather plausible. */
export function objectOf(target: Target, name: string, random: Random, oddity: Oddity): Record<string, unknown> {
  const { group, version, kind, schema } = target;
  const custom = { spec: { size: random.pick([1, 5, 50, -1, 'x']), tags: [oddText(random)], extra: oddValue(random) } };
  const fields = schema === undefined ? custom : fieldsOf(schema, random, oddity, 0);
  const apiVersion = group === '' ? version : `${group}/${version}`;
  const object = { ...fields, apiVersion, kind, metadata: metadataOf(random, target, name) };
  if (random.next() < oddity.values)
    Object.assign(object, random.pick<object>([{ kind: 'Pod' }, { apiVersion: 7 }, { metadata: null }]));
  return object;
}
