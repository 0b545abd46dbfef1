// The audit of requests: which stages of which request become events, and what is in them. Those who serve a request say
// what they know of it; what the policy does not want is not recorded.

import { randomUUID } from 'node:crypto';
import type { Clock, EpochMs } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { type HttpRequest, socketOf } from '../../lib/http-message.ts';
import { getOwn } from '../../lib/own-property.ts';
import type { Caller } from '../auth/attributes.ts';
import { isObject } from '../patch/json-value.ts';
import {
  dropManagedFields,
  eventLine,
  type ObjectReference,
  type ResponseStatus,
  sourceIps,
  userAgentOf,
} from './event.ts';
import type { LineSink } from './log-file.ts';
import { type AuditedRequest, atLeast, evaluate, type Policy, type Stage, type Verdict } from './policy.ts';

/** The values of kube-apiserver's --audit-… flags. */
export interface AuditOptions {
  readonly policyFile?: string;
  /** "-": standard output. */
  readonly logPath?: string;
  /** Megabytes, files and days; 0: 100 megabytes, all files, for good. */
  readonly maxSize?: number;
  readonly maxBackup?: number;
  readonly maxAge?: number;
}

/** From the head of a request. */
export interface AuditHead {
  readonly auditId: string;
  readonly message: HttpRequest;
  readonly request: Omit<AuditedRequest, 'user'>;
  /** Of `request.resource`. */
  readonly version: string;
  /** Watches, logs and streams have an event of their own when their response starts. */
  readonly longRunning: boolean;
  readonly received: EpochMs;
}

/** Takes managedFields out of JSON that may be large. */
export type TrimJson = (text: string) => Promise<string>;

export interface AuditParts {
  readonly policy: Policy;
  readonly sink: LineSink;
  readonly clock: Clock;
  readonly trim: TrimJson;
  readonly log: (line: string) => void;
  /** Called with each event. */
  readonly onEvent?: () => void;
}

/** The client's id of a request, or a new one. */
export function auditIdOf({ headers }: HttpRequest): string {
  const id = headers['audit-id'];
  return typeof id === 'string' && id !== '' ? id : randomUUID();
}

export class Audit {
  readonly #parts: AuditParts;

  constructor(parts: AuditParts) {
    this.#parts = parts;
  }

