// What a recorded runtime answers: finds the recorded call for a request, and keeps the history consistent. Calls that do
// something move the recording on; calls that look are answered as of the place that has been reached. Decides; sends nothing.

import { type DecodedCall, decodeCall, decodeOrShow } from './decoded.ts';
import { isRead } from './diff.ts';
import { maskMessage } from './mask.ts';
import { isMessage, Names } from './names.ts';
import type { RecordedCall } from './recording.ts';
import type { MethodType, Schema } from './schema.ts';
import { type Json, type JsonMessage, rewriteTexts } from './wire.ts';

export interface StreamMessage {
  readonly bytes: Buffer;
  /** The recorded call that moved the recording on before this message; undefined: the stream's own beginning. */
  readonly after: number | undefined;
  /** ms between the two. */
  readonly delayMs: number;
}

export type ReplayAnswer =
  | {
      readonly kind: 'unary';
      /** Undefined for a call that failed. */
      readonly response: Buffer | undefined;
      readonly status: number;
      readonly message: string;
      readonly delayMs: number;
    }
  | { readonly kind: 'stream'; readonly messages: readonly StreamMessage[] }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string };

const NOT_FOUND = 5;
const UNIMPLEMENTED = 12;
/** Their answers are addresses of a streaming server that is not there. */
const STREAMING = new Set(['Exec', 'Attach', 'PortForward']);
/** What a runtime says of itself: the request has a version or a switch, which clients set differently. */
const OF_ITSELF = new Set(['Version', 'Status', 'RuntimeConfig', 'ImageFsInfo']);
const CREATES = new Set(['RunPodSandbox', 'CreateContainer']);
/** UIDs and ids: what differs between two runs and is handed back to the runtime later. */
const TOKENS =
  /(?<![0-9a-z])[0-9a-f]{64}(?![0-9a-z])|[0-9a-f]{8}([-_])[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}/g;

interface Entry {
  readonly decoded: DecodedCall;
  readonly key: string;
  readonly endAt: number;
}

/** Both ways between what is recorded and what this run's client says. */
class Bindings {
  readonly #toLive = new Map<string, string>();
  readonly #toRecorded = new Map<string, string>();

  bind(recorded: string, live: string): void {
    this.#toLive.set(recorded, live);
    this.#toRecorded.set(live, recorded);
  }

  live(text: string): string {
    return text.replace(TOKENS, (token) => this.#toLive.get(token) ?? token);
  }

  recorded(text: string): string {
    return text.replace(TOKENS, (token) => this.#toRecorded.get(token) ?? token);
  }
}

function canonical(value: Json): Json {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isMessage(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, canonical(each)]),
  );
}

/** The texts of a message by their places. */
function texts(value: Json, path = ''): Map<string, string> {
  if (typeof value === 'string') return new Map([[path, value]]);
  if (typeof value !== 'object') return new Map();
  return new Map(Object.entries(value).flatMap(([key, each]) => [...texts(each, `${path}/${key}`)]));
}

const isAct = ({ decoded }: Entry): boolean =>
  decoded.type !== undefined && !decoded.type.responseStream && !isRead(decoded.name) && decoded.name !== 'ExecSync';

export interface ReplayOptions {
  readonly schema: Schema;
  /** ms, monotonic. */
  readonly now: () => number;
  /** An id that no one has: 64 hexadecimal digits. */
  readonly newId: () => string;
}

export class ReplayPlan {
  readonly #options: ReplayOptions;
  readonly #names = new Names();
  readonly #byKey = new Map<string, Entry[]>();
  readonly #acts: readonly Entry[];
  readonly #methods = new Set<string>();
  readonly #bindings = new Bindings();
  /** By a recorded call's number: when this run has made it. */
  readonly #matched = new Map<number, number>();
  readonly #used = new Map<string, number>();
  #last: { readonly entry: Entry; readonly at: number } | undefined;

  constructor(calls: readonly RecordedCall[], options: ReplayOptions) {
    this.#options = options;
    const byEnd = [...calls].sort((a, b) => (a.end?.at ?? Infinity) - (b.end?.at ?? Infinity));
    const decoded = byEnd.map((call) => decodeCall(call, options.schema, this.#names));
    decoded.sort((a, b) => a.call.begin - b.call.begin || a.call.id - b.call.id);
    const entries: Entry[] = [];
    for (const each of decoded) {
      this.#methods.add(each.call.method);
      // What has no answer in the recording answers nothing.
      if (each.call.end?.status === undefined && each.type?.responseStream !== true) continue;
      const bytes = each.call.requests[0]?.bytes ?? Buffer.alloc(0);
      const entry = {
        decoded: each,
        key: this.#key(each.call.method, each.type, bytes),
        endAt: each.call.end?.at ?? Infinity,
      };
      entries.push(entry);
      const list = this.#byKey.get(entry.key) ?? [];
      this.#byKey.set(entry.key, list);
      list.push(entry);
    }
    this.#acts = entries.filter(isAct);
  }

  /** When this run made a recorded call; undefined: not yet. */
  matchedAt(call: number): number | undefined {
    return this.#matched.get(call);
  }

  #key(method: string, type: MethodType | undefined, request: Buffer): string {
    if (type === undefined) return `${method} ${request.toString('base64')}`;
    if (OF_ITSELF.has(type.name)) return method;
    const message = this.#recordedForm(decodeOrShow(request, type.request));
    return `${method} ${JSON.stringify(canonical(maskMessage(message, this.#names)))}`;
  }

  #recordedForm(message: JsonMessage): JsonMessage {
    const visit = (value: Json): Json => {
      if (typeof value === 'string') return this.#bindings.recorded(value);
      if (Array.isArray(value)) return value.map(visit);
      return isMessage(value) ? this.#recordedForm(value) : value;
    };
    return Object.fromEntries(Object.entries(message).map(([key, value]) => [key, visit(value)]));
  }

