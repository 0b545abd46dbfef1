// Requests made to trip the API server over, from a seed: every kind and subresource, bodies in each format, whole and
// damaged, patches of all types, selectors, continue tokens, options of lists, watches and deletions, paths and headers.
// Never sends anything.

import { RESOURCE_KINDS } from '../../../apiserver/kinds/index.ts';
import { damage, mutate, oddText, oddValue, pointer, protobuf, TRICKY_NAMES, yaml } from '../bodies/inputs.ts';
import type { Random } from '../random.ts';
import { NAMES, type Oddity, objectOf, SANDBOX, type Target, typedValue } from './values.ts';

export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly raw?: string | Uint8Array;
}

/** A custom kind of the sandbox. */
export const WIDGETS: Target = {
  group: 'fuzz.example.com',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  namespaced: true,
  subresources: ['status', 'scale'],
};
export const TARGETS: readonly [Target, ...Target[]] = [WIDGETS, WIDGETS, ...RESOURCE_KINDS];

/** What earlier responses had, for requests that use it. */
export interface Seen {
  /** Valid objects of each kind, by group and plural. */
  readonly objects: ReadonlyMap<string, readonly string[]>;
  readonly tokens: string[];
  readonly revisions: string[];
}

const JSON_TYPE = 'application/json';
const PATCH_TYPES = [
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/json-patch+json',
  'application/apply-patch+yaml',
] as const;
const CONTENT_TYPES = [
  ...['application/yaml', 'application/vnd.kubernetes.protobuf', 'application/json; charset=utf-8', 'text/plain'],
  ...['', '*/*', 'application/cbor', 'application/json;', ';;;', 'APPLICATION/JSON'],
] as const;
const ACCEPTS = [
  ...['application/json', 'application/yaml', '*/*', 'application/vnd.kubernetes.protobuf', 'text/html', ';q=2', ','],
  ...['application/json;as=Table;v=v1;g=meta.k8s.io', 'application/json;as=Table;v=v1beta1;g=meta.k8s.io'],
  ...['application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io', 'application/json;as=__proto__;g=meta.k8s.io'],
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json',
] as const;
const SELECTORS = [
  ...['app=a', 'app==a,tier!=b', 'app in (a,b)', 'app notin (a)', '!app', 'app', 'app>1', 'app<x', 'app=', '=a', ','],
  ...['metadata.name=one', 'metadata.namespace=sandbox', 'metadata.name=one,metadata.name=two', 'spec.nodeName=n1'],
  ...[
    'status.phase!=Running',
    'type=Opaque',
    'spec.nodeName',
    'metadata.name\\=one',
    'involvedObject.name=one',
    'a in (',
  ],
] as const;
const OTHER_PATHS = [
  ...[
    '/',
    '/api',
    '/apis',
    '/api/v1',
    '/apis/apps',
    '/apis/apps/v1',
    '/version',
    '/openapi/v2',
    '/openapi/v3',
    '/metrics',
  ],
  ...[
    '/openapi/v3/apis/apps/v1',
    '/healthz',
    '/livez/ping',
    '/readyz/x',
    '/.well-known/openid-configuration',
    '/api/v2',
  ],
  ...[
    '/apis/none.example.com/v1/things',
    '/nodelet/snapshot/x',
    '//',
    '/%',
    '/api/v1/%2e%2e/%2e%2e/metrics',
    '/constructor',
  ],
] as const;

const quoted = (text: string): string => encodeURIComponent(text.toWellFormed());
const rootOf = ({ group, version }: Target): string => (group === '' ? `/api/${version}` : `/apis/${group}/${version}`);

function chance(random: Random, share: number): boolean {
  return random.next() < share;
}

function nameOf(random: Random): string {
  if (chance(random, 0.5)) return 'one';
  return chance(random, 0.93) ? random.pick(NAMES) : quoted(random.pick(TRICKY_NAMES));
}

function number(random: Random, seen: Seen): string {
  const revision = seen.revisions[random.below(seen.revisions.length)] ?? '1';
  return random.pick([
    revision,
    revision,
    '0',
    '1',
    '-1',
    '',
    'x',
    '1.5',
    '9007199254740993',
    '99999999999999999999999',
    '1e3',
  ]);
}

function altered(token: string, random: Random): string {
  const at = random.below(token.length);
  return random.pick([
    token,
    token,
    token.slice(0, at),
    `${token.slice(0, at)}A${token.slice(at + 1)}`,
    `${token}.${token}`,
  ]);
}

