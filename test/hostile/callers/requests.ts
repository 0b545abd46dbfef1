// Generated requests: any verb on any resource, with selectors, subresources, bodies, paths and headers that an attacker
// might try. Each carries its intention, so that access can be checked without parsing it again.

import type { Random } from '../random.ts';
import {
  apiVersionOf,
  chance,
  change,
  changeBody,
  createBody,
  KIND_NAMES,
  type Kind,
  kind,
  pod,
  token,
} from './bodies.ts';
import { NAMESPACES, NODES, type World } from './world.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

export interface HostileRequest {
  readonly verb: Verb;
  readonly method: string;
  readonly path: string;
  /** "pods", "leases.coordination.k8s.io", "pods/status"; '' for a path that is no resource's. */
  readonly resource: string;
  readonly namespace: string;
  /** Of the URL, or of the object that is created. */
  readonly name: string;
  readonly body?: unknown;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Whether the body has what only an administrator may write there. */
  readonly overreaches: boolean;
  /** The name of the pod a token is to be bound to; '' for none. */
  readonly boundTo?: string;
}

const KINDS: readonly Kind[] = [
  kind('', 'secrets', true, 10),
  kind('', 'configmaps', true, 4),
  kind('', 'pods', true, 10, 'status', 'eviction', 'binding', 'log', 'exec', 'ephemeralcontainers', 'resize', 'proxy'),
  kind('', 'nodes', false, 6, 'status', 'proxy'),
  kind('', 'serviceaccounts', true, 4, 'token', 'token', 'token'),
  kind('', 'persistentvolumeclaims', true, 3, 'status'),
  kind('', 'persistentvolumes', false, 3, 'status'),
  kind('storage.k8s.io', 'volumeattachments', false, 2, 'status'),
  kind('storage.k8s.io', 'csinodes', false, 2),
  kind('coordination.k8s.io', 'leases', true, 3),
  kind('', 'namespaces', false, 1, 'status', 'finalize'),
  kind('', 'services', true, 1, 'status'),
  kind('', 'events', true, 1),
  kind('', 'endpoints', true, 1),
  kind('storage.k8s.io', 'csidrivers', false, 1),
  kind('storage.k8s.io', 'storageclasses', false, 1),
  kind('node.k8s.io', 'runtimeclasses', false, 1),
  kind('scheduling.k8s.io', 'priorityclasses', false, 1),
];
const WEIGHTED = KINDS.flatMap((one) => Array.from({ length: one.weight }, () => one));
const REVIEWS = [
  'authorization.k8s.io/v1/selfsubjectaccessreviews',
  'authorization.k8s.io/v1/selfsubjectrulesreviews',
  'authorization.k8s.io/v1/subjectaccessreviews',
  'authentication.k8s.io/v1/selfsubjectreviews',
  'authentication.k8s.io/v1/tokenreviews',
] as const;
const VERBS: readonly [Verb, ...Verb[]] = [
  ...(['get', 'get', 'get', 'list', 'list', 'create', 'create', 'update', 'patch', 'patch', 'delete'] as const),
  'deletecollection',
];
const METHODS: Readonly<Record<Verb, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
};
const PATHS = [
  '/api',
  '/apis',
  '/api/v1',
  '/openapi/v2',
  '/openapi/v3',
  '/version',
  '/healthz',
  '/readyz',
  '/metrics',
  '/',
  '/logs',
  '/debug/pprof',
  '/openid/v1/jwks',
  '/api/v1/',
  '/api//v1/secrets',
  '/apis/v1/secrets',
] as const;

function selector(random: Random): string {
  const node = random.pick(NODES);
  return random.pick([
    () => `spec.nodeName=${node}`,
    () => `spec.nodeName==${node}`,
    () => `spec.nodeName!=${node}`,
    () => `spec.nodeName=${node},metadata.name=pod-${random.pick(NODES)}`,
    () =>
      `metadata.name=${random.pick(['shared', 'nobody', `vol-${node}`, `env-${node}`, `pod-${node}`, `claim-${node}`, node])}`,
    () => `metadata.name!=${random.pick(['shared', 'x'])}`,
    () => `metadata.name=vol-${node},metadata.name=unidentified`,
    () => `metadata.namespace=${random.pick(NAMESPACES)}`,
    () => `spec.nodeName=${node},spec.nodeName=${random.pick(NODES)}`,
    () => random.pick(['=', 'spec.nodeName', 'spec.nodeName=', ',', 'a=b=c', '\\', 'constructor=x', '__proto__=x']),
  ])();
}

