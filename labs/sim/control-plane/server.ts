// The embedded API server in memory, without HTTP: its registry, store, defaults, validation, admission and watches, on a
// virtual clock, with uids and generated names from a seed. Requests come in as method, path and body, and are executed in one
// turn each; every change of the store is reported before anything else happens.

import { AsyncLocalStorage } from 'node:async_hooks';
import { generateKeyPairSync } from 'node:crypto';
import { admissionOf } from '../../../apiserver/admission/create.ts';
import { NO_AUTHORIZER } from '../../../apiserver/auth/authorizer.ts';
import { BearerTokens } from '../../../apiserver/auth/bearer-tokens.ts';
import { ServiceAccountTokens } from '../../../apiserver/auth/tokens.ts';
import { discovery } from '../../../apiserver/discovery/index.ts';
import { pathNotFound, StatusError } from '../../../apiserver/errors.ts';
import { Converter } from '../../../apiserver/http/convert-aside.ts';
import { negotiate } from '../../../apiserver/http/negotiate.ts';
import { watchOptions } from '../../../apiserver/http/options.ts';
import { renderObject } from '../../../apiserver/http/render.ts';
import { parseRequest, type ResourceRequest } from '../../../apiserver/http/request.ts';
import { ResourceHandler, rowFor } from '../../../apiserver/http/resources.ts';
import { RESOURCE_KINDS } from '../../../apiserver/kinds/index.ts';
import { RowTable } from '../../../apiserver/kinds/rows.ts';
import type { Discovery } from '../../../apiserver/ports.ts';
import { Registry } from '../../../apiserver/registry/registry.ts';
import { startWatch, type Watch } from '../../../apiserver/registry/watch.ts';
import { checkBody } from '../../../apiserver/schema/decode.ts';
import type { Change } from '../../../apiserver/storage/change.ts';
import { Store } from '../../../apiserver/storage/store.ts';
import type { WatchEvent } from '../../../client/api.ts';
import { ApiError } from '../../../client/errors.ts';
import type { ApiObject } from '../../../client/types.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Dice } from '../dice.ts';

export interface SimRequest {
  readonly method: string;
  /** With its query. */
  readonly target: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
}

/** What a write did, as the rules see it. */
export interface Written {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  /** "apps/deployments", "/pods" */
  readonly resource: string;
  /** As it is now; the last state of one that is gone. Read only. */
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
  /** Who sent the request. */
  readonly actor: string;
}

export interface SimWatch {
  stop(): void;
}

const CALLER = { name: 'simulation', groups: ['system:masters'] };
/** No token is ever read; one key for all servers of a process, since it takes long to make. */
const ACCOUNTS = new ServiceAccountTokens(
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
);
let documents: Discovery | undefined;

