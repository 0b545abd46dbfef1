// A request for a resource, from its body to its response: finds the row, reads the options, calls the registry, and
// renders the result in the requested form. Knows verbs and subresources, no connections: watches and proxied requests
// are returned to the caller, which has the connection.

import type { EpochMs } from '../../lib/clock.ts';
import { getOwn } from '../../lib/own-property.ts';
import { nextTurn } from '../../lib/turns.ts';
import type { AdmittedKind } from '../admission/plugin.ts';
import { waiting, whenConverted } from '../admission/steps.ts';
import type { RequestAudit } from '../audit/audit.ts';
import { refusal } from '../auth/authorize.ts';
import type { ReviewParts } from '../auth/reviews.ts';
import { answerReview, prepareReview, reviewKind } from '../auth/reviews.ts';
import { badRequest, methodNotAllowed, notAcceptable, pathNotFound, unsupportedMediaType } from '../errors.ts';
import { scales } from '../kinds/autoscaling/scales.ts';
import type { KubeObject, ResourceKind } from '../kinds/resource.ts';
import { LARGE_BYTES } from '../limits.ts';
import { APPLY_TYPE, PATCH_TYPES, patchType } from '../patch/apply.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { admitRequest } from '../registry/admit.ts';
import { applyObject } from '../registry/apply.ts';
import { decodeObject } from '../registry/decode.ts';
import { deleteWhenAdmitted } from '../registry/delete.ts';
import { listComputed, listInParts, listWhenConverted } from '../registry/list.ts';
import { patchInTurns } from '../registry/patch.ts';
import { type Caller, type ComputedObjects, type Registry, View, type WriteOptions } from '../registry/registry.ts';
import { evictPod } from '../registry/subresources/eviction.ts';
import { finalizeRules } from '../registry/subresources/finalize.ts';
import { bindPod, ephemeralContainersRules } from '../registry/subresources/pods.ts';
import { type ScaleChange, scaleView, updateScale } from '../registry/subresources/scale.ts';
import { requestToken } from '../registry/subresources/token.ts';
import { createWhenAdmitted, statusRules, type UpdateRules, updateWhenAdmitted } from '../registry/write.ts';
import { type ParsedBody, parseApplyBody, parseBody, parsePatchBody } from './body.ts';
import type { Converter } from './convert-aside.ts';
import { ACCEPTED, type Form } from './negotiate.ts';
import { deleteOptions, includeObject, listOptions, managerOf, writeOptions } from './options.ts';
import { PROTOBUF_TYPE } from './protobuf-messages.ts';
import { listFrame, renderItems, renderList, renderObject } from './render.ts';
import { flag, type ResourceRequest, type Verb } from './request.ts';

export interface ResourceCall {
  readonly request: ResourceRequest;
  readonly caller: Caller;
  readonly form: Form;
  readonly contentType: string | undefined;
  /** Names the manager of the fields that the request sets, where it names none itself. */
  readonly userAgent?: string | undefined;
  /** Empty when there is none. */
  readonly body: Uint8Array;
  readonly warn: (text: string) => void;
  /** Absent: the request is not recorded. */
  readonly audit?: RequestAudit | undefined;
}

export interface Answer {
  readonly code: number;
  /** JSON. */
  readonly text: string;
}

/** The text of a long list, in parts. */
export class LongAnswer implements Answer {
  readonly code = 200;
  readonly head: string;
  /** Some items each, with the commas between them; from the second on they begin with one. */
  readonly items: readonly Buffer[];
  readonly tail: string;

  constructor(head: string, items: readonly Buffer[], tail: string) {
    this.head = head;
    this.items = items;
    this.tail = tail;
  }

  get parts(): Buffer[] {
    return [Buffer.from(this.head), ...this.items, Buffer.from(this.tail)];
  }

  get text(): string {
    return Buffer.concat(this.parts).toString();
  }

  /** In bytes. */
  get length(): number {
    return this.parts.reduce((sum, part) => sum + part.length, 0);
  }
}

/** What of a list is read and rendered in one turn, in bytes of JSON. */
const LIST_PART_BYTES = 256 * 1024;