function query(random: Random, verb: Verb): string {
  const parts = new URLSearchParams();
  const collection = verb === 'list' || verb === 'watch' || verb === 'deletecollection';
  if (verb === 'watch') parts.set('watch', '1');
  if (collection && chance(random, 0.6)) parts.append('fieldSelector', selector(random));
  if (collection && chance(random, 0.1)) parts.append('fieldSelector', selector(random));
  if (collection && chance(random, 0.2)) parts.set('labelSelector', random.pick(['a=b', '!a', 'a in (b)', 'a']));
  if (collection && chance(random, 0.2)) parts.set('limit', String(random.below(4)));
  if (verb === 'watch' && chance(random, 0.5)) parts.set('resourceVersion', random.pick(['0', '1', '5']));
  if (chance(random, 0.1)) parts.set('includeObject', random.pick(['Object', 'Metadata', 'None']));
  if (chance(random, 0.1)) parts.set('dryRun', 'All');
  if (chance(random, 0.1)) parts.set('pretty', 'true');
  if (verb === 'get' && chance(random, 0.1)) parts.set('watch', 'true');
  const text = parts.toString();
  return text === '' ? '' : `?${text}`;
}

/** The same path in another writing. */
function disguise(path: string, random: Random): string {
  const [place = '', search] = path.split('?');
  const rest = search === undefined ? '' : `?${search}`;
  return random.pick([
    () => `${place}/${rest}`,
    () =>
      `${place.replace(/[a-z]/g, (letter) => (chance(random, 0.3) ? `%${letter.charCodeAt(0).toString(16)}` : letter)).replace(/^\/%61pi/, '/api')}${rest}`,
    () => `${place.replace('/namespaces', '//namespaces')}${rest}`,
    () => `${place.replace('/api/v1/', '/api/v1/watch/')}${rest}`,
    () => `${place.toUpperCase()}${rest}`,
    () => `${place.replace('/api/v1', '/api/v1/../v1')}${rest}`,
    () => `${place}%2f..${rest}`,
    () => `${place}%00${rest}`,
    () => `/${place}${rest}`,
  ])();
}

function accept(random: Random): Record<string, string> {
  if (!chance(random, 0.3)) return {};
  return {
    accept: random.pick([
      'application/json;as=Table;v=v1;g=meta.k8s.io',
      'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json',
      'application/yaml',
      'text/html',
      '*/*',
    ]),
  };
}

/** Impersonation headers of a request; mostly none. */
function impersonation(random: Random): Record<string, string | string[]> {
  if (!chance(random, 0.12)) return {};
  const node = random.pick(NODES);
  return random.pick<() => Record<string, string | string[]>>([
    () => ({ 'Impersonate-User': 'nobody' }),
    () => ({ 'Impersonate-User': 'kubernetes-admin', 'Impersonate-Group': ['system:masters'] }),
    () => ({ 'Impersonate-User': `system:node:${node}`, 'Impersonate-Group': ['system:nodes'] }),
    () => ({ 'Impersonate-User': `system:node:${node}` }),
    () => ({ 'Impersonate-User': 'system:serviceaccount:a:default' }),
    () => ({ 'Impersonate-User': 'system:anonymous' }),
    () => ({ 'Impersonate-Group': ['system:masters'] }),
    () => ({ 'Impersonate-Uid': '1' }),
    () => ({ 'Impersonate-User': 'x', 'Impersonate-Extra-Scopes': ['a', 'b'] }),
    () => ({ 'Impersonate-User': '', 'Impersonate-Group': [''] }),
  ])();
}

function plainPath(random: Random): HostileRequest {
  const method = random.pick(['GET', 'GET', 'GET', 'HEAD', 'POST']);
  const verb = method === 'POST' ? 'create' : 'get';
  return {
    verb,
    method,
    path: random.pick(PATHS),
    resource: '',
    namespace: '',
    name: '',
    headers: impersonation(random),
    overreaches: false,
  };
}