/** Options of reads. */
function readOptions(random: Random, seen: Seen): string[] {
  const odd = (): string => quoted(oddText(random).slice(0, 500));
  const token = seen.tokens[random.below(seen.tokens.length)] ?? 'e30.AAAA';
  const all: readonly [() => string, ...(() => string)[]] = [
    () => `labelSelector=${chance(random, 0.7) ? quoted(random.pick(SELECTORS)) : odd()}`,
    () => `fieldSelector=${chance(random, 0.7) ? quoted(random.pick(SELECTORS)) : odd()}`,
    () => `continue=${chance(random, 0.8) ? quoted(altered(token, random)) : odd()}`,
    () => `limit=${number(random, seen)}`,
    () => `limit=${1 + random.below(3)}`,
    () => `resourceVersion=${number(random, seen)}`,
    () => `resourceVersionMatch=${random.pick(['Exact', 'NotOlderThan', '', 'x', '__proto__'])}`,
    () => `watch=${random.pick(['1', 'true', '0', 'x', ''])}`,
    () => `sendInitialEvents=${random.pick(['true', 'false', 'x'])}`,
    () => `allowWatchBookmarks=${random.pick(['true', 'false', 'x'])}`,
    () => `timeoutSeconds=${number(random, seen)}`,
    () => `includeObject=${random.pick(['None', 'Metadata', 'Object', 'x'])}`,
    () => `pretty=${random.pick(['1', 'false', 'x'])}`,
    () => `${odd().slice(0, 40).replaceAll('watch', '')}=${odd()}`,
    () => random.pick(['&&', '=', '%', '%zz=%zz', 'a=%00', 'labelSelector', 'exact=1&export=1']),
  ];
  return Array.from({ length: random.below(4) }, () => random.pick(all)());
}

function writeOptions(random: Random): string[] {
  const all: readonly [string, ...string[]] = [
    'fieldManager=fuzz',
    'fieldManager=',
    `fieldManager=${quoted(oddText(random).slice(0, 300))}`,
    'fieldValidation=Strict',
    'fieldValidation=Ignore',
    'fieldValidation=x',
    'force=true',
    'force=x',
    'dryRun=x',
    'dryRun=All',
    'propagationPolicy=Foreground',
    'propagationPolicy=Orphan',
    'propagationPolicy=x',
    'orphanDependents=true',
    'gracePeriodSeconds=0',
    'gracePeriodSeconds=-5',
    'gracePeriodSeconds=x',
    'pretty=true',
  ];
  return Array.from({ length: random.below(3) }, () => random.pick(all));
}

/** The path with something that a router, a proxy or a decoder could read in another way. */
function bent(path: string, random: Random): string {
  const parts = path.split('/');
  const at = 1 + random.below(parts.length - 1);
  const part = parts[at] ?? '';
  const bends: readonly [string, ...string[]] = [
    '',
    '.',
    '..',
    '%2e%2e',
    `%2f${part}`,
    `${part}%2f..%2foutside`,
    `${part}%00`,
    `${part};x=1`,
    part.toUpperCase(),
    `%${(part.codePointAt(0) ?? 97).toString(16)}${part.slice(1)}`,
    '%ff%fe',
    '%',
    'watch',
    'proxy',
    'namespaces/outside',
    `${part}/extra/more`,
    'x'.repeat(3000),
    quoted(random.pick(TRICKY_NAMES)),
  ];
  const made = parts.with(at, random.pick(bends)).join('/');
  return chance(random, 0.2) ? `${made}/` : made;
}

function hugeNumber(text: string, random: Random): string {
  const value = random.pick(['1e400', '-1e400', '123456789012345678901234567890', '0.1e-400', '1E+2', '00', '1.', '-']);
  return text.replace(/:\s*-?\d+/, `:${value}`);
}

/** JSON text of the value with what JSON.stringify never writes. */
function jsonText(value: unknown, random: Random): string {
  const text = JSON.stringify(value) ?? 'null';
  switch (random.below(40)) {
    case 0:
      return damage(text, random);
    case 1:
      return text.slice(0, random.below(text.length));
    case 2:
      return `${text.slice(0, -1)},"metadata":{"name":"two"}}`;
    case 3:
      return text.replace('"metadata":{', '"metadata":{"name":"two","namespace":"outside",');
    case 4:
      return hugeNumber(text, random);
    case 5:
      return `${'['.repeat(1 + random.below(400))}${text}`;
    case 6:
      return text.replace('"metadata":', '"__proto__":{"polluted":true},"constructor":{"prototype":{}},"metadata":');
    case 7:
      return `\ufeff${text}`;
    default:
      return text;
  }
}

type Body = Pick<FuzzRequest, 'raw'> & { readonly contentType: string };

