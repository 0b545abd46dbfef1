// The images of a simulated node, and the registry they are pulled from.

import type { RuntimeImage } from '../../../agent/ports/runtime.ts';
import { criError } from './cri/errors.ts';

/** Names that images have; a pull of any other fails. */
export const IMAGES = { present: ['nginx:stable', 'busybox:stable'], inRegistry: ['pulled:1', 'pulled:2'] } as const;

export class SimImages {
  /** By the name that they were pulled by. */
  readonly held = new Map<string, RuntimeImage>();

  constructor() {
    for (const name of IMAGES.present) this.add(name);
  }

  add(name: string): RuntimeImage {
    const repoDigests = [`${name.split(':')[0]}@sha256:${'0'.repeat(8)}`];
    const image = { id: `sha256:${name}`, repoTags: [name], repoDigests, sizeBytes: 1234, pinned: false };
    this.held.set(name, image);
    return image;
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
    if (![...IMAGES.inRegistry, ...IMAGES.present].some((known) => known === name)) {
      throw criError('PullImage', 'NOT_FOUND', `failed to resolve reference "${name}": not found`);
    }
    return this.add(name);
  }
}
