// A client that remembers every write and answers it with what a test says; reads come from a table of paths.

import type { DeleteOptions, ListOf, PatchType, RequestOptions } from '../../client/api.ts';
import { ApiError } from '../../client/errors.ts';
import type { Query } from '../../client/paths.ts';

export interface Write {
  readonly verb: 'create' | 'replace' | 'patch' | 'delete';
  readonly path: string;
  readonly body?: unknown;
  readonly type?: PatchType;
}

export function apiError(code: number, reason: string): ApiError {
  return new ApiError(
    { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message: reason },
    code,
    'x',
  );
}

export class FakeClient {
  readonly writes: Write[] = [];
  /** Path → object or list; a missing one is a 404. */
  readonly objects = new Map<string, unknown>();
  /** Thrown by the next requests, in order; undefined lets one through. */
  readonly failures: (Error | undefined)[] = [];
  /** What a write answers: its body by default. */
  onWrite: (write: Write) => unknown = (write) => write.body;
  reads = 0;

  async get<T>(path: string, _query?: Query, _options?: RequestOptions): Promise<T> {
    this.reads++;
    this.#fail();
    const found = this.objects.get(path);
    if (found === undefined) throw apiError(404, 'NotFound');
    return structuredClone(found) as T;
  }
  list<T>(path: string, query?: Query): Promise<ListOf<T>> {
    return this.get<ListOf<T>>(path, query);
  }
  create<T>(path: string, body: unknown): Promise<T> {
    return this.#write<T>({ verb: 'create', path, body });
  }
  replace<T>(path: string, body: unknown): Promise<T> {
    return this.#write<T>({ verb: 'replace', path, body });
  }
  patch<T>(path: string, body: unknown, type: PatchType): Promise<T> {
    return this.#write<T>({ verb: 'patch', path, body, type });
  }
  delete<T>(path: string, options: DeleteOptions = {}): Promise<T> {
    return this.#write<T>({ verb: 'delete', path, body: options });
  }

  async #write<T>(write: Write): Promise<T> {
    this.#fail();
    this.writes.push(structuredClone(write));
    return this.onWrite(write) as T;
  }

  #fail(): void {
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
  }
}