function objectBody(value: unknown, random: Random): Body {
  const content = chance(random, 0.15) ? mutate(value, random) : value;
  const kind = random.next();
  if (kind < 0.06) return { contentType: 'application/yaml', raw: yaml(content, random) };
  if (kind < 0.12) return { contentType: 'application/vnd.kubernetes.protobuf', raw: protobuf(random) };
  const raw =
    kind < 0.13
      ? Buffer.from(Array.from({ length: random.below(200) }, () => random.below(256)))
      : jsonText(content, random);
  return { contentType: chance(random, 0.95) ? JSON_TYPE : random.pick(CONTENT_TYPES), raw };
}

/** Some paths of the object, for JSON patches. */
function pointersOf(value: unknown, prefix = ''): string[] {
  if (typeof value !== 'object' || value === null) return [prefix];
  const inner = Object.entries(value).flatMap(([key, item]) =>
    pointersOf(item, `${prefix}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`),
  );
  return [prefix, ...inner];
}

function patchBody(value: Record<string, unknown>, random: Random): Body {
  const contentType = random.pick(PATCH_TYPES);
  if (contentType !== 'application/json-patch+json') {
    const { metadata, ...rest } = value;
    const keep = (): boolean => chance(random, 0.5);
    const some = Object.fromEntries(
      Object.entries(rest).filter(([key]) => key === 'kind' || key === 'apiVersion' || keep()),
    );
    const isApply = contentType === 'application/apply-patch+yaml';
    const whole = { ...some, ...(isApply || keep() ? { metadata } : {}) };
    const directives = {
      $patch: random.pick(['replace', 'delete', 'merge', 'x']),
      $retainKeys: ['a', oddValue(random)],
    };
    const patch = !isApply && chance(random, 0.1) ? { ...whole, spec: { ...directives } } : whole;
    return { contentType, raw: jsonText(chance(random, 0.2) ? mutate(patch, random) : patch, random) };
  }
  const places = pointersOf(value);
  const place = (): string => (chance(random, 0.7) ? (places[random.below(places.length)] ?? '') : pointer(random));
  const operations = Array.from({ length: 1 + random.below(4) }, () => ({
    op: random.pick(['add', 'remove', 'replace', 'move', 'copy', 'test', 'x']),
    path: place(),
    from: place(),
    value: chance(random, 0.5) ? random.pick<unknown>(['a', 1, { a: 'b' }, [], null]) : oddValue(random),
  }));
  return { contentType, raw: jsonText(operations, random) };
}

const DELETE_OPTIONS = '#io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions';

