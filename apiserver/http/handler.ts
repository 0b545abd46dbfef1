// One HTTP request from the connection to the answer: who, may they, what is it, and who answers. Every failure becomes
// a Status here. Upgraded connections take the same steps in upgrade.ts.

import type { Duplex } from 'node:stream';
import { errorMessage } from '../../lib/errors.ts';
import type { HealthCheck } from '../../lib/health-checks.ts';
import { type HttpRequest, socketOf } from '../../lib/http-message.ts';
import type { AggregationProxy } from '../aggregation/proxy.ts';
import { type Audit, auditIdOf } from '../audit/audit.ts';
import type { ResponseStatus } from '../audit/event.ts';
import { ANONYMOUS, type Authenticator } from '../auth/authenticate.ts';
import { pathRefusal, refusal } from '../auth/authorize.ts';
import type { Decision } from '../auth/authorizer.ts';
import { auditLine, impersonated } from '../auth/impersonate.ts';
import type { AnonymousConfig } from '../auth/oidc/configuration.ts';
import type { ServiceAccountTokens } from '../auth/tokens.ts';
import { internalError, methodNotAllowed, pathNotFound, StatusError, storeFull, unauthorized } from '../errors.ts';
import { DEBUG_PREFIX } from '../flowcontrol/dump.ts';
import { OverloadError } from '../flowcontrol/overload.ts';
import type { Widths } from '../flowcontrol/widths.ts';
import { LARGE_BYTES } from '../limits.ts';
import type { Metrics } from '../metrics.ts';
import type { Discovery } from '../ports.ts';
import type { RequestProxy } from '../proxy/types.ts';
import type { Caller, Registry } from '../registry/registry.ts';
import { StoreFullError } from '../storage/object-store.ts';
import { isKnown } from './compress.ts';
import { admitConnection } from './connect.ts';
import type { Converter } from './convert-aside.ts';
import type { AdmittedRequest, Exchange, Reply } from './exchange.ts';
import type { RequestGate } from './gate.ts';
import { timeoutError, timeoutOf } from './in-flight.ts';
import { note } from './measure.ts';
import { type Form, failureForm, negotiate } from './negotiate.ts';
import { includeObject, watchOptions } from './options.ts';
import { OwnPages } from './own-pages.ts';
import { indexReply, isServed, PATH_NOT_FOUND } from './paths.ts';
import { PROTOBUF_TYPE } from './protobuf-messages.ts';
import { type ApiRequest, flag, integer, type PathRequest, parseRequest, type ResourceRequest } from './request.ts';
import { attributesOf } from './request-attributes.ts';
import { LongAnswer, type ResourceHandler, rowFor } from './resources.ts';
import { SNAPSHOT_PATH, sendFile } from './snapshot.ts';
import { Visit } from './visit.ts';
import { JSON_LINES, serveWatch, type WatchEncoding } from './watch.ts';

export interface HandlerParts {
  readonly registry: Registry;
  readonly resources: ResourceHandler;
  readonly converter: Converter;
  readonly authenticator: Authenticator;
  readonly tokens: ServiceAccountTokens;
  /** --anonymous-auth, or what --authentication-config says of it; absent: health and versions alone. */
  readonly anonymous?: AnonymousConfig | undefined;
  readonly discovery: Discovery;
  readonly proxy: RequestProxy;
  /** Requests that other API servers answer. */
  readonly aggregation?: AggregationProxy;
  /** Takes a snapshot of the store and returns its file; absent where the store is not this server's. */
  readonly snapshot?: () => Promise<string>;
  readonly metrics: Metrics;
  /** Absent: no request is recorded. */
  readonly audit?: Audit | undefined;
  readonly gate: RequestGate;
  readonly widths: Widths;
  /** The tables of priority and fairness; absent where it is off. */
  readonly flowDump?: (path: string, query: URLSearchParams) => string | undefined;
  /** --request-timeout, ms. */
  readonly requestTimeoutMs: number;
  /** What /healthz, /livez and /readyz check. */
  readonly health: readonly HealthCheck[];
  readonly log: (line: string) => void;
  /** Called with the connection of every caller that has shown a good credential. */
  readonly onAuthenticated: (socket: Duplex) => void;
}

/** Methods that mean nothing to an object. */
const NO_VERB = new Set(['OPTIONS', 'TRACE']);
/** How long a watch may go on for a caller who may no longer. */
const JUDGE_AGAIN_MS = 60_000;
const PLAIN = 'text/plain; charset=utf-8';
const NO_CACHE = { 'Cache-Control': 'no-cache, private' };
/** As upstream: no Status. */
function overloaded({ message, retryAfter }: OverloadError): Reply {
  const headers = { 'Retry-After': String(retryAfter), 'X-Content-Type-Options': 'nosniff' };
  return { code: 429, contentType: PLAIN, body: `${message}\n`, headers };
}

