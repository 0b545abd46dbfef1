// nodelet's side of the benchmark, as a user sees it: pods are created at the API server and every moment is the
// arrival of a watch event in this process.

import type { ApiClient } from '../../client/api.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Container, Pod } from '../../client/types.ts';

type Volumes = NonNullable<Pod['spec']['volumes']>;
type Seen = (pod: Pod, deleted: boolean) => void;

export interface PodTemplate {
  readonly image: string;
  readonly command: readonly string[];
}

export class BenchPods {
  readonly #client: ApiClient;
  readonly #namespace: string;
  readonly #template: PodTemplate;
  readonly #stopped = new AbortController();
  readonly #listeners = new Map<string, Set<Seen>>();
  #watching: Promise<void> | undefined;

  constructor(client: ApiClient, namespace: string, template: PodTemplate) {
    this.#client = client;
    this.#namespace = namespace;
    this.#template = template;
  }

  #path(name?: string): string {
    return resourcePath('v1', 'pods', { namespace: this.#namespace, ...(name === undefined ? {} : { name }) });
  }

  /** Opens the watch that all measurements listen to. */
  async start(): Promise<void> {
    const list = await this.#client.list<Pod>(this.#path());
    const query = { resourceVersion: list.metadata.resourceVersion ?? '', allowWatchBookmarks: true };
    this.#watching = this.#follow(query);
  }

  async #follow(query: Record<string, string | boolean>): Promise<void> {
    for await (const event of this.#client.watch<Pod>(this.#path(), query, this.#stopped.signal)) {
      if (event.type === 'ERROR') throw new Error(`the benchmark's watch broke: ${event.object.message}`);
      if (event.type === 'BOOKMARK') continue;
      const listeners = this.#listeners.get(event.object.metadata.name) ?? [];
      for (const listener of [...listeners]) listener(event.object, event.type === 'DELETED');
    }
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#watching;
  }

  /** Resolves with the moment (performance.now) at which `holds` was first true of the pod. */
  when(name: string, what: string, holds: (pod: Pod, deleted: boolean) => boolean, limitMs = 120_000): Promise<number> {
    return new Promise((resolve, reject) => {
      const listeners = this.#listeners.get(name) ?? new Set<Seen>();
      this.#listeners.set(name, listeners);
      const timer = setTimeout(() => {
        listeners.delete(listener);
        reject(new Error(`${name} was not seen ${what} within ${limitMs} ms`));
      }, limitMs);
      const listener: Seen = (pod, deleted) => {
        if (!holds(pod, deleted)) return;
        const at = performance.now();
        clearTimeout(timer);
        listeners.delete(listener);
        resolve(at);
      };
      listeners.add(listener);
    });
  }

  /** Creates the pod and returns ms from the request to Running seen by the watch. */
  async create(name: string, volumes: Volumes = [], more: Partial<Container> = {}): Promise<number> {
    const running = this.when(name, 'Running', (pod) => pod.status?.phase === 'Running');
    const started = performance.now();
    await this.#client.create<Pod>(this.#path(), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: this.#namespace },
      spec: {
        volumes,
        containers: [
          {
            name: 'main',
            image: this.#template.image,
            command: [...this.#template.command],
            volumeMounts: volumes.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` })),
            ...more,
          },
        ],
      },
    });
    return (await running) - started;
  }

  /** Calls `kill` and returns ms from then to a status that shows the container's end. */
  async exit(name: string, kill: () => void): Promise<number> {
    const ended = this.when(name, 'terminated', (pod) => {
      const state = pod.status?.containerStatuses?.[0];
      return state?.state?.terminated !== undefined || (state?.restartCount ?? 0) > 0;
    });
    const started = performance.now();
    kill();
    return (await ended) - started;
  }

  /** Resolves when the container that exited runs again. */
  async restarted(name: string): Promise<void> {
    const running = (pod: Pod): boolean => {
      const status = pod.status?.containerStatuses?.[0];
      return (status?.restartCount ?? 0) > 0 && status?.state?.running !== undefined;
    };
    const seen = this.when(name, 'running again', running);
    // It may be so already; then no more events come.
    if (running(await this.get(name))) return;
    await seen;
  }

  /** Deletes, for a container that ends at once on TERM, and returns ms from the request to the object's end. */
  async delete(name: string): Promise<number> {
    const gone = this.when(name, 'gone', (_pod, deleted) => deleted);
    const started = performance.now();
    await this.#client.delete(this.#path(name));
    return (await gone) - started;
  }

  /** The runtime's id of the pod's container. */
  async containerId(name: string): Promise<string> {
    const id = (await this.get(name)).status?.containerStatuses?.[0]?.containerID?.replace(/^.*:\/\//, '');
    if (id === undefined) throw new Error(`the status of ${name} has no container id`);
    return id;
  }

  get(name: string): Promise<Pod> {
    return this.#client.get<Pod>(this.#path(name));
  }
}