function subresourceBody(target: Target, subresource: string, name: string, random: Random): Record<string, unknown> {
  const metadata = chance(random, 0.8) ? { name } : undefined;
  switch (subresource) {
    case 'scale':
      return {
        ...{ kind: 'Scale', apiVersion: 'autoscaling/v1', metadata },
        spec: { replicas: random.pick<unknown>([0, 3, -1, 'x', 1.5, 2 ** 40]) },
      };
    case 'eviction':
      return {
        kind: 'Eviction',
        apiVersion: random.pick(['policy/v1', 'x']),
        metadata,
        deleteOptions: oddValue(random),
      };
    case 'binding':
      return {
        kind: 'Binding',
        apiVersion: 'v1',
        metadata,
        target: random.pick<unknown>([{ name: 'n1' }, oddValue(random)]),
      };
    case 'token':
      return {
        ...{ kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', metadata },
        spec: random.pick<unknown>([{ audiences: ['a'], expirationSeconds: 600 }, oddValue(random), {}]),
      };
    default:
      return objectOf(target, name, random, ODD);
  }
}

const PLAUSIBLE: Oddity = { values: 0, fields: 0 };
const ODD: Oddity = { values: 0.02, fields: 0.03 };

/** An object of the kind: one that is known to be valid, with something else in it, or a new one. */
function anyObject(target: Target, name: string, random: Random, { objects }: Seen): Record<string, unknown> {
  const made = objectOf(target, name, random, chance(random, 0.6) ? PLAUSIBLE : ODD);
  const known = objects.get(`${target.group}/${target.plural}`) ?? [];
  const text = known[random.below(known.length)];
  if (text === undefined || chance(random, 0.3)) return made;
  const valid: Record<string, unknown> = { ...JSON.parse(text), metadata: made['metadata'] };
  const fields = Object.keys(made).filter((field) => field !== 'kind' && field !== 'apiVersion');
  const field = fields[random.below(fields.length)] ?? 'metadata';
  // One field is another, in half of them only in parts.
  if (chance(random, 0.25)) valid[field] = made[field];
  else if (chance(random, 0.3)) valid[field] = mutate(valid[field], random);
  return valid;
}

function bodyOf(
  method: string,
  { target, subresource, name }: { target: Target; subresource: string; name: string },
  random: Random,
  seen: Seen,
): Body | undefined {
  if (method === 'GET' || method === 'HEAD') return undefined;
  if (method === 'DELETE') {
    if (chance(random, 0.5)) return undefined;
    const options = typedValue(DELETE_OPTIONS, '', random, ODD, 1);
    return objectBody(Object.assign({}, options, { kind: 'DeleteOptions', apiVersion: 'v1' }), random);
  }
  const value =
    subresource === '' ? anyObject(target, name, random, seen) : subresourceBody(target, subresource, name, random);
  return method === 'PATCH' ? patchBody(value, random) : objectBody(value, random);
}

function headersOf(random: Random): Record<string, string> {
  const headers: Record<string, string> = {};
  if (chance(random, 0.12)) headers['accept'] = random.pick(ACCEPTS);
  if (chance(random, 0.01)) headers['accept'] = quoted(oddText(random)).slice(0, 2000);
  if (chance(random, 0.2)) headers['user-agent'] = random.pick(['kubectl/v1.34', '', '/', 'x'.repeat(3000), 'a\tb']);
  if (chance(random, 0.03)) {
    headers['impersonate-user'] = random.pick(['nobody', 'system:node:n1', '', 'system:serviceaccount:a', '__proto__']);
    if (chance(random, 0.5)) headers['impersonate-group'] = random.pick(['none', 'system:unauthenticated', '']);
    if (chance(random, 0.3)) headers[`impersonate-extra-${random.pick(['scopes', '%', '%ff', '__proto__'])}`] = 'x';
  }
  if (chance(random, 0.02)) headers['authorization'] = random.pick(['Bearer', 'Bearer x', 'Basic x', 'Bearer a.b.c']);
  if (chance(random, 0.03)) headers['content-encoding'] = random.pick(['gzip', 'br', 'x']);
  if (chance(random, 0.03)) headers['accept-encoding'] = 'gzip';
  if (chance(random, 0.02)) headers['x-http-method-override'] = 'DELETE';
  if (chance(random, 0.005)) headers['expect'] = random.pick(['100-continue', 'x']);
  return headers;
}

/** `dry`: nothing that the request does may be stored, and it may be about anything; else it is about the sandbox. */
export function fuzzRequest(random: Random, dry: boolean, seen: Seen): FuzzRequest {
  if (chance(random, 0.03)) {
    const path = bent(`${random.pick(OTHER_PATHS)}`, random);
    return {
      method: random.pick(['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS']),
      path: dry ? `${path}?dryRun=All` : path,
      headers: headersOf(random),
    };
  }
  let target = random.pick(TARGETS);
  for (let tries = 0; !dry && !target.namespaced && tries < 8; tries++) target = random.pick(TARGETS);
  const namespace = dry
    ? random.pick([SANDBOX, SANDBOX, 'outside', 'outside', 'outside', 'kube-system', 'none'])
    : SANDBOX;
  const collection = `${rootOf(target)}${target.namespaced ? `/namespaces/${namespace}` : ''}/${target.plural}`;
  const method = random.pick(['GET', 'GET', 'POST', 'POST', 'POST', 'PUT', 'PATCH', 'PATCH', 'PATCH', 'DELETE']);
  const name = dry && chance(random, 0.4) ? 'keeper' : nameOf(random);
  const [first, ...more] = target.subresources;
  const subresource =
    first !== undefined && method !== 'DELETE' && chance(random, 0.2) ? random.pick([first, ...more]) : '';
  const onCollection = subresource === '' && (method === 'POST' || chance(random, method === 'GET' ? 0.6 : 0.08));
  const direct = onCollection ? collection : `${collection}/${name}${subresource === '' ? '' : `/${subresource}`}`;
  const path = chance(random, 0.06) ? bent(direct, random) : direct;
  const read = method === 'GET' || (method === 'DELETE' && onCollection) || chance(random, 0.02);
  const parameters = [...(read ? readOptions(random, seen) : []), ...(method === 'GET' ? [] : writeOptions(random))];
  if (method === 'PATCH' && chance(random, 0.5)) parameters.push('fieldManager=fuzz');
  if (dry) parameters.push('dryRun=All');
  const body = bodyOf(method, { target, subresource, name }, random, seen);
  const headers = headersOf(random);
  if (body !== undefined && headers['content-type'] === undefined) headers['content-type'] = body.contentType;
  const raw = body?.raw === undefined ? {} : { raw: body.raw };
  return { method, path: parameters.length === 0 ? path : `${path}?${parameters.join('&')}`, headers, ...raw };
}