  /** The record of a request of `user`, which is undefined for one that is not authenticated; undefined: no events. */
  begin(head: AuditHead, user: Caller | undefined): RequestAudit | undefined {
    const verdict = evaluate(this.#parts.policy, { ...head.request, user });
    return verdict.level === 'None' ? undefined : new RequestAudit(this.#parts, head, user, verdict);
  }

  async close(): Promise<void> {
    await this.#parts.sink.close();
  }
}

const EARLY: ResponseStatus = { code: 200, status: 'Success', message: 'Connection closed early' };

export class RequestAudit {
  readonly #parts: AuditParts;
  readonly #head: AuditHead;
  readonly #user: Caller | undefined;
  readonly #verdict: Verdict;
  readonly #annotations = new Map<string, string>();
  #impersonated: Caller | undefined;
  #reference: ObjectReference | undefined;
  #requestObject: string | undefined;
  #responseText: string | undefined;
  #status: ResponseStatus | undefined;
  #hasStarted = false;
  #isOver = false;

  constructor(parts: AuditParts, head: AuditHead, user: Caller | undefined, verdict: Verdict) {
    this.#parts = parts;
    this.#head = head;
    this.#user = user;
    this.#verdict = verdict;
    const { resource } = head.request;
    if (resource !== undefined) {
      this.#reference = { ...resource, version: head.version, uid: '', resourceVersion: '' };
    }
  }

  received(): void {
    this.#write('RequestReceived', this.#head.received);
  }

  impersonates(caller: Caller): void {
    this.#impersonated = caller;
  }

  /** A value that is there stays. */
  annotate(key: string, value: string): void {
    if (!this.#annotations.has(key)) this.#annotations.set(key, value);
  }

  /** The object of the request, as it was sent. */
  requestObject(value: unknown): void {
    const metadata = isObject(value) && isObject(value['metadata']) ? value['metadata'] : {};
    const text = (field: string): string => {
      const found = getOwn(metadata, field);
      return typeof found === 'string' ? found : '';
    };
    if (this.#reference !== undefined) {
      const { namespace, name } = this.#reference;
      this.#reference = {
        ...this.#reference,
        namespace: namespace || text('namespace'),
        name: name || text('name'),
        uid: text('uid'),
        resourceVersion: text('resourceVersion'),
      };
    }
    this.#recordBody(value);
  }

  /** A patch is no object: it names nothing. */
  patch(value: unknown): void {
    this.#recordBody(value);
  }

  #recordBody(value: unknown): void {
    if (!atLeast(this.#verdict.level, 'Request')) return;
    let shown = value;
    if (this.#verdict.omitManagedFields) {
      shown = structuredClone(value);
      dropManagedFields(shown);
    }
    this.#requestObject = JSON.stringify(shown);
  }

  /** The object of the response, JSON without line feeds. */
  responseObject(text: string): void {
    if (this.wantsResponse) this.#responseText = text;
  }

  /** Whether the response's text will be recorded. */
  get wantsResponse(): boolean {
    return atLeast(this.#verdict.level, 'RequestResponse') && this.#reference !== undefined;
  }

  /** The Status that answers the request. */
  status(status: ResponseStatus): void {
    this.#status = status;
  }

  /** The response begins. Idempotent. */
  started(code: number): void {
    if (this.#hasStarted || !this.#head.longRunning) return;
    this.#hasStarted = true;
    this.#status = { ...this.#status, code };
    this.#write('ResponseStarted', this.#parts.clock.now());
  }

  /** The caller was not authenticated: this is the only event. */
  unauthenticated(message: string): void {
    this.#isOver = true;
    this.#status = { message, code: 401 };
    this.#write('ResponseStarted', this.#parts.clock.now());
  }

  /** The request was answered because of a defect of the server. */
  panicked(error: unknown): void {
    this.#isOver = true;
    const message = `APIServer panic'd: ${errorMessage(error)}`;
    this.#status = { code: 500, status: 'Failure', reason: 'InternalError', message };
    this.#write('Panic', this.#parts.clock.now());
  }

  /** The response is over; `code` is undefined when the client left before it began. Idempotent. */
  complete(code: number | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const early = code === undefined && this.#status === undefined;
    this.#status = early ? EARLY : { ...this.#status, code: code ?? this.#status?.code ?? 200 };
    if (!this.#hasStarted && this.#head.longRunning) this.#write('ResponseStarted', this.#parts.clock.now());
    void this.#writeLast(this.#parts.clock.now());
  }

  async #writeLast(at: EpochMs): Promise<void> {
    const text = this.#responseText;
    if (text === undefined || !this.#verdict.omitManagedFields) {
      this.#write('ResponseComplete', at, text);
      return;
    }
    try {
      this.#write('ResponseComplete', at, await this.#parts.trim(text));
    } catch (error) {
      this.#parts.log(`audit event ${this.#head.auditId} has no responseObject: ${errorMessage(error)}`);
      this.#write('ResponseComplete', at);
    }
  }

  #write(stage: Stage, at: EpochMs, responseObject?: string): void {
    const { level, omitStages } = this.#verdict;
    if (omitStages.includes(stage)) return;
    const { auditId, message, request, received } = this.#head;
    const line = eventLine({
      level,
      auditId,
      stage,
      requestUri: message.url ?? '/',
      verb: request.verb,
      user: this.#user,
      impersonatedUser: this.#impersonated,
      sourceIps: sourceIps(message.headers, socketOf(message).remoteAddress),
      userAgent: userAgentOf(message.headers),
      objectRef: this.#reference,
      responseStatus: this.#status,
      requestObject: this.#requestObject,
      responseObject,
      received,
      at,
      annotations: this.#annotations,
    });
    this.#parts.sink.write(line);
    this.#parts.onEvent?.();
  }
}