/** Warnings beyond this length together are cut, and left out where that is not enough: clients bound what headers take. */
const MAX_WARNINGS = 4096;
const CUT_WARNING = 256;

/** A warning header's value: RFC 7234 quoting. */
function warningHeader(text: string): string {
  return `299 - "${text.replace(/[\\"]/g, '\\$&').replace(/[^\x20-\x7e]/g, '?')}"`;
}

/** Header values for the warnings, each once. Pure. */
export function warningHeaders(warnings: readonly string[]): string[] {
  const once = [...new Set(warnings)];
  const total = once.reduce((sum, text) => sum + text.length, 0);
  let left = MAX_WARNINGS;
  return once
    .map((text) => (total > MAX_WARNINGS ? text.slice(0, CUT_WARNING) : text))
    .filter((text) => {
      left -= text.length;
      return left >= 0;
    })
    .map(warningHeader);
}

export class Handler {
  readonly #parts: HandlerParts;
  readonly #ownPages: OwnPages;
  readonly #watches = new Set<() => void>();
  readonly #visits = new WeakMap<HttpRequest, Visit>();

  constructor(parts: HandlerParts) {
    this.#parts = parts;
    this.#ownPages = new OwnPages(parts);
  }

  /**
   * From the head alone: who calls, for what, when is it their turn, and may they. Rejects with StatusError. `onVisit` is
   * called before that; the visit is to be ended with the response.
   */
  async receive(
    request: HttpRequest,
    onVisit: (visit: Visit) => void,
    auditId = auditIdOf(request),
  ): Promise<AdmittedRequest> {
    const parsed = parseRequest(request.method ?? 'GET', request.url ?? '/');
    const { audit, gate, registry, requestTimeoutMs, onAuthenticated, log, authenticator } = this.#parts;
    const longRunning = this.isLongRunning({ parsed });
    const attributes = parsed.kind === 'resource' ? attributesOf(parsed) : undefined;
    const { clock } = registry;
    const visit = new Visit({ message: request, parsed, attributes, auditId, longRunning, audit, gate, clock });
    this.#visits.set(request, visit);
    onVisit(visit);
    try {
      const keys = authenticator.prepare(request, clock.now());
      if (keys !== undefined) await keys;
      const identity = this.#identify(parsed, request, { onAuthenticated, log, visit });
      const timeoutMs = longRunning ? undefined : timeoutOf(parsed, requestTimeoutMs);
      if (identity !== undefined || parsed.kind === 'path') {
        const place = visit.enter(identity ?? ANONYMOUS, timeoutMs ?? requestTimeoutMs);
        if (place !== undefined) await visit.waits(place);
      }
      const caller = this.#authorize(identity, parsed, visit);
      return { parsed, caller, visit, timeoutMs };
    } catch (error) {
      visit.refused();
      throw error;
    }
  }

