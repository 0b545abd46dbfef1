// OpenAPI documents, v2 and v3, as far as clients read them: paths with the kind they serve and the parameters they
// take (kubectl reads fieldValidation and dryRun there), and the schemas behind explain and apply. Plain objects;
// built anew at each call, so callers keep them.

import { getOwn, setOwn } from '../../lib/own-property.ts';
import type { ResourceKind } from '../kinds/resource.ts';
import type { RemoteVersion } from '../kinds/rows.ts';
import { groupVersion, REVIEWS, type Review, subresourceOf, verbsOf } from './groups.ts';
import { type OpenApiVersion, type Schema, SchemaCollector } from './openapi-schemas.ts';
import { type Connection, connectionOf, definitionOf } from './openapi-subresources.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const JSON_TYPE = 'application/json';
const STRATEGIC = 'application/strategic-merge-patch+json';
const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  STRATEGIC,
  'application/apply-patch+yaml',
];
/** kubectl apply patches as it reads here. */
const CUSTOM_PATCH_TYPES = PATCH_TYPES.filter((type) => type !== STRATEGIC);

/** "/api/v1", "/apis/coordination.k8s.io/v1". */
export function rootPath(row: { readonly group: string; readonly version: string }): string {
  return row.group === '' ? `/api/${row.version}` : `/apis/${row.group}/${row.version}`;
}

const QUERY: Readonly<Record<string, { type: string; about: string }>> = {
  allowWatchBookmarks: { type: 'boolean', about: 'Send BOOKMARK events during a watch.' },
  continue: { type: 'string', about: 'The token that the last chunk of a list came with.' },
  dryRun: { type: 'string', about: '"All": do everything but store it.' },
  fieldManager: { type: 'string', about: 'The name of the actor that makes the change.' },
  fieldSelector: { type: 'string', about: 'Only objects with these field values.' },
  fieldValidation: { type: 'string', about: 'Ignore, Warn or Strict: what unknown and duplicate fields lead to.' },
  gracePeriodSeconds: { type: 'integer', about: 'Seconds before the object is removed.' },
  labelSelector: { type: 'string', about: 'Only objects with these labels.' },
  limit: { type: 'integer', about: 'The most objects in one answer.' },
  propagationPolicy: { type: 'string', about: 'What happens to dependents: Orphan, Background or Foreground.' },
  resourceVersion: { type: 'string', about: 'The oldest state that the answer may show.' },
  resourceVersionMatch: { type: 'string', about: 'How resourceVersion is interpreted: Exact or NotOlderThan.' },
  sendInitialEvents: { type: 'boolean', about: 'Begin a watch with what there is.' },
  timeoutSeconds: { type: 'integer', about: 'When the answer ends at the latest.' },
  watch: { type: 'boolean', about: 'Stream changes instead of a list.' },
};
const WRITE = ['dryRun', 'fieldManager', 'fieldValidation'];
const LIST = [
  'allowWatchBookmarks',
  'continue',
  'fieldSelector',
  'labelSelector',
  'limit',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'timeoutSeconds',
  'watch',
];
const DELETE = ['dryRun', 'gracePeriodSeconds', 'propagationPolicy'];

interface Action {
  readonly verb: string;
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  readonly on: 'collection' | 'item';
  readonly action: string;
  readonly parameters: readonly string[];
  readonly body?: 'object' | 'patch' | 'options';
  readonly answer: 'object' | 'list' | 'status';
}

const ACTIONS: readonly Action[] = [
  { verb: 'list', method: 'get', on: 'collection', action: 'list', parameters: LIST, answer: 'list' },
  {
    verb: 'create',
    method: 'post',
    on: 'collection',
    action: 'post',
    parameters: WRITE,
    body: 'object',
    answer: 'object',
  },
  {
    verb: 'deletecollection',
    method: 'delete',
    on: 'collection',
    action: 'deletecollection',
    parameters: [...DELETE, ...LIST],
    body: 'options',
    answer: 'status',
  },
  { verb: 'get', method: 'get', on: 'item', action: 'get', parameters: [], answer: 'object' },
  { verb: 'update', method: 'put', on: 'item', action: 'put', parameters: WRITE, body: 'object', answer: 'object' },
  {
    verb: 'patch',
    method: 'patch',
    on: 'item',
    action: 'patch',
    parameters: [...WRITE, 'force'],
    body: 'patch',
    answer: 'object',
  },
  {
    verb: 'delete',
    method: 'delete',
    on: 'item',
    action: 'delete',
    parameters: DELETE,
    body: 'options',
    answer: 'status',
  },
];

type Named = Pick<ResourceKind, 'group' | 'version' | 'kind' | 'namespaced' | 'custom'>;
type Paths = Record<string, Record<string, unknown>>;

