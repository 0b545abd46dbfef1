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
  const documents = new Documents(table instanceof RowTable ? table : new RowTable(table), serverAddress);
  return (path, accept, query) => documents.at(path, accept, query);
}

/** Of a table of rows, as it is now. */
class Documents {
  readonly #rows: RowTable;
  readonly #serverAddress: string;
  readonly #cache = new Map<string, { readonly body: string; readonly tag: string }>();
  #kinds: readonly ResourceKind[];
  #v2Protobuf: Uint8Array | undefined;
  /** Of the built-in schema; it does not change. */
  #base: string | undefined;

  constructor(rows: RowTable, serverAddress: string) {
    this.#rows = rows;
    this.#serverAddress = serverAddress;
    this.#kinds = rows.all;
    rows.onChange(() => {
      this.#kinds = rows.all;
      this.#cache.clear();
      this.#v2Protobuf = undefined;
    });
  }

  at(path: string, accept: string, query: URLSearchParams): DiscoveryDocument | undefined {
    const [first, second, third, fourth, ...more] = path.replace(/^\/+|\/+$/g, '').split('/');
    if (more.length > 1) return undefined;
    if (first === 'version' && second === undefined) return this.#json('version', () => VERSION);
    if (first === 'openapi') {
      if (second === 'v2' && third === undefined) return this.#openapiV2(accept);
      return second === 'v3' ? this.#openapiV3(path, [third, fourth, ...more], query) : undefined;
    }
    if (more.length > 0 || fourth !== undefined) return undefined;
    if (first === 'api' && third === undefined) {
      if (second !== undefined) return this.#resourceList('', second);
      return this.#aggregatedOr(accept, true, () => this.#json('api', () => apiVersions(this.#serverAddress)));
    }
    return first === 'apis' ? this.#groups(second, third, accept) : undefined;
  }

  #json(key: string, build: () => object, contentType = JSON_TYPE): DiscoveryDocument {
    let known = this.#cache.get(key);
    if (known === undefined) {
      const body = JSON.stringify(build());
      known = { body, tag: createHash('sha256').update(body).digest('hex').toUpperCase() };
      this.#cache.set(key, known);
    }
    // Without Vary a cache in between would give one client the other's form.
    return { status: 200, contentType, body: known.body, headers: { Vary: 'Accept', ETag: `"${known.tag}"` } };
  }

  #groups(group: string | undefined, version: string | undefined, accept: string): DiscoveryDocument | undefined {
    const { remote } = this.#rows;
    if (group === undefined) {
      return this.#aggregatedOr(accept, false, () => this.#json('apis', () => apiGroupList(this.#kinds, remote)));
    }
    if (version !== undefined) return this.#resourceList(group, version);
    const versions = groupsOf(this.#kinds, remote).get(group);
    if (versions === undefined) return undefined;
    return this.#json(`group/${group}`, () => ({ kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(group, versions) }));
  }

  #resourceList(group: string, version: string): DiscoveryDocument | undefined {
    const list = apiResourceList(this.#kinds, group, version);
    return list === undefined ? undefined : this.#json(`resources/${group}/${version}`, () => list);
  }

  #aggregatedOr(accept: string, legacy: boolean, plain: () => DiscoveryDocument): DiscoveryDocument {
    const version = aggregatedVersion(accept);
    if (version === undefined) return plain();
    return this.#json(
      `aggregated/${legacy}/${version}`,
      () => groupDiscoveryList(this.#kinds, version, legacy, this.#rows.remote),
      `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    );
  }

  #openapiV2(accept: string): DiscoveryDocument {
    const protobuf = (): Uint8Array => {
      this.#v2Protobuf ??= openapiV2Protobuf(openapiV2(this.#kinds));
      return this.#v2Protobuf;
    };
    return v2Document(accept, () => this.#json('v2', () => openapiV2(this.#kinds)), protobuf);
  }

  /** `parts`: of the path, behind /openapi/v3. */
  #openapiV3(
    path: string,
    [root, first, ...more]: readonly (string | undefined)[],
    query: URLSearchParams,
  ): DiscoveryDocument | undefined {
    const hashOf = (wanted: string): string => this.#schemaHash(wanted);
    if (root === undefined) return this.#json('v3', () => openapiV3Index(this.#kinds, hashOf, this.#rows.remote));
    const wanted = openapiGroup(root, first, more);
    const isServed = [...this.#kinds, ...REVIEWS].some((row) => groupVersionOf(row) === wanted);
    if (wanted === undefined || !isServed) return undefined;
    const document = this.#json(`v3/${wanted}`, () => openapiV3(this.#kinds, wanted) ?? {});
    const hash = hashOf(wanted);
    const headers = { ...document.headers, ETag: `"${hash}"` };
    const named = query.get('hash') ?? '';
    // What is requested by its hash never changes.
    if (named === hash) return { ...document, headers: { ...headers, 'Cache-Control': 'public, immutable' } };
    if (named === '') return { ...document, headers };
    const Location = `${path}?hash=${hash}`;
    return { status: 301, contentType: 'text/html; charset=utf-8', body: '', headers: { ...headers, Location } };
  }

  /** Changes with the document of a group and version: clients keep a document under its hash. */
  #schemaHash(wanted: string): string {
    this.#base ??= digest(definitions());
    const served = this.#kinds
      .filter((row) => groupVersionOf(row) === wanted)
      .map((row) => [row.plural, row.verbs, row.subresources, row.custom?.revision]);
    return digest([this.#base, wanted, served]);
  }
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32).toUpperCase();
}

/** "api/v1" → "v1", "apis/<group>/<version>" → "<group>/<version>". */
function openapiGroup(
  root: string,
  first: string | undefined,
  more: readonly (string | undefined)[],
): string | undefined {
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
