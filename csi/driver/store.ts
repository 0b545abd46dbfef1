// The driver's records on disk and in memory: one JSON file per volume, snapshot and volume on this node, replaced
// atomically, read once at start. Knows where the images are, and never reads one.
//
//   volumes/<id>/volume.json + data.img     snapshots/<id>/snapshot.json + data.img     node/<volume id>.json

import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readFileIfExists, replaceTextFile, writeFileAtomic } from '../../lib/atomic.ts';
import { UserError } from '../../lib/errors.ts';
import { removeTree } from '../../lib/remove-tree.ts';
import type { NodeRecord, SnapshotRecord, VolumeRecord } from './records.ts';

const IMAGE = 'data.img';

export class Store {
  readonly stateDir: string;
  readonly #volumes = new Map<string, VolumeRecord>();
  readonly #snapshots = new Map<string, SnapshotRecord>();
  readonly #node = new Map<string, NodeRecord>();

  private constructor(stateDir: string) {
    this.stateDir = stateDir;
  }

  /**
   * Reads the records. Directories without one are left by a CreateVolume or DeleteVolume that was killed
   * half-way: no caller knows of them, and they are removed. Rejects with UserError for a record that is damaged.
   */
  static async open(stateDir: string): Promise<Store> {
    const store = new Store(stateDir);
    for (const part of ['volumes', 'snapshots', 'node']) {
      await mkdir(join(stateDir, part), { recursive: true, mode: 0o700 });
    }
    await store.#load('volumes', 'volume.json', store.#volumes);
    await store.#load('snapshots', 'snapshot.json', store.#snapshots);
    for (const name of await readdir(join(stateDir, 'node'))) {
      const file = join(stateDir, 'node', name);
      // What an interrupted atomic write leaves is no record.
      if (!name.endsWith('.json')) await rm(file, { force: true });
      else store.#node.set(name.slice(0, -'.json'.length), await readRecord(file));
    }
    return store;
  }

  async #load<T>(part: 'volumes' | 'snapshots', file: string, into: Map<string, T>): Promise<void> {
    for (const id of await readdir(join(this.stateDir, part))) {
      const directory = join(this.stateDir, part, id);
      if ((await readFileIfExists(join(directory, file))) === undefined) {
        await removeTree(directory);
      } else into.set(id, await readRecord(join(directory, file)));
    }
  }

  volume(id: string): VolumeRecord | undefined {
    return this.#volumes.get(id);
  }
  volumes(): readonly VolumeRecord[] {
    return [...this.#volumes.values()];
  }
  snapshot(id: string): SnapshotRecord | undefined {
    return this.#snapshots.get(id);
  }
  snapshots(): readonly SnapshotRecord[] {
    return [...this.#snapshots.values()];
  }
  onNode(volumeId: string): NodeRecord | undefined {
    return this.#node.get(volumeId);
  }
  allOnNode(): readonly NodeRecord[] {
    return [...this.#node.values()];
  }

  volumeDirectory(id: string): string {
    return join(this.stateDir, 'volumes', id);
  }
  volumeImage(id: string): string {
    return join(this.volumeDirectory(id), IMAGE);
  }
  snapshotDirectory(id: string): string {
    return join(this.stateDir, 'snapshots', id);
  }
  snapshotImage(id: string): string {
    return join(this.snapshotDirectory(id), IMAGE);
  }

  /** Survives a loss of power: users' data depends on it. */
  async putVolume(record: VolumeRecord): Promise<void> {
    await writeFileAtomic(join(this.volumeDirectory(record.id), 'volume.json'), json(record), 0o600, true);
    this.#volumes.set(record.id, record);
  }

  /** The record first: without it the rest is rubbish that the next start removes. */
  async removeVolume(id: string): Promise<void> {
    await rm(join(this.volumeDirectory(id), 'volume.json'), { force: true });
    this.#volumes.delete(id);
    await removeTree(this.volumeDirectory(id));
  }

  async putSnapshot(record: SnapshotRecord): Promise<void> {
    await writeFileAtomic(join(this.snapshotDirectory(record.id), 'snapshot.json'), json(record), 0o600, true);
    this.#snapshots.set(record.id, record);
  }

  async removeSnapshot(id: string): Promise<void> {
    await rm(join(this.snapshotDirectory(id), 'snapshot.json'), { force: true });
    this.#snapshots.delete(id);
    await removeTree(this.snapshotDirectory(id));
  }

  /**
   * Removes a record without content. Need not survive a reboot: mounts and loop devices do not either. A record that
   * shrinks can be written on a full disk, too: a volume can always be unpublished.
   */
  async putOnNode(record: NodeRecord): Promise<void> {
    const file = join(this.stateDir, 'node', `${record.volumeId}.json`);
    if (record.staging === undefined && record.publications.length === 0) {
      await rm(file, { force: true });
      this.#node.delete(record.volumeId);
      return;
    }
    await replaceTextFile(file, json(record), 0o600);
    this.#node.set(record.volumeId, record);
  }
}

function json(record: object): string {
  return `${JSON.stringify(record)}\n`;
}

async function readRecord<T>(file: string): Promise<T> {
  const text = await readFile(file, 'utf8');
  try {
    // Written by putX of this file alone.
    return JSON.parse(text) as T;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UserError(`${file} is damaged (${error.message}): move it away, or restore it`);
  }
}