/** Objects of watches are shared by all caches: a controller that changes one throws at once. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const each of Object.values(value)) deepFreeze(each);
  return Object.freeze(value);
}

export class SimControlPlaneServer {
  readonly #registry: Registry;
  readonly #store: Store;
  readonly #resources: ResourceHandler;
  readonly #events = new WeakMap<Change, ApiObject>();
  /** A request may wait, for a service account for one, and others are executed meanwhile. */
  readonly #actor = new AsyncLocalStorage<string>();

  constructor(clock: Clock, dice: Dice, onWritten: (written: Written) => void) {
    const kinds = new RowTable(RESOURCE_KINDS);
    documents ??= discovery(kinds);
    const log = (): void => undefined;
    this.#store = new Store(':memory:', { clock, history: { count: 4000 } });
    const uuid = (): string => {
      const hex = Array.from({ length: 4 }, () =>
        Math.floor(dice.next() * 4294967296)
          .toString(16)
          .padStart(8, '0'),
      ).join('');
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
    };
    this.#registry = new Registry({
      store: this.#store,
      clock,
      kinds,
      checkBody,
      continueKey: 'simulation',
      chance: { uuid, below: (limit) => dice.below(limit) },
      admission: admissionOf({}, { nodeAudiences: [], log }),
    });
    const { lookup } = this.#registry;
    const bearers = new BearerTokens({ accounts: ACCOUNTS, lookup, bootstrap: false });
    const reviews = { tokens: ACCOUNTS, bearers, lookup, authorizer: NO_AUTHORIZER, now: () => clock.now() };
    this.#resources = new ResourceHandler(this.#registry, reviews, new Converter({ clock }));
    for (const resource of new Set(kinds.all.map((row) => this.#registry.resource(row)))) {
      this.#store.subscribe(resource, (change) => {
        const { type } = change.record;
        const object = asObject(change.object);
        const previous = change.previous === undefined ? undefined : asObject(change.previous);
        onWritten({ type, resource, object, previous, actor: this.#actor.getStore() ?? '' });
      });
    }
  }

  get revision(): number {
    return this.#store.revision;
  }

  /** Watches that begin before now find their history gone. */
  compact(): void {
    this.#store.compact(this.#store.revision);
  }

  close(): void {
    this.#store.close();
  }

  /** Every stored object of a resource ("apps/deployments"). */
  objects(resource: string): readonly ApiObject[] {
    return Array.from(this.#store.scan(resource), ({ text }) => asObject(JSON.parse(text)));
  }

  resources(): readonly string[] {
    return this.#store.resourcesAt(this.#store.revision);
  }

  /** Executes a request, in this turn where admission does not wait, in the name of `actor`. Rejects with ApiError. */
  execute(actor: string, request: SimRequest): Promise<unknown> {
    return this.#actor.run(actor, () => this.#execute(actor, request));
  }

  async #execute(actor: string, { method, target, body, contentType, accept }: SimRequest): Promise<unknown> {
    const name = `${method} ${target}`;
    try {
      const request = parseRequest(method, target);
      if (request.kind === 'path') {
        const document = documents?.(request.path, accept ?? '', request.query);
        if (document === undefined) throw pathNotFound();
        return JSON.parse(String(document.body));
      }
      const answer = await this.#resources.handle({
        request,
        caller: CALLER,
        form: negotiate(accept, false),
        contentType: contentType ?? 'application/json',
        userAgent: actor,
        body: body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(body)),
        warn: () => undefined,
      });
      return JSON.parse(answer.text);
    } catch (error) {
      if (error instanceof StatusError) throw new ApiError(error.status, error.status.code, name);
      throw error;
    }
  }

  /** Follows a collection. Throws ApiError. `send` is called in the turn of each write. */
  watch(target: string, accept: string, send: (event: WatchEvent<ApiObject>) => void): SimWatch {
    const request = parseRequest('GET', target);
    if (request.kind === 'path') throw new Error(`not a collection: ${target}`);
    const row = rowFor(this.#registry, request);
    const isPartial = accept.includes('as=PartialObjectMetadata');
    const form = negotiate(accept, false);
    const now = this.#registry.clock.now();
    const watch = this.#start(row, request, (type, view, change) => {
      const text = (): string =>
        isPartial ? renderObject(row, view(), { form, includeObject: 'Metadata', now }) : view().text;
      if (change === undefined || isPartial) send({ type, object: deepFreeze(asObject(JSON.parse(text()))) });
      else {
        // Selectors make a change another event for those who use them: only whole ones are shared.
        const known = type === change.record.type ? this.#events.get(change) : undefined;
        const object = known ?? deepFreeze(asObject(JSON.parse(text())));
        if (type === change.record.type) this.#events.set(change, object);
        send({ type, object });
      }
    });
    return { stop: () => watch.stop() };
  }

  #start(
    row: ReturnType<typeof rowFor>,
    request: ResourceRequest,
    send: (
      type: 'ADDED' | 'MODIFIED' | 'DELETED',
      view: Parameters<Parameters<typeof startWatch>[3]['event']>[0]['view'],
      change: Change | undefined,
    ) => void,
  ): Watch {
    try {
      return startWatch(this.#registry, row, watchOptions(row, request), {
        event: ({ type, view, change }) => send(type, view, change),
        bookmark: () => undefined,
        isFull: () => false,
        whenDrained: () => undefined,
        failed: (error) => {
          throw error;
        },
      });
    } catch (error) {
      if (error instanceof StatusError) throw new ApiError(error.status, error.status.code, `WATCH ${request.path}`);
      throw error;
    }
  }
}

/** What is stored has what every object has. */
function asObject(object: unknown): ApiObject {
  return object as ApiObject;
}
