// Serves discovery and OpenAPI: maps a path and an Accept header to a document. Documents are built at the first request
// and kept as text until the table of rows changes.

import { createHash } from 'node:crypto';
import type { ResourceKind } from '../kinds/resource.ts';
import { RowTable } from '../kinds/rows.ts';
import type { Discovery, DiscoveryDocument } from '../ports.ts';
import { definitions } from '../schema/definitions.ts';
import {
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  groupDiscoveryList,
  groupsOf,
  REVIEWS,
} from './groups.ts';
import { openapiV2, openapiV3, openapiV3Index } from './openapi.ts';
import { openapiV2Protobuf } from './openapi-v2-protobuf.ts';

export { openapiV2, openapiV3, openapiV3Index };

const JSON_TYPE = 'application/json';

/** The Kubernetes version whose API this is. */
export const VERSION = {
  major: '1',
  minor: '34',
  emulationMajor: '1',
  emulationMinor: '34',
  minCompatibilityMajor: '1',
  minCompatibilityMinor: '33',
  gitVersion: 'v1.34.0+nodelet',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '2025-08-27T00:00:00Z',
  goVersion: `node-${process.version}`,
  compiler: 'nodelet',
  platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
} as const;

/** `serverAddress` is "host:port", for clients that read the server's address. */
export function discovery(table: readonly ResourceKind[] | RowTable, serverAddress = ''): Discovery {
  const rows = table instanceof RowTable ? table : new RowTable(table);
  const cache = new Map<string, { readonly body: string; readonly tag: string }>();
  let kinds = rows.all;
  let v2Protobuf: Uint8Array | undefined;
  rows.onChange(() => {
    kinds = rows.all;
    cache.clear();
    v2Protobuf = undefined;
  });
  const json = (key: string, build: () => object, contentType = JSON_TYPE): DiscoveryDocument => {
    let known = cache.get(key);
    if (known === undefined) {
      const body = JSON.stringify(build());
      known = { body, tag: createHash('sha256').update(body).digest('hex').toUpperCase() };
      cache.set(key, known);
    }
    // Without Vary a cache in between would give one client the other's form.
    return { status: 200, contentType, body: known.body, headers: { Vary: 'Accept', ETag: `"${known.tag}"` } };
  };
  // Of the built-in schema; it does not change.
  let base: string | undefined;
  /** Changes with the document of a group and version: clients keep a document under its hash. */
  const schemaHash = (wanted: string): string => {
    base ??= digest(definitions());
    const served = kinds
      .filter((row) => groupVersionOf(row) === wanted)
      .map((row) => [row.plural, row.verbs, row.subresources, row.custom?.revision]);
    return digest([base, wanted, served]);
  };

  return (path, accept, query) => {
    const [first, second, third, fourth, ...more] = path.replace(/^\/+|\/+$/g, '').split('/');
    if (more.length > 1) return undefined;
    if (first === 'version' && second === undefined) return json('version', () => VERSION);
    if (first === 'openapi') {
      if (second === 'v2' && third === undefined) {
        const protobuf = (): Uint8Array => {
          v2Protobuf ??= openapiV2Protobuf(openapiV2(kinds));
          return v2Protobuf;
        };
        return v2Document(accept, () => json('v2', () => openapiV2(kinds)), protobuf);
      }
      if (second !== 'v3') return undefined;
      if (third === undefined) return json('v3', () => openapiV3Index(kinds, schemaHash, rows.remote));
      const wanted = openapiGroup(third, fourth, more);
      if (wanted === undefined || ![...kinds, ...REVIEWS].some((row) => groupVersionOf(row) === wanted))
        return undefined;
      const document = json(`v3/${wanted}`, () => openapiV3(kinds, wanted) ?? {});
      const hash = schemaHash(wanted);
      const headers = { ...document.headers, ETag: `"${hash}"` };
      const named = query.get('hash') ?? '';
      // What is requested by its hash never changes.
      if (named === hash) return { ...document, headers: { ...headers, 'Cache-Control': 'public, immutable' } };
      if (named === '') return { ...document, headers };
      const Location = `${path}?hash=${hash}`;
      return { status: 301, contentType: 'text/html; charset=utf-8', body: '', headers: { ...headers, Location } };
    }
    if (more.length > 0 || fourth !== undefined) return undefined;
    if (first === 'api' && third === undefined) {
      if (second === undefined) return aggregatedOr(accept, true, () => json('api', () => apiVersions(serverAddress)));
      return resourceList('', second);
    }
    if (first !== 'apis') return undefined;
    if (second === undefined)
      return aggregatedOr(accept, false, () => json('apis', () => apiGroupList(kinds, rows.remote)));
    if (third !== undefined) return resourceList(second, third);
    const versions = groupsOf(kinds, rows.remote).get(second);
    return versions === undefined
      ? undefined
      : json(`group/${second}`, () => ({ kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(second, versions) }));
  };

  function resourceList(group: string, version: string): DiscoveryDocument | undefined {
    const list = apiResourceList(kinds, group, version);
    return list === undefined ? undefined : json(`resources/${group}/${version}`, () => list);
  }

  function aggregatedOr(accept: string, legacy: boolean, plain: () => DiscoveryDocument): DiscoveryDocument {
    const version = aggregatedVersion(accept);
    if (version === undefined) return plain();
    return json(
      `aggregated/${legacy}/${version}`,
      () => groupDiscoveryList(kinds, version, legacy, rows.remote),
      `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    );
  }
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32).toUpperCase();
}

/** "api/v1" → "v1", "apis/<group>/<version>" → "<group>/<version>". */
function openapiGroup(root: string, first: string | undefined, more: readonly string[]): string | undefined {
  if (root === 'api') return more.length === 0 ? first : undefined;
  return root === 'apis' ? [first, ...more].join('/') : undefined;
}

function groupVersionOf(row: Pick<ResourceKind, 'group' | 'version'>): string {
  return row.group === '' ? row.version : `${row.group}/${row.version}`;
}

/** The first form of aggregated discovery that the client takes in JSON; undefined when it takes plain JSON sooner. */
function aggregatedVersion(accept: string): 'v2' | 'v2beta1' | undefined {
  for (const entry of accept.split(',')) {
    const [type = '', ...parameters] = entry.split(';').map((part) => part.trim());
    if (type !== JSON_TYPE && type !== '*/*') continue;
    const named = new Map(parameters.map((part) => [part.split('=')[0], part.split('=')[1]]));
    if (named.get('as') !== 'APIGroupDiscoveryList' || named.get('g') !== 'apidiscovery.k8s.io') return undefined;
    const version = named.get('v');
    if (version === 'v2' || version === 'v2beta1') return version;
  }
  return undefined;
}

/** What clients accept. Go's parser of media types refuses the "@", so the response has another name, as kube-apiserver's has. */
const V2_PROTOBUF = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
const V2_PROTOBUF_RESPONSE = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** kubectl requests v2 in protobuf only, for kinds that v3 does not have and for explain's older format. */
function v2Document(accept: string, document: () => DiscoveryDocument, protobuf: () => Uint8Array): DiscoveryDocument {
  const types = accept.split(',').map((entry) => (entry.split(';')[0] ?? '').trim());
  if (accept.trim() === '' || types.some((type) => type === '*/*' || type === JSON_TYPE || type === 'application/*')) {
    return document();
  }
  if (types.includes(V2_PROTOBUF) || types.includes(V2_PROTOBUF_RESPONSE)) {
    return { status: 200, contentType: V2_PROTOBUF_RESPONSE, body: protobuf() };
  }
  return {
    status: 406,
    contentType: JSON_TYPE,
    body: JSON.stringify({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `only the following media types are accepted: ${JSON_TYPE}, ${V2_PROTOBUF}`,
      reason: 'NotAcceptable',
      code: 406,
    }),
  };
}
