// Paths that are no resource: the index of all there are, and the response for one that there is not.

import type { HealthCheck } from '../../lib/health-checks.ts';
import type { Discovery } from '../ports.ts';
import type { Reply } from './exchange.ts';

const NO_CACHE = { 'Cache-Control': 'no-cache, private' };

/** As from kube-apiserver: no Status. */
export const PATH_NOT_FOUND: Reply = {
  code: 404,
  contentType: 'text/plain; charset=utf-8',
  body: '404 page not found\n',
  headers: { ...NO_CACHE, 'X-Content-Type-Options': 'nosniff' },
};

const OPENID = ['/.well-known/openid-configuration', '/openid/v1/jwks'];
const ALWAYS = [
  ...OPENID,
  '/api',
  '/api/v1',
  '/apis',
  '/apis/',
  '/metrics',
  '/metrics/slis',
  '/openapi/v2',
  '/openapi/v3',
  '/openapi/v3/',
  '/version',
];
const NO_QUERY = new URLSearchParams();

/** Whether the path is there, or belongs to a group that is: what there is not of a group is a Status. */
export function isServed(path: string, discovery: Discovery): boolean {
  if (OPENID.includes(path) || path.startsWith('/api/')) return true;
  const group = /^\/apis\/[^/]+/.exec(path)?.[0];
  if (group !== undefined && discovery(group, '', NO_QUERY) !== undefined) return true;
  return discovery(path, '', NO_QUERY) !== undefined;
}

interface GroupList {
  readonly groups: readonly {
    readonly name: string;
    readonly versions: readonly { readonly groupVersion: string }[];
  }[];
}

function groupPaths(discovery: Discovery): readonly string[] {
  const document = discovery('/apis', '', NO_QUERY);
  if (document === undefined || typeof document.body !== 'string') return [];
  const { groups }: GroupList = JSON.parse(document.body);
  return groups.flatMap(({ name, versions }) => [
    `/apis/${name}`,
    ...versions.map(({ groupVersion }) => `/apis/${groupVersion}`),
  ]);
}

function healthPaths(checks: readonly HealthCheck[]): readonly string[] {
  const below = (root: string, names: readonly HealthCheck[]): string[] => [
    root,
    ...names.map(({ name }) => `${root}/${name}`),
  ];
  const living = checks.filter(({ readinessOnly }) => readinessOnly !== true);
  return [...below('/healthz', living), ...below('/livez', living), ...below('/readyz', checks)];
}

/** The response to GET /. */
export function indexReply(discovery: Discovery, checks: readonly HealthCheck[]): Reply {
  const paths = [...ALWAYS, ...groupPaths(discovery), ...healthPaths(checks)].sort();
  const body = JSON.stringify({ paths }, undefined, 2);
  return { code: 200, contentType: 'application/json', body, headers: NO_CACHE };
}