function review(random: Random, names: readonly string[]): HostileRequest {
  const path = random.pick(REVIEWS);
  const [group = '', , plural = ''] = path.split('/');
  const attributes = {
    verb: random.pick(VERBS),
    resource: 'secrets',
    namespace: random.pick(NAMESPACES),
    name: names[random.below(names.length)],
  };
  const spec = {
    user: `system:node:${random.pick(NODES)}`,
    groups: ['system:nodes'],
    token: 'x',
    resourceAttributes: attributes,
  };
  return {
    verb: 'create',
    method: 'POST',
    path: `/apis/${path}`,
    resource: `${plural}.${group}`,
    namespace: '',
    name: '',
    body: { spec },
    headers: impersonation(random),
    overreaches: false,
  };
}

/** What a thief of a node's certificate would try first: a mirror pod, a token, or the objects that they might open. */
function theft(random: Random, world: World): HostileRequest {
  const namespace = random.pick(NAMESPACES);
  const inNamespace = `/api/v1/namespaces/${namespace}`;
  const common = { namespace, headers: {}, overreaches: false };
  const read = (plural: string, name: string): HostileRequest => ({
    ...common,
    verb: 'get',
    method: 'GET',
    path: `${inNamespace}/${plural}/${name}`,
    resource: plural,
    name,
  });
  return random.pick([
    () => ({
      ...common,
      ...pod(random, world),
      verb: 'create',
      method: 'POST',
      path: `${inNamespace}/pods`,
      resource: 'pods',
    }),
    () => {
      const name = `account-${random.pick(NODES)}`;
      const path = `${inNamespace}/serviceaccounts/${name}/token`;
      const body = token(random, world, namespace);
      return { ...common, ...body, verb: 'create', method: 'POST', path, resource: 'serviceaccounts/token', name };
    },
    () => read('secrets', random.pick(['mirrored', 'nobody', `vol-${random.pick(NODES)}`])),
    () => read('configmaps', 'nobody'),
  ] satisfies [() => HostileRequest, ...(() => HostileRequest)[]])();
}

export function hostileRequest(random: Random, world: World): HostileRequest {
  if (chance(random, 0.04)) return plainPath(random);
  if (chance(random, 0.2)) return theft(random, world);
  if (chance(random, 0.04)) return review(random, world.names['secrets'] ?? []);
  const one = WEIGHTED[random.below(WEIGHTED.length)] ?? kind('', 'secrets', true, 1);
  const verb = chance(random, 0.02) ? 'watch' : random.pick(VERBS);
  const pool = world.names[one.plural] ?? ['x'];
  const target = pool[random.below(pool.length)] ?? 'x';
  const named = !['list', 'watch', 'create', 'deletecollection'].includes(verb);
  const sub =
    one.subresources.length > 0 &&
    chance(random, 0.35) &&
    verb !== 'list' &&
    verb !== 'watch' &&
    verb !== 'deletecollection';
  const subresource = sub ? (one.subresources[random.below(one.subresources.length)] ?? '') : '';
  const namespace =
    one.plural === 'leases' ? random.pick(['kube-node-lease', 'kube-node-lease', 'a']) : random.pick(NAMESPACES);
  const across = one.namespaced && !named && chance(random, 0.3);
  const base = one.group === '' ? '/api/v1' : `/apis/${one.group}/v1`;
  const inNamespace = one.namespaced && !across ? `/namespaces/${namespace}` : '';
  const tail = `${named || subresource !== '' ? `/${target}` : ''}${subresource === '' ? '' : `/${subresource}`}`;
  const direct = `${base}${inNamespace}/${one.plural}${tail}${query(random, verb)}`;
  const path = chance(random, 0.06) ? disguise(direct, random) : direct;
  const resource = `${one.plural}${one.group === '' ? '' : `.${one.group}`}${subresource === '' ? '' : `/${subresource}`}`;
  const headers = { ...accept(random), ...impersonation(random) };
  const common = { verb, method: METHODS[verb], path, resource, namespace };
  if (verb === 'create') {
    const { name, ...body } = createBody(random, world, one, namespace, subresource, target);
    return { ...common, ...body, name: subresource === '' ? name : target, headers };
  }
  if (verb === 'update') {
    const { part, overreaches } = change(random, one.plural);
    const object = { apiVersion: apiVersionOf(one), kind: KIND_NAMES[one.plural] ?? 'Thing' };
    return { ...common, name: target, body: { ...object, ...part }, overreaches, headers };
  }
  if (verb === 'patch') {
    const { type, ...rest } = changeBody(random, one, target);
    return { ...common, ...rest, headers: { ...headers, 'content-type': type } };
  }
  return { ...common, name: target, headers, overreaches: false };
}