  /** Whether the response has no time limit: a watch, or a proxied response of a kubelet. Pure. */
  isLongRunning({ parsed }: Pick<AdmittedRequest, 'parsed'>): boolean {
    if (this.#parts.aggregation?.serviceFor(parsed) !== undefined) return true;
    if (parsed.kind !== 'resource') return parsed.path === SNAPSHOT_PATH;
    return (parsed.verb === 'watch' && parsed.subresource === '') || this.#parts.proxy.serves(parsed);
  }

  /** The reply, or undefined when the response was taken over. Never throws. */
  async handle(exchange: Exchange): Promise<Reply | undefined> {
    const { visit, timeoutMs } = exchange.admitted;
    if (timeoutMs === undefined) {
      const reply = await this.#answer(exchange);
      visit.audit?.started(reply?.code ?? exchange.response.statusCode);
      return reply;
    }
    const late = Promise.withResolvers<Reply>();
    const left = Math.max(0, timeoutMs - visit.elapsed());
    const timer = this.#parts.registry.clock.after(left, () => {
      note(exchange.response, { terminated: true });
      late.resolve(this.failure(timeoutError()));
    });
    // What is being served goes on, and its reply is dropped.
    const reply = await Promise.race([this.#answer(exchange), late.promise]);
    timer.cancel();
    return reply;
  }

  async #answer(exchange: Exchange): Promise<Reply | undefined> {
    let form: Form = { media: 'json', as: 'object', version: 'v1', pretty: false };
    const warnings: string[] = [];
    try {
      const { request, admitted } = exchange;
      const { parsed, caller } = admitted;
      const { aggregation } = this.#parts;
      const elsewhere = aggregation?.serviceFor(parsed);
      if (aggregation !== undefined && elsewhere !== undefined) {
        await aggregation.forward(elsewhere, caller, exchange);
        return undefined;
      }
      if (parsed.kind === 'path') {
        const own = await this.#ownPages.answer(parsed);
        if (own !== undefined) return own;
        const { snapshot, flowDump } = this.#parts;
        const table = parsed.path.startsWith(DEBUG_PREFIX) ? flowDump?.(parsed.path, parsed.query) : undefined;
        if (table !== undefined && parsed.verb === 'get') {
          return { code: 200, contentType: PLAIN, body: table, headers: NO_CACHE };
        }
        if (parsed.path !== SNAPSHOT_PATH || parsed.verb !== 'get' || snapshot === undefined) {
          return this.#path(parsed, request);
        }
        await sendFile(exchange, await snapshot());
        return undefined;
      }
      // A response that is passed through has any type: an image, from a pod.
      if (this.#parts.proxy.serves(parsed)) form = failureForm(request.headers.accept);
      else form = negotiate(request.headers.accept, flag(parsed.query, 'pretty'));
      return await this.#resource(parsed, caller, form, exchange, warnings);
    } catch (error) {
      return await this.#failure(error, form, warnings, exchange.admitted.visit);
    }
  }

  /** The admission of a connection that is upgraded. Throws what refuses it. */
  admitConnection(request: ResourceRequest, { caller, visit }: AdmittedRequest): Promise<void> {
    // A response that switches protocols has no place for warnings that every client reads.
    return admitConnection(this.#parts.registry, request, caller, () => undefined, visit.audit);
  }

  /** Who calls, by what is stored now; undefined where that is not known. Throws StatusError. */
  #identify(
    parsed: ApiRequest,
    request: HttpRequest,
    report: Pick<HandlerParts, 'onAuthenticated' | 'log'> & { readonly visit?: Visit },
  ): Caller | undefined {
    const { authenticator, registry } = this.#parts;
    const anonymousAuth = this.#isAnonymousAllowed(parsed.path);
    const authenticated = this.#parts.metrics.authentication(() =>
      authenticator.authenticate(request, registry.clock.now()),
    );
    if (authenticated !== undefined) report.onAuthenticated(socketOf(request));
    const anonymous = anonymousAuth === true ? ANONYMOUS : undefined;
    const { visit } = report;
    const isPublic = anonymousAuth !== false && (anonymousAuth === true || parsed.kind === 'path');
    if (authenticated !== undefined || isPublic) visit?.authenticated(authenticated ?? ANONYMOUS);
    const actingAs = this.#actingAs(authenticated ?? ANONYMOUS, parsed, request, report.log);
    if (actingAs !== undefined) visit?.audit?.impersonates(actingAs);
    const caller = actingAs ?? authenticated ?? anonymous;
    if (caller === undefined && (anonymousAuth === false || parsed.kind === 'resource')) throw unauthorized();
    return caller;
  }

