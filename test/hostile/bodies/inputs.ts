// Bad requests for the API server, made from a seed: right bodies with some of their parts replaced by what a hostile
// client would put there, in every form that is read. Never sends anything.

import type { Random } from '../random.ts';
import type { HttpInput } from './server.ts';

/** Names that every object inherits, and others that a look-up or a path could trip over. */
export const TRICKY_NAMES = [
  'constructor',
  'toString',
  '__proto__',
  'hasOwnProperty',
  'valueOf',
  'prototype',
  '__defineGetter__',
  'toJSON',
  'length',
  '',
  '.',
  '..',
  'a/b',
  '\u0000',
  '\ud800',
  'é',
] as const;

const NAMESPACE = '/api/v1/namespaces/default';
const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', labels: { a: 'b' }, annotations: { c: 'd' }, finalizers: ['e.io/f'] },
  spec: {
    containers: [
      {
        name: 'c',
        image: 'i',
        env: [
          { name: 'A', value: 'b' },
          { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        ],
        resources: { limits: { cpu: '1', memory: '1Gi' } },
        ports: [{ containerPort: 80 }],
        volumeMounts: [{ name: 'v', mountPath: '/v' }],
        livenessProbe: { httpGet: { path: '/', port: 80, httpHeaders: [{ name: 'a', value: 'b' }] } },
      },
    ],
    volumes: [{ name: 'v', configMap: { name: 'x', items: [{ key: 'k', path: 'p' }] } }],
    nodeSelector: { a: 'b' },
    tolerations: [{ key: 'a', operator: 'Exists' }],
    priorityClassName: 'system-node-critical',
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'a', whenUnsatisfiable: 'DoNotSchedule' }],
  },
};
const TEMPLATES: readonly [{ path: string; body: object }, ...{ path: string; body: object }[]] = [
  { path: `${NAMESPACE}/pods`, body: POD },
  {
    path: `${NAMESPACE}/configmaps`,
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { k: 'v' }, binaryData: { b: 'AAAA' } },
  },
  {
    path: `${NAMESPACE}/secrets`,
    body: {
      kind: 'Secret',
      metadata: { name: 'a' },
      type: 'kubernetes.io/tls',
      data: { k: 'AAAA' },
      stringData: { s: 't' },
    },
  },
  {
    path: `${NAMESPACE}/services`,
    body: {
      kind: 'Service',
      metadata: { name: 'a' },
      spec: { selector: { a: 'b' }, ports: [{ port: 80, targetPort: 'x' }] },
    },
  },
  {
    path: '/api/v1/nodes',
    body: {
      kind: 'Node',
      metadata: { name: 'n' },
      spec: { taints: [{ key: 'a', effect: 'NoSchedule' }], podCIDRs: ['10.0.0.0/24'] },
      status: { capacity: { cpu: '1' }, conditions: [{ type: 'Ready', status: 'True' }] },
    },
  },
  {
    path: `${NAMESPACE}/persistentvolumeclaims`,
    body: {
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'a' },
      spec: { storageClassName: 's', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
  },
  {
    path: '/apis/storage.k8s.io/v1/csinodes',
    body: {
      kind: 'CSINode',
      metadata: { name: 'n' },
      spec: { drivers: [{ name: 'd', nodeID: 'i', topologyKeys: ['k'] }] },
    },
  },
  {
    path: '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices',
    body: {
      kind: 'EndpointSlice',
      metadata: { name: 'a' },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
      ports: [{ name: 'p', port: 80 }],
    },
  },
  {
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: { kind: 'SelfSubjectAccessReview', spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } },
  },
  {
    path: `${NAMESPACE}/serviceaccounts/default/token`,
    body: { kind: 'TokenRequest', spec: { audiences: ['a'], expirationSeconds: 600 } },
  },
];
const QUERIES = [
  'labelSelector',
  'fieldSelector',
  'continue',
  'limit',
  'resourceVersion',
  'resourceVersionMatch',
  'dryRun',
  'fieldValidation',
  'pretty',
  'includeObject',
  'gracePeriodSeconds',
  'propagationPolicy',
  'timeoutSeconds',
] as const;
const ODD_TEXTS = [
  '1e999999999',
  '-1',
  '99999999999999999999',
  'NaN',
  '0x10',
  '=',
  '!',
  'a in (',
  'a=b,c in (d,e)',
  '(((',
];

