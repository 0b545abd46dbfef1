// What must be true of an answer, checked without the server's own rules: who the request comes from in the end, what
// they may change, and what a response may hold. Knows the world's names, and no code of apiserver/auth.

import type { HostileCaller } from './callers.ts';
import type { Markers, Reader } from './markers.ts';
import type { HostileRequest } from './requests.ts';
import { NODES, nodeOfPod } from './world.ts';

/** Whom a request comes from. `refused`: it impersonates an identity that the caller may not. */
export type Effective =
  | { readonly kind: 'caller'; readonly reader: Reader; readonly known: boolean }
  | { readonly kind: 'refused' };

export interface Judgement {
  readonly leaks: readonly string[];
  /** What was done or shown that must not be; '' for nothing. */
  readonly wrong: string;
  readonly crashed: boolean;
  readonly refused: boolean;
}

const NOTHING: Reader = { kind: 'nothing' };
const HEALTH = new Set(['/healthz', '/livez', '/readyz', '/version']);
const REVIEWS = ['tokenreviews.authentication.k8s.io', 'subjectaccessreviews.authorization.k8s.io'];
/** Kinds whose objects are marked: markers decide what of them may be seen. */
const MARKED = new Set([
  ...['secrets', 'configmaps', 'pods', 'nodes', 'serviceaccounts', 'persistentvolumeclaims', 'persistentvolumes'],
  ...['volumeattachments.storage.k8s.io', 'csinodes.storage.k8s.io', 'leases.coordination.k8s.io'],
]);
const FOR_EVERY_NODE = new Set(['services', 'csidrivers.storage.k8s.io', 'runtimeclasses.node.k8s.io']);

function header(request: HostileRequest, name: string): readonly string[] {
  const value = request.headers[name] ?? [];
  return typeof value === 'string' ? [value] : value;
}

export function effective(caller: HostileCaller, request: HostileRequest): Effective {
  const own: Effective = { kind: 'caller', reader: caller.reader, known: caller.known };
  const [user = ''] = header(request, 'Impersonate-User');
  const groups = header(request, 'Impersonate-Group');
  const others =
    groups.length > 0 || Object.keys(request.headers).some((name) => /^Impersonate-(Uid|Extra)/.test(name));
  if (user === '' && !others) return own;
  if (user === '' || caller.master !== true) return { kind: 'refused' };
  const as = (reader: Reader): Effective => ({ kind: 'caller', reader, known: user !== 'system:anonymous' });
  if (groups.includes('system:masters')) return as({ kind: 'everything' });
  const node = NODES.find((name) => user === `system:node:${name}`);
  return as(node !== undefined && groups.includes('system:nodes') ? { kind: 'node', node } : NOTHING);
}

/** Whether a node may have changed what a request changed. */
function nodeMayWrite(
  node: string,
  { resource, verb, name, namespace, overreaches, boundTo = '' }: HostileRequest,
): boolean {
  const own = nodeOfPod(name) === node;
  switch (resource) {
    case 'events':
      return ['create', 'update', 'patch'].includes(verb);
    case 'pods':
      return verb === 'create' ? own && !overreaches : verb === 'delete' && own;
    case 'pods/status':
      return (verb === 'update' || verb === 'patch') && own && !overreaches;
    case 'pods/eviction':
      return verb === 'create' && own;
    case 'nodes':
      return ['create', 'update', 'patch'].includes(verb) && name === node && !overreaches;
    case 'nodes/status':
      return (verb === 'update' || verb === 'patch') && name === node && !overreaches;
    case 'leases.coordination.k8s.io':
      return namespace === 'kube-node-lease' && name === node && verb !== 'deletecollection';
    case 'csinodes.storage.k8s.io':
      return name === node && verb !== 'deletecollection';
    case 'serviceaccounts/token':
      return verb === 'create' && name === `account-${node}` && nodeOfPod(boundTo) === node && !overreaches;
    case 'persistentvolumeclaims/status':
      return (verb === 'update' || verb === 'patch') && name === `claim-${node}` && !overreaches;
    default:
      return REVIEWS.includes(resource);
  }
}

function mayDo(who: Extract<Effective, { kind: 'caller' }>, request: HostileRequest): boolean {
  const { reader, known } = who;
  const { resource, method, path } = request;
  if (reader.kind === 'everything') return true;
  const place = path.split('?')[0] ?? '';
  if (resource === '') return HEALTH.has(place) || (known && method !== 'POST');
  if (!known) return false;
  if (/^self.*\.(authentication|authorization)\.k8s\.io$/.test(resource)) return true;
  if (reader.kind === 'nothing') return false;
  if (method !== 'GET') return reader.kind === 'node' ? nodeMayWrite(reader.node, request) : REVIEWS.includes(resource);
  return reader.kind === 'scheduler' || MARKED.has(resource) || FOR_EVERY_NODE.has(resource);
}

export function judge(
  markers: Markers,
  caller: HostileCaller,
  request: HostileRequest,
  answer: { readonly code: number; readonly text: string },
): Judgement {
  const who = effective(caller, request);
  const { code, text } = answer;
  const done = code > 0 && code < 300;
  const reader = who.kind === 'caller' && (who.known || who.reader.kind === 'everything') ? who.reader : NOTHING;
  const may = who.kind === 'caller' && mayDo(who, request);
  // What kube-apiserver answers to headers that name groups and no user.
  const nameless = who.kind === 'refused' && (header(request, 'Impersonate-User')[0] ?? '') === '';
  const rightful = code === 500 && nameless && (request.method === 'HEAD' || text.includes('without impersonating'));
  return {
    leaks: markers.leaks(text, reader),
    wrong: done && !may ? `${code} where it must be refused` : '',
    crashed: code === 0 || (code >= 500 && !rightful),
    refused: code === 401 || code === 403 || rightful,
  };
}
