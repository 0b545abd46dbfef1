// The directory of static pod manifests of a simulated node: real files, read by the agent's own source, and an inotify
// that may lose what happens; the source looks by itself from time to time.

import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PodSource } from '../../agent/ports/api.ts';
import { createFilePodSource } from '../../agent/sources/file-source.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Dice } from './dice.ts';
import { MANIFESTS, type SimDisk } from './files.ts';

const CHECK_MS = 20_000;

export class SimManifests {
  readonly #directory: string;
  readonly #disk: SimDisk;
  readonly #dice: Dice;
  readonly #listeners = new Set<() => void>();
  /** Names of the files. */
  readonly files = new Set<string>();
  /** How many changes of a hundred inotify does not tell. */
  trouble = 0;

  constructor(disk: SimDisk, dice: Dice) {
    this.#directory = join(disk.root, MANIFESTS);
    this.#disk = disk;
    this.#dice = dice;
    mkdirSync(this.#directory);
  }

  /** A new file in the place of the old one, as editors write: its inode tells it from the one before. */
  write(name: string, text: string): void {
    const temporary = join(this.#directory, `.${name}`);
    writeFileSync(temporary, text);
    renameSync(temporary, join(this.#directory, name));
    this.files.add(name);
    this.#changed();
  }

  remove(name: string): void {
    rmSync(join(this.#directory, name));
    this.files.delete(name);
    this.#changed();
  }

  #changed(): void {
    this.#disk.manifestsChanged();
    if (this.#dice.below(100) < this.trouble) return;
    for (const listener of this.#listeners) listener();
  }

  /** What one agent sees of it. */
  source(nodeName: string, clock: Clock, log: Log): PodSource {
    return createFilePodSource({
      path: MANIFESTS,
      nodeName,
      checkMs: CHECK_MS,
      clock,
      log,
      watch: (_path, onChange) => {
        this.#listeners.add(onChange);
        return { follow: () => Promise.resolve(), close: () => void this.#listeners.delete(onChange) };
      },
    });
  }
}