class DocumentBuilder {
  readonly paths: Paths = {};
  readonly collector: SchemaCollector;
  private readonly version: OpenApiVersion;

  constructor(version: OpenApiVersion) {
    this.version = version;
    this.collector = new SchemaCollector(version);
  }

  add(row: ResourceKind): void {
    const { object, list } = this.collector.addKind(row);
    const root = rootPath(row);
    const collection = row.namespaced ? `${root}/namespaces/{namespace}/${row.plural}` : `${root}/${row.plural}`;
    const gvk = { group: row.group, version: row.version, kind: row.kind };
    const verbs = verbsOf(row);
    for (const action of ACTIONS) {
      if (!verbs.includes(action.verb)) continue;
      const path = action.on === 'item' ? `${collection}/{name}` : collection;
      this.operation(path, action, row, gvk, object, list);
      // Lists of all namespaces have a path of their own.
      if (action.verb === 'list' && row.namespaced) {
        this.operation(`${root}/${row.plural}`, action, row, gvk, object, list);
      }
    }
    for (const subresource of row.subresources) {
      const path = `${collection}/{name}/${subresource}`;
      const connection = connectionOf(row, subresource);
      if (connection === undefined) this.addSubresource(path, row, subresource, object);
      else this.addConnection(path, row, subresource, connection);
    }
  }

  /** `object`: the schema of the row's kind. */
  private addSubresource(path: string, row: ResourceKind, subresource: string, object: Schema): void {
    const { kind, verbs, group = row.group, version = row.version } = subresourceOf(row, subresource);
    const gvk = { group, version, kind };
    const schema = kind === row.kind ? object : this.collector.addReview(definitionOf(gvk), gvk);
    for (const action of ACTIONS) {
      if (action.verb === 'delete' || action.verb === 'list' || !verbs.includes(action.verb)) continue;
      this.operation(path, action, row, gvk, schema, schema, subresource);
    }
  }

  private addConnection(path: string, row: ResourceKind, subresource: string, connection: Connection): void {
    const gvk = { group: row.group, version: row.version, kind: subresourceOf(row, subresource).kind };
    for (const below of connection.hasPaths ? ['', '/{path}'] : ['']) {
      const item = this.pathItem(`${path}${below}`);
      for (const method of connection.methods) {
        const tail = `${capital(subresource)}${below === '' ? '' : 'WithPath'}`;
        const name = `${row.namespaced ? 'Namespaced' : ''}${row.kind}${tail}`;
        const id =
          connection.action === 'get'
            ? `read${groupName(row)}${name}`
            : `connect${groupName(row)}${capital(method)}${name}`;
        const parameters = Object.entries(connection.query).map(([query, type]) => ({
          name: query,
          in: 'query',
          ...this.typed(type),
        }));
        item[method] = {
          description: `${connection.action} ${subresource} of ${row.kind}`,
          operationId: id,
          parameters,
          responses: { '200': this.response({ type: 'string' }, connection.mediaType) },
          'x-kubernetes-action': connection.action,
          'x-kubernetes-group-version-kind': gvk,
        };
      }
    }
  }

  addReview({ group, version, kind, plural, namespaced }: Review): void {
    const gvk = { group, version, kind };
    const object = this.collector.addReview(`io.k8s.api.${group.split('.')[0]}.${version}.${kind}`, gvk);
    const root = rootPath({ group, version });
    const path = namespaced ? `${root}/namespaces/{namespace}/${plural}` : `${root}/${plural}`;
    const create = ACTIONS.find(({ verb }) => verb === 'create');
    if (create !== undefined) this.operation(path, create, { ...gvk, namespaced }, gvk, object, object);
  }

  private operation(
    path: string,
    action: Action,
    row: Named,
    gvk: object,
    object: Schema,
    list: Schema,
    subresource = '',
  ): void {
    const answer =
      action.answer === 'list'
        ? list
        : action.answer === 'status'
          ? this.collector.reference(`${META}.Status`)
          : object;
    const allNamespaces = row.namespaced && !path.includes('{namespace}');
    const item = this.pathItem(path);
    item[action.method] = {
      description: `${action.verb} ${subresource === '' ? row.kind : `${subresource} of ${row.kind}`}`,
      operationId: operationId(action, row, subresource, allNamespaces),
      ...this.parameters(action),
      ...this.body(action, object, row.custom === undefined ? PATCH_TYPES : CUSTOM_PATCH_TYPES),
      responses: { '200': this.response(answer) },
      'x-kubernetes-action': action.action,
      'x-kubernetes-group-version-kind': gvk,
    };
  }

