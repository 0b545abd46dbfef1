// Every route there is, made from the table of kinds: refused for a caller without rights and for bad credentials,
// and open to one with rights. And each route is a permission of its own.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Attributes } from '../../../../apiserver/auth/attributes.ts';
import { fullName, ruleAllows } from '../../../../apiserver/auth/rbac/rules.ts';
import { parseRequest } from '../../../../apiserver/http/request.ts';
import { RESOURCE_KINDS } from '../../../../apiserver/kinds/index.ts';
import type { ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import { type Answer, at, type Credentials, TestApiServer } from '../../../support/api-server.ts';

interface Route {
  readonly method: string;
  readonly path: string;
}

/** A selector that matches nothing, and nothing is stored: the requests change nothing. */
const SAFE = 'dryRun=All&labelSelector=no=such';
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

function rootOf({ group, version }: Pick<ResourceKind, 'group' | 'version'>): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
}

function routesOf(row: ResourceKind): Route[] {
  const root = rootOf(row);
  const place = row.namespaced ? `${root}/namespaces/ns/${row.plural}` : `${root}/${row.plural}`;
  const one = `${place}/one`;
  // A watch from a version that is none ends at once for those who may.
  const watch = 'watch=1&resourceVersion=none';
  const routes: Route[] = [
    ...['GET', 'POST', 'DELETE'].map((method) => ({ method, path: `${place}?${SAFE}` })),
    ...['GET', 'PUT', 'PATCH', 'DELETE'].map((method) => ({ method, path: `${one}?${SAFE}` })),
    { method: 'GET', path: `${place}?${watch}` },
    { method: 'GET', path: `${place.replace(root, `${root}/watch`)}?${watch}` },
  ];
  if (row.namespaced) {
    routes.push({ method: 'GET', path: `${root}/${row.plural}?${SAFE}` });
    routes.push({ method: 'GET', path: `${root}/${row.plural}?${watch}` });
  }
  for (const subresource of row.subresources) {
    const paths = subresource === 'proxy' ? [subresource, `${subresource}/deeper/path`] : [subresource];
    for (const path of paths) {
      routes.push(...METHODS.map((method) => ({ method, path: `${one}/${path}?${SAFE}` })));
    }
  }
  return routes;
}

const REVIEWS = [
  ...['subjectaccessreviews', 'namespaces/ns/localsubjectaccessreviews'].map(
    (plural) => `/apis/authorization.k8s.io/v1/${plural}`,
  ),
  '/apis/authentication.k8s.io/v1/tokenreviews',
];
/** Paths that are no resource's, and that no default role opens to everyone. */
const PATHS = ['/metrics', '/logs', '/debug/pprof', '/openid/v1/jwks', '/.well-known/openid-configuration', '/', '/ui'];

const ROUTES: readonly Route[] = [
  ...RESOURCE_KINDS.flatMap(routesOf),
  ...REVIEWS.map((path) => ({ method: 'POST', path })),
  ...PATHS.flatMap((path) => METHODS.map((method) => ({ method, path }))),
];
const shown = ({ method, path }: Route): string => `${method} ${path}`;

let stand: TestApiServer;
beforeAll(async () => {
  stand = await TestApiServer.start();
});
afterAll(() => stand.stop());

/** The answers to a request of each route, some at a time. */
async function answers(as: Credentials, routes = ROUTES): Promise<readonly (readonly [Route, Answer])[]> {
  const all: (readonly [Route, Answer])[] = [];
  const rest = [...routes];
  while (rest.length > 0) {
    const some = rest.splice(0, 16).map(async (route) => {
      const body = ['POST', 'PUT', 'PATCH'].includes(route.method) ? {} : undefined;
      const headers = route.method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {};
      return [route, await stand.call({ ...route, as, headers, ...(body === undefined ? {} : { body }) })] as const;
    });
    all.push(...(await Promise.all(some)));
  }
  return all;
}

/** The refusal as kube-apiserver words it. */
function refusalOf({ method, path }: Route, user: string): string {
  const request = parseRequest(method, path);
  if (request.kind === 'path') return `forbidden: User "${user}" cannot ${request.verb} path "${request.path}"`;
  const { verb, group, resource, subresource, namespace, name } = request;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  const what = `${resource}${group === '' ? '' : `.${group}`}${name === '' ? '' : ` "${name}"`}`;
  const full = fullName({ resource, subresource });
  return `${what} is forbidden: User "${user}" cannot ${verb} resource "${full}" in API group "${group}" ${where}`;
}

describe('every route', () => {
  it('is refused for a caller without rights, in the real server’s words', async () => {
    const wrong = (await answers(await stand.certificate('nobody-else'))).flatMap(([route, { code, json }]) => {
      const message = at(json, 'message');
      return code === 403 && message === refusalOf(route, 'nobody-else') ? [] : [[shown(route), code, message]];
    });
    expect(wrong).toEqual([]);
    expect(ROUTES.length).toBeGreaterThan(400);
  });

  it('is 401 for a bad token, and for a certificate of another CA', async () => {
    const foreign = await stand.certificate('kubernetes-admin', 'system:masters', { ca: await stand.otherCa() });
    // Each such answer ends its connection: one request for each kind and subresource, and a few with the certificate.
    const reads = ROUTES.filter(({ method, path }) => method === 'GET' && !path.includes('watch'));
    const some = reads.filter((_route, index) => index % 16 === 0);
    for (const [as, routes] of [
      [{ token: 'bad' }, reads],
      [foreign, some],
    ] as const) {
      const wrong = (await answers(as, routes)).flatMap(([route, { code }]) =>
        code === 401 ? [] : [[shown(route), code]],
      );
      expect(wrong).toEqual([]);
    }
  });

  it('is open to a caller with rights', async () => {
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    await stand.admit('POST', `${rbac}/clusterrolebindings`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'all' },
      roleRef: { kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'User', name: 'everything' }],
    });
    const wrong = (await answers(await stand.certificate('everything'))).flatMap(([route, { code, text }]) => {
      const refused = code === 401 || (code === 403 && text.includes(' cannot ')) || code >= 500;
      return refused ? [[shown(route), code, text]] : [];
    });
    expect(wrong).toEqual([]);
  });
});

describe('a permission', () => {
  it('for one route opens that route alone', () => {
    const requests = new Map<string, Attributes>();
    for (const { method, path } of ROUTES) {
      const request = parseRequest(method, path);
      if (request.kind === 'path') continue;
      const { verb, group, resource, subresource, namespace, name } = request;
      const attributes = { verb, group, resource, subresource, namespace, name };
      requests.set(`${verb} ${group}/${fullName(attributes)}`, attributes);
    }
    for (const [key, { verb, group, resource, subresource }] of requests) {
      const rule = { verbs: [verb], apiGroups: [group], resources: [fullName({ resource, subresource })] };
      const open = [...requests].filter(([, request]) => ruleAllows(rule, request)).map(([one]) => one);
      expect(open).toEqual([key]);
    }
  });
});