/** Merges by the generated schema, which has no custom kinds. */
const STRATEGIC = 'application/strategic-merge-patch+json';
const CUSTOM_PATCHES = [...PATCH_TYPES.filter((type) => type !== STRATEGIC), APPLY_TYPE];
/** A custom kind has no numbers for its fields. */
const CUSTOM_BODIES = ['application/json', 'application/yaml'];
/** Some milliseconds' work. */
const DELETIONS_PER_TURN = 32;
const EVICTION = { group: 'policy', version: 'v1', kind: 'Eviction' } as const;
const TOKEN_REQUEST = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' } as const;
const BINDING = { group: '', version: 'v1', kind: 'Binding' } as const;
const ALL_VERBS: readonly Verb[] = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
const json = (value: unknown, code = 200): Answer => ({ code, text: JSON.stringify(value) });

/** The row a request is about. Throws 404 and 405. */
export function rowFor(registry: Registry, request: ResourceRequest): ResourceKind {
  const { group, version, resource, namespace, name, verb, subresource } = request;
  const row = registry.row(group, version, resource);
  if (row === undefined) throw pathNotFound();
  if (!row.namespaced && namespace !== '' && resource !== 'namespaces') throw pathNotFound();
  const across = row.namespaced && namespace === '';
  if (across && name !== '') throw pathNotFound();
  if (subresource !== '') {
    if (!row.subresources.includes(subresource)) throw pathNotFound();
    return row;
  }
  if (across && !['list', 'watch', 'deletecollection'].includes(verb)) throw methodNotAllowed();
  if (name === '' && (verb === 'update' || verb === 'patch')) throw methodNotAllowed();
  if (across && verb === 'deletecollection') throw methodNotAllowed();
  if (!(row.verbs ?? ALL_VERBS).includes(verb)) throw methodNotAllowed();
  return row;
}

export class ResourceHandler {
  readonly #registry: Registry;
  readonly #reviews: ReviewParts;
  readonly #converter: Converter;

  constructor(registry: Registry, reviews: ReviewParts, converter: Converter) {
    this.#converter = converter;
    this.#registry = registry;
    this.#reviews = reviews;
  }

