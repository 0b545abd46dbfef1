// The images of a simulated node, and the registry they are pulled from.

import type { RuntimeImage } from '../../agent/ports/runtime.ts';
import { criError } from './cri/errors.ts';

/** Names that images have; a pull of any other fails. */
export const IMAGES = { present: ['nginx:stable', 'busybox:stable'], inRegistry: ['pulled:1', 'pulled:2'] } as const;

export class SimImages {
  /** By the name that they were pulled by. */
  readonly held = new Map<string, RuntimeImage>();

  readonly #pullMs: (name: string) => number | undefined;
  readonly #registry: readonly string[];
  readonly #sizeOf: (name: string) => number;
  /** No registry answers. */
  unreachable = false;

  /** `pullMs`: how long a pull takes; undefined where chance decides. `sizeOf`: bytes. */
  constructor(
    present: readonly string[] = IMAGES.present,
    registry: readonly string[] = [...IMAGES.inRegistry, ...IMAGES.present],
    pullMs: (name: string) => number | undefined = () => undefined,
    sizeOf: (name: string) => number = () => 1234,
  ) {
    this.#sizeOf = sizeOf;
    for (const name of present) this.add(name);
    this.#registry = registry;
    this.#pullMs = pullMs;
  }

  pullMs(name: string): number | undefined {
    return this.#pullMs(name);
  }

  add(name: string): RuntimeImage {
    const repoDigests = [`${name.split(':')[0]}@sha256:${'0'.repeat(8)}`];
    const image = { id: `sha256:${name}`, repoTags: [name], repoDigests, sizeBytes: this.#sizeOf(name), pinned: false };
    this.held.set(name, image);
    return image;
  }

  /** Bytes on the disk; a name more of an image takes none. */
  get bytes(): number {
    const counted = new Set<string>();
    let sum = 0;
    for (const { id, sizeBytes } of this.held.values()) {
      if (!counted.has(id)) sum += sizeBytes;
      counted.add(id);
    }
    return sum;
  }

  /** By name or id. */
  find(reference: string): RuntimeImage | undefined {
    const named = this.held.get(reference);
    if (named !== undefined) return named;
    for (const image of this.held.values()) if (image.id === reference) return image;
    return undefined;
  }

  remove(reference: string): void {
    for (const [name, image] of this.held) if (image.id === reference || name === reference) this.held.delete(name);
  }

  /** From the registry; throws CRI's error where it has no such image. */
  pull(name: string): RuntimeImage {
    if (this.unreachable) {
      throw criError(
        'PullImage',
        'UNKNOWN',
        `failed to pull and unpack image "${name}": failed to do request: dial tcp: connect: connection refused`,
      );
    }
    if (!this.#registry.includes(name)) {
      throw criError('PullImage', 'NOT_FOUND', `failed to resolve reference "${name}": not found`);
    }
    return this.add(name);
  }
}