  answer(method: string, request: Buffer): ReplayAnswer {
    const type = this.#options.schema.method(method);
    const name = type?.name ?? method;
    if (!this.#methods.has(method))
      return { kind: 'refused', status: UNIMPLEMENTED, message: `${name} is not in the recording` };
    if (type !== undefined && STREAMING.has(name))
      return { kind: 'refused', status: UNIMPLEMENTED, message: `${name}: a recording has no streaming server` };
    const entries = this.#byKey.get(this.#key(method, type, request));
    const [first] = entries ?? [];
    if (entries === undefined || first === undefined)
      return { kind: 'refused', status: NOT_FOUND, message: `${name} with this request is not in the recording` };
    if (type?.responseStream === true) return this.#stream(entries);
    const entry = isAct(first) ? this.#act(entries, request) : this.#look(entries);
    return this.#unary(entry);
  }

  #unary({ decoded, endAt }: Entry): ReplayAnswer {
    const { call, type } = decoded;
    const bytes = call.responses[0]?.bytes;
    const response =
      bytes === undefined || type === undefined
        ? bytes
        : rewriteTexts(bytes, type.response, (text) => this.#bindings.live(text));
    return {
      kind: 'unary',
      response: call.end?.status === 0 ? (response ?? Buffer.alloc(0)) : undefined,
      status: call.end?.status ?? 0,
      message: this.#bindings.live(call.end?.message ?? ''),
      delayMs: endAt - call.begin,
    };
  }

  /** The next recorded call of this kind; the last one again when there is none left. */
  #act(entries: readonly Entry[], request: Buffer): Entry {
    const { now, newId } = this.#options;
    const key = entries[0]?.key ?? '';
    const used = this.#used.get(key) ?? 0;
    this.#used.set(key, used + 1);
    const entry = entries[Math.min(used, entries.length - 1)];
    if (entry === undefined) throw new RangeError('a recorded call without entries');
    const { type, call, requests, responses } = entry.decoded;
    const live = texts(decodeOrShow(request, type?.request));
    for (const [path, recorded] of texts(requests[0]?.message ?? {})) {
      const [mine = [], theirs = []] = [recorded.match(TOKENS), live.get(path)?.match(TOKENS)].map(
        (each) => each ?? [],
      );
      if (mine.length !== theirs.length) continue;
      for (const [index, token] of mine.entries()) {
        const other = theirs[index];
        // Ids were handed out here, and are bound already.
        if (other !== undefined && this.#bindings.live(token) !== other) this.#bindings.bind(token, other);
      }
    }
    if (used >= entries.length && CREATES.has(entry.decoded.name)) {
      for (const text of texts(responses[0]?.message ?? {}).values())
        for (const token of text.match(TOKENS) ?? []) this.#bindings.bind(token, newId());
    }
    this.#matched.set(call.id, now());
    if (this.#last === undefined || call.begin >= this.#last.entry.decoded.call.begin)
      this.#last = { entry, at: now() };
    return entry;
  }

  /** As of the place that the recording has been moved on to. */
  #look(entries: readonly Entry[]): Entry {
    const last = this.#last;
    const from = last?.entry.endAt ?? 0;
    const next = this.#acts.find(
      ({ decoded: { call } }) => call.begin > (last?.entry.decoded.call.begin ?? -1) && !this.#matched.has(call.id),
    );
    const until = next?.decoded.call.begin ?? Infinity;
    const position = last === undefined ? Infinity : from + this.#options.now() - last.at;
    const here = entries.filter(({ decoded, endAt }) => decoded.call.begin >= from && endAt <= until);
    const before = entries.filter(({ endAt }) => endAt <= until);
    const found = here.filter(({ endAt }) => endAt <= position).at(-1) ?? here[0] ?? before.at(-1) ?? entries[0];
    if (found === undefined) throw new RangeError('a recorded call without entries');
    return found;
  }

  #stream(entries: readonly Entry[]): ReplayAnswer {
    const failed = entries.find(
      ({ decoded }) => (decoded.call.end?.status ?? 0) !== 0 && decoded.responses.length === 0,
    );
    if (failed !== undefined) return this.#unary(failed);
    const messages = entries.flatMap(({ decoded: { call, type } }) =>
      call.responses.map(({ at, bytes }): StreamMessage => {
        const before = this.#acts.filter(({ decoded }) => decoded.call.begin <= at).at(-1);
        return {
          bytes: type === undefined ? bytes : rewriteTexts(bytes, type.response, (text) => this.#bindings.live(text)),
          after: before?.decoded.call.id,
          delayMs: at - (before?.decoded.call.begin ?? call.begin),
        };
      }),
    );
    return { kind: 'stream', messages };
  }
}