  /** Answers anything but watches, logs and streams. Throws StatusError. */
  async handle(call: ResourceCall): Promise<Answer> {
    const { request } = call;
    const { group, version, resource, verb } = request;
    const review = reviewKind(group, version, resource);
    if (review !== undefined) {
      if (verb !== 'create') throw methodNotAllowed();
      if (call.form.as === 'table') throw notAcceptable(ACCEPTED);
      const { value } = await this.#body(call, review);
      await prepareReview(value, this.#reviews);
      return json(answerReview(group, version, resource, value, call.caller, this.#reviews, request.namespace), 201);
    }
    if (group === '' && resource === 'bindings' && verb === 'create') return this.#bind(call, undefined);
    const row = rowFor(this.#registry, request);
    if (row.warning !== undefined) call.warn(row.warning);
    const computed = this.#registry.computed(row);
    if (computed !== undefined) return this.#readComputed(row, call, computed);
    if (isConsistentRead(this.#registry, request)) await this.#registry.store.catchUp();
    if (request.subresource !== '') return this.#subresource(row, call);
    switch (verb) {
      case 'get':
        return this.#show(row, call, this.#registry.get(row, request.namespace, request.name));
      case 'list':
      case 'watch': {
        return this.#list(row, call);
      }
      case 'create':
        return this.#create(row, call);
      case 'update':
      case 'patch':
        return this.#change(row, call);
      case 'delete':
        return this.#delete(row, call);
      case 'deletecollection':
        return this.#deleteCollection(row, call);
    }
  }

  /** Of a row that is not stored, which serves nothing but get and list. */
  async #readComputed(row: ResourceKind, call: ResourceCall, objects: ComputedObjects): Promise<Answer> {
    const { request } = call;
    await objects.ready();
    if (request.verb === 'get') {
      const object = objects.get(request.namespace, request.name);
      return this.#show(row, call, new View(JSON.stringify(object), object));
    }
    const page = listComputed(this.#registry, objects, listOptions(row, request));
    return { code: 200, text: renderList(row, page, this.#render(call)) };
  }

  /** A long list is read and rendered in several turns of the event loop. */
  async #list(row: ResourceKind, call: ResourceCall): Promise<Answer> {
    const render = this.#render(call);
    const options = listOptions(row, call.request);
    if (row.storedAs?.webhook !== undefined) {
      return { code: 200, text: renderList(row, await listWhenConverted(this.#registry, row, options), render) };
    }
    const reading = listInParts(this.#registry, row, options, LIST_PART_BYTES);
    const parts: Buffer[] = [];
    const add = (items: readonly View[]): void => {
      const text = renderItems(row, items, render);
      if (text !== '') parts.push(Buffer.from(parts.length === 0 ? text : `,${text}`));
    };
    for (let step = reading.next(); ; step = reading.next()) {
      if (step.done === true) {
        if (parts.length === 0) return { code: 200, text: renderList(row, step.value, render) };
        add(step.value.items);
        const { head, tail } = listFrame(row, step.value, render);
        return new LongAnswer(head, parts, tail);
      }
      add(step.value);
      await nextTurn();
    }
  }

  #render(call: ResourceCall): { form: Form; includeObject: ReturnType<typeof includeObject>; now: EpochMs } {
    return {
      form: call.form,
      includeObject: includeObject(call.request.query, call.form),
      now: this.#registry.clock.now(),
    };
  }

  async #show(row: ResourceKind, call: ResourceCall, view: View, code = 200): Promise<Answer> {
    return { code, text: await whenConverted(() => renderObject(row, view, this.#render(call))) };
  }

  async #showScale(row: ResourceKind, call: ResourceCall, view: View): Promise<Answer> {
    const scale = await whenConverted(() => scaleView(view.object, row));
    return this.#show(scales, call, scale);
  }

  /** The admission of what is sent to a subresource; returns it as the plugins leave it. */
  async #admit(row: ResourceKind, call: ResourceCall, kind: AdmittedKind, body: unknown): Promise<KubeObject> {
    if (!isObject(body)) throw badRequest('the body of the request is not an object');
    const { namespace, name, subresource } = call.request;
    const metadata = isObject(body['metadata']) ? body['metadata'] : {};
    const apiVersion = kind.group === '' ? kind.version : `${kind.group}/${kind.version}`;
    const object: KubeObject = { ...body, apiVersion, kind: kind.kind, metadata };
    const place = { namespace, name, subresource, kind, object };
    await waiting(admitRequest(this.#registry, row, 'CREATE', place, this.#writeOptions(call)));
    return object;
  }

  #writeOptions({ caller, request, userAgent, warn, audit }: ResourceCall, isApply = false): WriteOptions {
    const { dryRun, fieldValidation, fieldManager } = writeOptions(request.verb, request.query, isApply);
    const annotate = (key: string, value: string): void => audit?.annotate(key, value);
    return { caller, dryRun, fieldValidation, fieldManager: fieldManager || managerOf(userAgent), warn, annotate };
  }

  /** `kind`: what the body is to be. */
  async #body(call: ResourceCall, kind: string): Promise<ParsedBody> {
    if (call.body.length === 0) throw badRequest(emptyBody(kind));
    const parsed = await parseBody(call.contentType, call.body, this.#converter);
    call.audit?.requestObject(parsed.value);
    return parsed;
  }

  async #decoded(row: ResourceKind, call: ResourceCall, options: WriteOptions): Promise<KubeObject> {
    if (row.custom !== undefined && call.contentType?.startsWith(PROTOBUF_TYPE))
      throw unsupportedMediaType(CUSTOM_BODIES);
    const { value, text } = await this.#body(call, row.kind);
    const object = decodeObject(this.#registry.checkBody, row, value, text, options);
    if (call.body.length >= LARGE_BYTES) await nextTurn();
    return object;
  }

  async #create(row: ResourceKind, call: ResourceCall): Promise<Answer> {
    if (call.request.name !== '') throw methodNotAllowed();
    if (row.custom?.noCreate !== undefined) throw methodNotAllowed(row.custom.noCreate);
    const options = this.#writeOptions(call);
    const view = await this.#registry.store.commit(async () => {
      const object = await this.#decoded(row, call, options);
      return createWhenAdmitted(this.#registry, row, call.request.namespace, object, options);
    });
    return this.#show(row, call, view, 201);
  }

  async #change(row: ResourceKind, call: ResourceCall, rules?: UpdateRules): Promise<Answer> {
    const { namespace, name, verb } = call.request;
    const type = verb === 'patch' ? patchType(call.contentType) : undefined;
    if (row.custom !== undefined && type === STRATEGIC) throw unsupportedMediaType(CUSTOM_PATCHES);
    const options = this.#writeOptions(call, type === APPLY_TYPE);
    if (type === APPLY_TYPE) return this.#apply(row, call, options, rules);
    if (type !== undefined) {
      const patch = { type, read: () => readPatch(call), large: call.body.length >= LARGE_BYTES };
      const patched = await this.#registry.store.commit(() =>
        patchInTurns(this.#registry, row, namespace, name, patch, options, rules),
      );
      return this.#show(row, call, patched);
    }
    const view = await this.#registry.store.commit(async () => {
      const object = await this.#decoded(row, call, options);
      return updateWhenAdmitted(this.#registry, row, namespace, name, object, options, rules);
    });
    return this.#show(row, call, view);
  }

  async #apply(row: ResourceKind, call: ResourceCall, options: WriteOptions, rules?: UpdateRules): Promise<Answer> {
    const { namespace, name, query } = call.request;
    const mayCreate = (): void => this.#mayCreate(call);
    const { view, created } = await this.#registry.store.commit(async () => {
      const request = { config: await this.#config(call), force: flag(query, 'force'), mayCreate };
      return applyObject(this.#registry, row, namespace, name, request, options, rules);
    });
    return this.#show(row, call, view, created ? 201 : 200);
  }

  /** The configuration of an apply. */
  async #config(call: ResourceCall): Promise<JsonObject> {
    const config = await parseApplyBody(call.body, this.#converter);
    call.audit?.patch(config);
    if (!isObject(config)) throw badRequest('error decoding YAML: the configuration is not an object');
    return config;
  }

  /** Throws 403 for a caller who may patch but not create. */
  #mayCreate({ caller, request }: ResourceCall): void {
    const { group, resource, subresource, namespace, name } = request;
    const attributes = { verb: 'create', group, resource, subresource, namespace, name };
    const decision = this.#registry.authorizer.authorize(caller, attributes);
    if (!decision.allowed) throw refusal(caller, attributes, decision);
  }

  async #delete(row: ResourceKind, call: ResourceCall): Promise<Answer> {
    const { namespace, name, query } = call.request;
    const body = call.body.length === 0 ? undefined : (await this.#body(call, 'DeleteOptions')).value;
    const write = this.#writeOptions(call);
    const { view, removed } = await this.#registry.store.commit(() =>
      deleteWhenAdmitted(this.#registry, row, namespace, name, deleteOptions(query, body), write),
    );
    // Kinds that are deleted gracefully answer with the object, the others with a Status once it is gone.
    if (!removed || row.strategy.gracePeriodSeconds !== undefined) return this.#show(row, call, view);
    return json(success(row, name, await whenConverted(() => view.object.metadata.uid)));
  }

  async #deleteCollection(row: ResourceKind, call: ResourceCall): Promise<Answer> {
    const { request } = call;
    const body = call.body.length === 0 ? undefined : (await this.#body(call, 'DeleteOptions')).value;
    const options = deleteOptions(request.query, body);
    const page = await listWhenConverted(this.#registry, row, listOptions(row, request));
    for (const [index, { object }] of page.items.entries()) {
      if (index % DELETIONS_PER_TURN === DELETIONS_PER_TURN - 1) await nextTurn();
      const { namespace = '', name = '' } = object.metadata;
      await this.#registry.store.commit(async () => {
        if (this.#registry.find(row, namespace, name) === undefined) return;
        await deleteWhenAdmitted(this.#registry, row, namespace, name, options, this.#writeOptions(call));
      });
    }
    return { code: 200, text: renderList(row, page, this.#render(call)) };
  }

  async #subresource(row: ResourceKind, call: ResourceCall): Promise<Answer> {
    const { subresource, verb, namespace, name } = call.request;
    const rules = rulesOf(row, subresource);
    if (rules !== undefined) {
      if (verb === 'get' && subresource !== 'finalize') {
        return this.#show(row, call, this.#registry.get(row, namespace, name));
      }
      if (verb === 'update' || (verb === 'patch' && subresource !== 'finalize')) return this.#change(row, call, rules);
      throw methodNotAllowed();
    }
    if (subresource === 'scale') return this.#scale(row, call);
    if (verb !== 'create') throw methodNotAllowed();
    switch (`${row.group}/${row.plural}/${subresource}`) {
      case '/pods/binding':
        return this.#bind(call, name);
      case '/pods/eviction': {
        const { value } = await this.#body(call, EVICTION.kind);
        const { query } = call.request;
        await this.#registry.store.commit(async () => {
          const eviction = await this.#admit(row, call, EVICTION, value);
          evictPod(this.#registry, namespace, name, eviction, (options) => deleteOptions(query, options));
        });
        return json(success(undefined, '', undefined), 201);
      }
      case '/serviceaccounts/token': {
        const { value } = await this.#body(call, TOKEN_REQUEST.kind);
        const request = await this.#admit(row, call, TOKEN_REQUEST, value);
        return json(requestToken(this.#registry, this.#reviews.tokens, namespace, name, request), 201);
      }
      default:
        throw pathNotFound();
    }
  }

  async #scale(row: ResourceKind, call: ResourceCall): Promise<Answer> {
    const { verb, namespace, name } = call.request;
    if (verb === 'get') {
      return this.#showScale(row, call, this.#registry.get(row, namespace, name));
    }
    const type = verb === 'patch' ? patchType(call.contentType) : undefined;
    if (verb !== 'update' && type === undefined) throw methodNotAllowed();
    const options = this.#writeOptions(call, type === APPLY_TYPE);
    const view = await this.#registry.store.commit(async () => {
      const change = await this.#scaleChange(call, type);
      return updateScale(this.#registry, row, namespace, name, change, options);
    });
    return this.#showScale(row, call, view);
  }

  /** `type`: of a patch; undefined for an update. */
  async #scaleChange(call: ResourceCall, type: ReturnType<typeof patchType> | undefined): Promise<ScaleChange> {
    if (type === undefined) return { by: 'update', scale: (await this.#body(call, scales.kind)).value };
    if (type !== APPLY_TYPE) return { by: 'patch', patch: readPatch(call), type };
    return { by: 'apply', config: await this.#config(call), force: flag(call.request.query, 'force') };
  }

  async #bind(call: ResourceCall, name: string | undefined): Promise<Answer> {
    const { value } = await this.#body(call, BINDING.kind);
    const metadata = isObject(value) && isObject(value['metadata']) ? value['metadata'] : {};
    const inBody = metadata['name'];
    const pod = name ?? (typeof inBody === 'string' ? inBody : '');
    if (pod === '') throw badRequest('metadata.name: Required value: the pod to bind');
    if (name !== undefined && typeof inBody === 'string' && inBody !== '' && inBody !== name) {
      throw badRequest('name in URL does not match name in Binding object');
    }
    const row = this.#registry.rowOf('', name === undefined ? 'bindings' : 'pods');
    await this.#registry.store.commit(async () => {
      const binding = await this.#admit(row, call, BINDING, value);
      bindPod(this.#registry, call.request.namespace, pod, binding, this.#writeOptions(call));
    });
    return json(success(undefined, '', undefined), 201);
  }
}

/**
 * Whether the read has to show everything that was written before it, by other servers too: where it names no
 * resourceVersion, or one that is not there yet.
 */
export function isConsistentRead(registry: Registry, { verb, query }: ResourceRequest): boolean {
  if (verb !== 'get' && verb !== 'list' && verb !== 'watch') return false;
  const wanted = query.get('resourceVersion') ?? '';
  return wanted === '' || Number(wanted) > registry.store.revision;
}

function readPatch({ body, audit }: ResourceCall): unknown {
  const patch = parsePatchBody(body);
  audit?.patch(patch);
  return patch;
}

function rulesOf(row: ResourceKind, subresource: string): UpdateRules | undefined {
  if (subresource === 'status') return statusRules(row);
  const prepare = getOwn(row.strategy.prepareSubresource, subresource);
  if (prepare !== undefined) return ownRules(row, subresource, prepare);
  if (row.group !== '') return undefined;
  if (row.plural === 'pods' && subresource === 'ephemeralcontainers') return ephemeralContainersRules;
  if (row.plural === 'namespaces' && subresource === 'finalize') return finalizeRules;
  return undefined;
}

/** A subresource whose kind defines what may change. */
function ownRules(row: ResourceKind, subresource: string, prepare: UpdateRules['prepare']): UpdateRules {
  const validate = getOwn(row.strategy.validateSubresource, subresource) ?? (() => []);
  return { subresource, prepare, validate };
}

function emptyBody(kind: string): string {
  const why = "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)";
  return `the object provided is unrecognized (must be of type ${kind}): ${why}`;
}

function success(row: ResourceKind | undefined, name: string, uid: string | undefined): JsonObject {
  const details =
    row === undefined
      ? {}
      : { details: { name, ...(row.group === '' ? {} : { group: row.group }), kind: row.plural, uid } };
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    ...details,
    ...(row === undefined ? { code: 201 } : {}),
  };
}