export function oddText(random: Random): string {
  switch (random.below(5)) {
    case 0:
      return random.pick(TRICKY_NAMES);
    case 1:
      return random.pick(['a', '-', '.', '1', ' ', '\\', '(', '%', '{']).repeat(1 + random.below(2000));
    case 2:
      return String.fromCharCode(...Array.from({ length: random.below(20) }, () => random.below(0x10000)));
    default:
      return ODD_TEXTS[random.below(ODD_TEXTS.length)] ?? '';
  }
}

export function oddValue(random: Random, depth = 0): unknown {
  switch (random.below(depth > 4 ? 6 : 9)) {
    case 0:
      return null;
    case 1:
      return random.next() < 0.5;
    case 2:
      return random.pick([0, -1, 1.5, 1e308, -0, 2 ** 31, 2 ** 53, 2 ** 63]);
    case 3:
    case 4:
    case 5:
      return oddText(random);
    case 6:
      return Array.from({ length: random.below(4) }, () => oddValue(random, depth + 1));
    case 7: {
      let value: unknown = {};
      for (let level = random.below(200); level > 0; level--) value = random.next() < 0.5 ? [value] : { a: value };
      return value;
    }
    default:
      return Object.fromEntries(
        Array.from({ length: random.below(4) }, () => [random.pick(TRICKY_NAMES), oddValue(random, depth + 1)]),
      );
  }
}

/** A copy of `value` in which some parts are odd. */
export function mutate(value: unknown, random: Random): unknown {
  if (random.next() < 0.05) return oddValue(random);
  if (Array.isArray(value)) {
    const items = value.map((item) => mutate(item, random));
    return random.next() < 0.05 ? [...items, ...items] : items;
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, mutate(item, random)] as const);
  if (random.next() < 0.1) entries.push([oddText(random), oddValue(random)]);
  return Object.fromEntries(entries);
}

/** Text with some characters replaced, cut or doubled. */
export function damage(text: string, random: Random): string {
  if (random.next() < 0.7) return text;
  const at = random.below(text.length + 1);
  const middle = random.pick(['', '{', '}', '[', '"', ':', ',', '\\', '&a ', '*a', '<<: ', '\t', text.slice(0, 50)]);
  return text.slice(0, at) + middle + text.slice(at + random.below(3));
}

function field(number: number, content: Uint8Array): Buffer {
  const head = [number * 8 + 2];
  let length = content.length;
  for (; length > 127; length = Math.floor(length / 128)) head.push((length % 128) + 128);
  return Buffer.concat([Buffer.from([...head, length]), content]);
}

/** Messages inside messages, with field numbers and lengths that are sometimes wrong. */
function oddMessage(random: Random, depth: number): Buffer {
  const fields = Array.from({ length: random.below(6) }, () => {
    if (random.next() < 0.15) return Buffer.from(Array.from({ length: random.below(12) }, () => random.below(256)));
    const inside =
      random.next() < (depth < 3 ? 0.6 : 0.3) && depth < 40
        ? oddMessage(random, depth + 1)
        : Buffer.from(oddText(random));
    return field(1 + random.below(15), inside);
  });
  return Buffer.concat(fields);
}

export function protobuf(random: Random): Buffer {
  const kind = random.pick(['Pod', 'ConfigMap', 'Secret', 'Node', 'DeleteOptions', ...TRICKY_NAMES]);
  const meta = Buffer.concat([field(1, Buffer.from('v1')), field(2, Buffer.from(kind))]);
  return Buffer.concat([Buffer.from('k8s\0'), field(1, meta), field(2, oddMessage(random, 0))]);
}