  /** Undefined where nothing says so. */
  #isAnonymousAllowed(path: string): boolean | undefined {
    const { anonymous } = this.#parts;
    if (anonymous === undefined) return undefined;
    const { enabled, conditions } = anonymous;
    return enabled && (conditions.length === 0 || conditions.some((one) => one.path === path));
  }

  /** Whether they may, by what is stored now. Throws StatusError. */
  #authorize(caller: Caller | undefined, parsed: ApiRequest, visit?: Visit): Caller {
    const { authorizer } = this.#parts.registry;
    if (parsed.kind === 'path') {
      const decision = authorizer.authorizePath(caller ?? ANONYMOUS, parsed.verb, parsed.path);
      this.#parts.metrics.authorization(decision.allowed);
      annotateDecision(visit, decision);
      if (decision.allowed) return caller ?? ANONYMOUS;
      throw caller === undefined ? unauthorized() : pathRefusal(caller, parsed.verb, parsed.path, decision);
    }
    if (caller === undefined) throw unauthorized();
    const attributes = attributesOf(parsed);
    const decision = authorizer.authorize(caller, attributes);
    this.#parts.metrics.authorization(decision.allowed);
    annotateDecision(visit, decision);
    if (!decision.allowed) throw refusal(caller, attributes, decision);
    return caller;
  }

  /** The impersonated identity, if the request has one; each such request is logged. */
  #actingAs(
    caller: Caller,
    parsed: ApiRequest,
    { method = 'GET', rawHeaders }: HttpRequest,
    log: (line: string) => void,
  ): Caller | undefined {
    const { registry } = this.#parts;
    const request = { method, path: parsed.path };
    try {
      const as = impersonated(caller, rawHeaders, registry.authorizer);
      if (as !== undefined) log(auditLine(caller, as, request));
      return as;
    } catch (error) {
      log(auditLine(caller, `refused: ${errorMessage(error)}`, request));
      throw error;
    }
  }

  async #resource(
    request: ResourceRequest,
    caller: Caller,
    form: Form,
    exchange: Exchange,
    warnings: string[],
  ): Promise<Reply | undefined> {
    const { resources, proxy, registry } = this.#parts;
    if (proxy.serves(request)) {
      // A StatusError here is still answered in the usual way: the response is only taken over once the kubelet answers.
      const { audit } = exchange.admitted.visit;
      await admitConnection(registry, request, caller, (text) => warnings.push(text), audit);
      await proxy.forward(request, exchange);
      return undefined;
    }
    let encoding = JSON_LINES;
    if (form.media === 'protobuf') encoding = (await import('./protobuf-answer.ts')).framesFor(registry, request, form);
    if (request.verb === 'watch' && request.subresource === '') {
      if ((request.query.get('resourceVersion') ?? '') === '') await registry.store.catchUp();
      this.#watch(request, form, encoding, exchange);
      return undefined;
    }
    const { method = 'GET' } = exchange.request;
    if (NO_VERB.has(method)) throw methodNotAllowed();
    const { audit } = exchange.admitted.visit;
    const answer = await resources.handle({
      request,
      caller,
      form,
      contentType: exchange.request.headers['content-type'],
      userAgent: exchange.request.headers['user-agent'],
      body: exchange.body,
      warn: (text) => warnings.push(text),
      audit,
    });
    const isLong = answer instanceof LongAnswer;
    if (request.verb === 'list') this.#parts.widths.listed(request, isLong ? answer.length : answer.text.length);
    if (isLong) return this.#long(answer, form, exchange, warningsOf(warnings));
    audit?.responseObject(answer.text);
    const success = successOf(answer.text);
    if (success !== undefined) audit?.status(success);
    return this.#reply(answer.code, answer.text, form, warningsOf(warnings));
  }

  #watch(request: ResourceRequest, form: Form, encoding: WatchEncoding, exchange: Exchange): void {
    const { registry } = this.#parts;
    const row = rowFor(registry, request);
    const options = {
      watch: watchOptions(row, request),
      render: { form, includeObject: includeObject(request.query, form) },
      encoding,
      timeoutSeconds: integer(request.query, 'timeoutSeconds'),
      clock: registry.clock,
      headers: row.warning === undefined ? {} : { Warning: warningHeader(row.warning) },
      onEvent: this.#parts.metrics.watchEvents(row.group, row.version, row.plural),
    };
    const end = serveWatch(registry, row, exchange.response, options);
    // From here on it costs no more than its events.
    exchange.admitted.visit.leavePlace();
    exchange.hijack();
    this.#watches.add(end);
    const stopRechecks = this.#recheckAccess(request, exchange.request, end);
    // Of a custom kind whose definition has changed: the client starts again, with the new one.
    const stopFollowing = registry.rows.onChange(() => {
      if (registry.row(row.group, row.version, row.plural) !== row) end();
    });
    exchange.response.once('close', () => {
      stopRechecks();
      stopFollowing();
      this.#watches.delete(end);
    });
  }

  /** Calls `end` once the caller's access is revoked, which is checked every minute. Returns a function that stops it. */
  #recheckAccess(parsed: ApiRequest, request: HttpRequest, end: () => void): () => void {
    const { clock } = this.#parts.registry;
    const silent = { onAuthenticated: () => undefined, log: () => undefined };
    const look = (): void => {
      try {
        this.#authorize(this.#identify(parsed, request, silent), parsed);
        timer = clock.after(JUDGE_AGAIN_MS, look);
      } catch (error) {
        end();
        if (!(error instanceof StatusError)) this.#parts.log(`a watch was ended: ${errorMessage(error)}`);
      }
    };
    let timer = clock.after(JUDGE_AGAIN_MS, look);
    return () => timer.cancel();
  }

  #path(request: PathRequest, message: HttpRequest): Reply {
    const { path, verb, query } = request;
    const { tokens, discovery, health } = this.#parts;
    if (path === '/') return indexReply(discovery, health);
    if (!isServed(path, discovery)) return PATH_NOT_FOUND;
    if (verb !== 'get' && verb !== 'head') throw methodNotAllowed();
    if (path === '/.well-known/openid-configuration') {
      return { code: 200, contentType: 'application/json', body: JSON.stringify(tokens.configuration()), headers: {} };
    }
    if (path === '/openid/v1/jwks') {
      return { code: 200, contentType: 'application/jwk-set+json', body: JSON.stringify(tokens.keySet()), headers: {} };
    }
    const document = discovery(path, message.headers.accept ?? '', query);
    if (document === undefined) throw pathNotFound();
    const { status, contentType, body, headers = {} } = document;
    const all = { ...NO_CACHE, ...headers };
    const isCurrent = status === 200 && isKnown(headers['ETag'], message.headers['if-none-match']);
    return isCurrent
      ? { code: 304, contentType, body: '', headers: all }
      : { code: status, contentType, body, headers: all };
  }

  async #failure(error: unknown, form: Form, warnings: readonly string[], visit?: Visit): Promise<Reply> {
    if (error instanceof OverloadError) return overloaded(error);
    let status: StatusError;
    if (error instanceof StatusError) status = error;
    else if (error instanceof StoreFullError) status = storeFull(error.message);
    else {
      this.#parts.log(`request failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      status = internalError(errorMessage(error));
      visit?.audit?.panicked(error);
    }
    visit?.audit?.status(status.status);
    const retry = status.status.details?.retryAfterSeconds;
    const headers = {
      ...(retry === undefined ? {} : { 'Retry-After': String(retry) }),
      ...warningsOf(warnings),
    };
    const text = JSON.stringify(status.status);
    visit?.audit?.responseObject(text);
    // With no thread's help: rendering a failure must not fail itself.
    const pretty = form.pretty && text.length < LARGE_BYTES;
    const media = form.media === 'protobuf' ? 'protobuf' : 'json';
    return this.#reply(status.status.code, text, { ...form, media, pretty }, headers);
  }

  /** The reply to something that failed before there was a request to speak of. */
  failure(error: unknown, message?: HttpRequest): Promise<Reply> {
    const visit = message === undefined ? undefined : this.#visits.get(message);
    return this.#failure(error, failureForm(message?.headers.accept), [], visit);
  }

  /** A long list, as it is where it can be. */
  async #long(answer: LongAnswer, form: Form, exchange: Exchange, headers: Reply['headers']): Promise<Reply> {
    const { audit } = exchange.admitted.visit;
    if (audit?.wantsResponse === true) audit.responseObject(answer.text);
    const whole = { code: answer.code, body: '', headers: { ...NO_CACHE, ...headers } };
    if (form.media === 'protobuf') {
      const { longProtobufOf } = await import('./protobuf-answer.ts');
      return { ...whole, contentType: PROTOBUF_TYPE, parts: await longProtobufOf(answer) };
    }
    if (form.media === 'yaml' || form.pretty) return this.#reply(answer.code, answer.text, form, headers);
    return { ...whole, contentType: 'application/json', parts: [...answer.parts, Buffer.from('\n')] };
  }

  async #reply(code: number, text: string, form: Form, headers: Reply['headers']): Promise<Reply> {
    const { converter } = this.#parts;
    const all = { ...NO_CACHE, ...headers };
    if (form.media === 'yaml') {
      const body = await converter.convert('json-to-yaml', text);
      return { code, contentType: 'application/yaml', body, headers: all };
    }
    if (form.media === 'protobuf') {
      const { protobufOf } = await import('./protobuf-answer.ts');
      return { code, contentType: PROTOBUF_TYPE, body: await protobufOf(text), headers: all };
    }
    const body = form.pretty ? await converter.convert('json-to-pretty', text) : text;
    return { code, contentType: 'application/json', body: `${body}\n`, headers: all };
  }

  /** Ends every watch. */
  close(): void {
    for (const end of this.#watches) end();
    this.#watches.clear();
  }
}

function annotateDecision(visit: Visit | undefined, { allowed, reason }: Decision): void {
  visit?.audit?.annotate('authorization.k8s.io/decision', allowed ? 'allow' : 'forbid');
  visit?.audit?.annotate('authorization.k8s.io/reason', reason);
}

/** A response that is a Status and no object. */
function successOf(text: string): ResponseStatus | undefined {
  if (!text.startsWith('{"kind":"Status"')) return undefined;
  const { status, details, code }: ResponseStatus = JSON.parse(text);
  return { status, details, code };
}

function warningsOf(warnings: readonly string[]): Reply['headers'] {
  return warnings.length === 0 ? {} : { Warning: warningHeaders(warnings) };
}
