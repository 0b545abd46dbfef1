// Watches one pod at the API server and lets the demo wait for a state, with a deadline and without polling.

import type { ApiClient } from '../../client/api.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Pod } from '../../client/types.ts';
import { elapsedMs, plusMs, systemClock } from '../../lib/clock.ts';

type Check = (pod: Pod | undefined) => boolean;

export class PodWatch {
  readonly #stopped = new AbortController();
  readonly #waiting = new Set<() => void>();
  #pod: Pod | undefined;
  #failure: unknown;
  #running: Promise<void> | undefined;

  /** The pod as last seen; undefined before it exists and after it is gone. */
  get pod(): Pod | undefined {
    return this.#pod;
  }

  async start(client: ApiClient, namespace: string, name: string): Promise<void> {
    const path = resourcePath('v1', 'pods', { namespace });
    const query = { fieldSelector: `metadata.name=${name}` };
    const list = await client.list<Pod>(path, query);
    this.#pod = list.items[0];
    const from = { ...query, resourceVersion: list.metadata.resourceVersion ?? '' };
    this.#running = this.#follow(client, path, from).catch((error: unknown) => {
      this.#failure = error;
      for (const wake of this.#waiting) wake();
    });
  }

  async #follow(client: ApiClient, path: string, query: Record<string, string>): Promise<void> {
    for await (const event of client.watch<Pod>(path, query, this.#stopped.signal)) {
      if (event.type === 'ERROR') throw new Error(event.object.message ?? 'the watch broke');
      if (event.type === 'BOOKMARK') continue;
      this.#pod = event.type === 'DELETED' ? undefined : event.object;
      for (const wake of this.#waiting) wake();
    }
  }

  /** Resolves once `check` holds of the pod; rejects after `limitMs` with what was last seen. */
  async until(what: string, check: Check, limitMs: number): Promise<Pod | undefined> {
    const deadline = plusMs(systemClock.monotonic(), limitMs);
    // Not `poll`: an event of the watch wakes it, and only that.
    while (!check(this.#pod)) {
      if (this.#failure !== undefined) throw this.#failure;
      const left = elapsedMs(systemClock.monotonic(), deadline);
      if (left <= 0) {
        const seen = this.#pod === undefined ? 'no such pod' : JSON.stringify(this.#pod.status);
        throw new Error(`waited ${limitMs / 1000} s for ${what}; last seen: ${seen}`);
      }
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          this.#waiting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, left);
        this.#waiting.add(wake);
      });
    }
    return this.#pod;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }
}