export function pointer(random: Random): string {
  return random.pick([
    '',
    '/',
    '/metadata/labels/__proto__',
    '/metadata/labels/constructor',
    '/__proto__/polluted',
    '/metadata/__proto__/polluted',
    '/constructor/prototype/polluted',
    '/data/-',
    '/data/k',
    '/metadata/annotations/~1~0',
    `/${oddText(random)}`,
    '/data/0',
    '/metadata',
  ]);
}

function patch(random: Random): HttpInput {
  const path = `${NAMESPACE}/configmaps/patched`;
  if (random.next() < 0.5) {
    const operations = Array.from({ length: random.below(6) }, () => ({
      op: random.pick(['add', 'remove', 'replace', 'move', 'copy', 'test', 'toString']),
      path: pointer(random),
      from: pointer(random),
      value: oddValue(random),
    }));
    const body = damage(JSON.stringify(operations), random);
    return { method: 'PATCH', path, contentType: 'application/json-patch+json', body };
  }
  const directives = {
    $patch: random.pick<unknown>(['replace', 'delete', 'merge', 'odd', 1, {}, { toString: 1 }]),
    $retainKeys: oddValue(random),
    '$setElementOrder/finalizers': oddValue(random),
    '$deleteFromPrimitiveList/finalizers': oddValue(random),
  };
  const chosen = Object.fromEntries(Object.entries(directives).filter(() => random.next() < 0.3));
  const body = {
    metadata: { ...chosen, labels: oddValue(random), finalizers: oddValue(random) },
    data: oddValue(random),
  };
  const contentType = random.pick(['application/merge-patch+json', 'application/strategic-merge-patch+json']);
  return { method: 'PATCH', path, contentType, body: damage(JSON.stringify(mutate(body, random)), random) };
}

function query(random: Random): HttpInput {
  const { path } = random.pick(TEMPLATES);
  const parameters = Array.from({ length: 1 + random.below(4) }, () => {
    const value = oddText(random).slice(0, 1500);
    const key = random.next() < 0.9 ? random.pick(QUERIES) : oddText(random).slice(0, 20);
    return `${encodeURIComponent(key.toWellFormed())}=${encodeURIComponent(value.toWellFormed())}`;
  });
  return {
    method: random.pick(['GET', 'GET', 'DELETE']),
    path: `${path}${random.pick(['', '/constructor', '/%ff'])}?${parameters.join('&')}`,
  };
}

/** YAML of JSON is itself; anchors, aliases and merges are what JSON does not have. */
export function yaml(body: unknown, random: Random): string {
  const text = JSON.stringify(body);
  switch (random.below(4)) {
    case 0:
      return `a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]\nkind: ConfigMap`;
    case 1:
      return `<<: ${text}\n${random.pick(TRICKY_NAMES)}: 1\n? [a]\n: b`;
    case 2:
      return `${'- '.repeat(random.below(3000))}x`;
    default:
      return damage(text, random);
  }
}

/** One bad request. Writes are dry runs, so that each round meets the same server. */
export function badInput(random: Random): HttpInput {
  const kind = random.below(10);
  if (kind < 2) return query(random);
  if (kind < 4) return patch(random);
  const { path, body } = random.pick(TEMPLATES);
  const target = `${path}?dryRun=All&fieldValidation=${random.pick(['Strict', 'Warn', 'Ignore'])}`;
  if (kind === 4) {
    return { method: 'POST', path: target, contentType: 'application/vnd.kubernetes.protobuf', body: protobuf(random) };
  }
  const mutated = mutate(body, random);
  if (kind === 5) {
    return { method: 'POST', path: target, contentType: 'application/yaml', body: yaml(mutated, random) };
  }
  const accept = random.pick(['application/json', 'application/yaml', 'application/json;as=Table;v=v1;g=meta.k8s.io']);
  return {
    method: 'POST',
    path: target,
    contentType: 'application/json',
    accept,
    body: damage(JSON.stringify(mutated), random),
  };
}