  private pathItem(path: string): Record<string, unknown> {
    const existing = getOwn(this.paths, path);
    if (existing !== undefined) return existing;
    const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');
    const item: Record<string, unknown> =
      names.length === 0
        ? {}
        : { parameters: names.map((name) => ({ name, in: 'path', required: true, ...this.typed('string') })) };
    setOwn(this.paths, path, item);
    return item;
  }

  private typed(type: string): object {
    return this.version === 'v3' ? { schema: { type, uniqueItems: true } } : { type, uniqueItems: true };
  }

  private parameters(action: Action): object {
    const query = action.parameters.map((name) => ({
      name,
      in: 'query',
      description: getOwn(QUERY, name)?.about ?? 'Apply even where another manager owns the field.',
      ...this.typed(getOwn(QUERY, name)?.type ?? 'boolean'),
    }));
    if (this.version === 'v2' && action.body !== undefined) {
      return {
        parameters: [
          { name: 'body', in: 'body', required: action.body !== 'options', schema: { type: 'object' } },
          ...query,
        ],
      };
    }
    return query.length === 0 ? {} : { parameters: query };
  }

  private body(action: Action, object: Schema, patchTypes: readonly string[]): object {
    if (action.body === undefined) return {};
    const types = action.body === 'patch' ? patchTypes : [JSON_TYPE];
    if (this.version === 'v2') return { consumes: types };
    const schema =
      action.body === 'object'
        ? object
        : this.collector.reference(action.body === 'patch' ? `${META}.Patch` : `${META}.DeleteOptions`);
    return { requestBody: { content: Object.fromEntries(types.map((type) => [type, { schema }])) } };
  }

  private response(schema: Schema, type = JSON_TYPE): object {
    return this.version === 'v3'
      ? { description: 'OK', content: { [type]: { schema } } }
      : { description: 'OK', schema };
  }
}

function operationId(action: Action, row: Named, subresource: string, allNamespaces: boolean): string {
  const verb = action.verb === 'get' ? 'read' : action.verb === 'update' ? 'replace' : action.verb;
  const scope = row.namespaced && !allNamespaces ? 'Namespaced' : '';
  const tail = allNamespaces ? 'ForAllNamespaces' : capital(subresource);
  const [start, many] = action.verb === 'deletecollection' ? ['delete', 'Collection'] : [verb, ''];
  return `${start}${groupName(row)}${many}${scope}${row.kind}${tail}`;
}

/** "CoreV1", "AppsV1": the group and version in the name of an operation. */
function groupName({ group, version }: Pick<Named, 'group' | 'version'>): string {
  const name = group === '' ? 'Core' : capital((group.split('.')[0] ?? '').toLowerCase());
  return `${name}${capital(version)}`;
}

function capital(word: string): string {
  return word === '' ? '' : `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}

const INFO = { title: 'Kubernetes', version: 'v1.34.0' };

/** The whole API in one OpenAPI v2 (Swagger) document. */
export function openapiV2(kinds: readonly ResourceKind[]): object {
  const builder = new DocumentBuilder('v2');
  for (const row of kinds) builder.add(row);
  for (const review of REVIEWS) builder.addReview(review);
  return { swagger: '2.0', info: INFO, paths: builder.paths, definitions: builder.collector.schemas };
}

/** One group and version ("v1", "coordination.k8s.io/v1"); undefined when nothing of it is served. */
export function openapiV3(kinds: readonly ResourceKind[], wanted: string): object | undefined {
  const rows = kinds.filter((row) => groupVersion(row) === wanted);
  const reviews = REVIEWS.filter((one) => groupVersion(one) === wanted);
  if (rows.length === 0 && reviews.length === 0) return undefined;
  const builder = new DocumentBuilder('v3');
  for (const row of rows) builder.add(row);
  for (const review of reviews) builder.addReview(review);
  return { openapi: '3.0.0', info: INFO, paths: builder.paths, components: { schemas: builder.collector.schemas } };
}

/** Which v3 documents there are. `hash` changes when they do: clients cache a document under it for good. */
export function openapiV3Index(
  kinds: readonly ResourceKind[],
  hash: (groupVersion: string) => string,
  remote: readonly RemoteVersion[] = [],
): object {
  const roots = new Map([...kinds, ...REVIEWS].map((row) => [rootPath(row).slice(1), groupVersion(row)]));
  return {
    paths: Object.fromEntries(
      [
        ...[...roots].map(([root, of]) => [root, `?hash=${hash(of)}`]),
        // Without a hash: another server's document is read each time.
        ...remote.filter((one) => one.isCurrent).map((one) => [rootPath(one).slice(1), '']),
      ].map(([root, query]) => [root, { serverRelativeURL: `/openapi/v3/${root}${query}` }]),
    ),
  };
}
