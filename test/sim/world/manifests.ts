// The directory of static pod manifests of a simulated node, as a source of pods. Manifests are parsed by the agent's own
// parser; a broken one runs nothing.

import type { PodSource } from '../../../agent/ports/api.ts';
import { ManifestError, parsePod } from '../../../agent/sources/manifest.ts';
import type { Pod } from '../../../client/types.ts';
import type { Clock } from '../../../lib/clock.ts';

export class SimManifests {
  readonly #clock: Clock;
  readonly files = new Map<string, string>();
  readonly #listeners = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  write(name: string, text: string): void {
    this.files.set(name, text);
    this.#changed();
  }

  remove(name: string): void {
    this.files.delete(name);
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** What one agent sees of it. */
  source(clock: Clock): PodSource {
    const parsed = new Map<string, Pod | undefined>();
    let unsubscribe = (): void => undefined;
    const read = (name: string, text: string): Pod | undefined => {
      const key = `${name} ${text}`;
      if (!parsed.has(key)) parsed.set(key, this.#parse(name, text));
      return parsed.get(key);
    };
    return {
      name: 'file',
      start: (listener) => {
        const look = (): void => {
          const pods = [...this.files].flatMap(([name, text]) => read(name, text) ?? []);
          listener(new Map(pods.map((pod) => [pod.metadata.uid, pod])));
        };
        const soon = (): void => void clock.after(20, look);
        this.#listeners.add(soon);
        unsubscribe = () => void this.#listeners.delete(soon);
        soon();
      },
      stop: () => unsubscribe(),
    };
  }

  #parse(name: string, text: string): Pod | undefined {
    const seen = new Date(this.#clock.now()).toISOString();
    try {
      return parsePod(text, { source: 'file', location: `/manifests/${name}`, nodeName: 'node-1', seen });
    } catch (error) {
      if (error instanceof ManifestError) return undefined;
      throw error;
    }
  }
}
