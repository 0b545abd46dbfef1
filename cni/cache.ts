// Attachments on disk, so that each can be undone after a crash: `<cacheDir>/attachments/<container
// id>~<interface>@<network>.json`, each file replaced atomically. An entry exists from before the first plugin of an
// ADD runs until the last one of a DEL succeeded. Never runs a plugin.
//
// File calls are synchronous and few: each takes some 20 µs on a quiet machine and 1 ms and more while thirty pods
// start, and the way through the thread pool and back costs even more.

import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryOf, writeFileAtomicSync } from '../lib/atomic.ts';
import { type EpochMs, epochMs } from '../lib/clock.ts';
import { isErrno } from '../lib/errors.ts';
import { isJsonObject, tryParseJson } from './json.ts';
import type { Attachment, JsonObject, NetworkConfigList, PluginConfig } from './types.ts';

const KIND = 'nodelet.cni.attachment/v1';

export interface CachedAttachment extends Attachment {
  /** The configuration it was made with, not the one that is in the conf dir now. */
  readonly list: NetworkConfigList;
  /** `adding` until the whole chain succeeded. */
  readonly state: 'adding' | 'added';
  /** The result so far, in the version of `list`; undefined before the first plugin answered. */
  readonly result: JsonObject | undefined;
  /** Epoch ms of the ADD. */
  readonly createdAt: EpochMs;
}

export interface CacheListing {
  readonly entries: readonly CachedAttachment[];
  /** Files that are not entries, with why. */
  readonly broken: readonly Error[];
}

export class AttachmentCache {
  readonly #dir: string;
  /** `cacheDir` may have other things in it: /var/lib/cni holds those of libcni and host-local. */
  constructor(cacheDir: string) {
    this.#dir = join(cacheDir, 'attachments');
  }

  #path(
    entry: Pick<CachedAttachment, 'containerId' | 'ifName'> & { readonly list: { readonly name: string } },
  ): string {
    // A container id has no "~" (validateAttachment).
    return join(this.#dir, `${entry.containerId}~${entry.ifName}@${entry.list.name}.json`);
  }

  write(entry: CachedAttachment): void {
    const path = this.#path(entry);
    // 0600: it contains CNI_ARGS and annotations of pods.
    writeFileAtomicSync(path, `${JSON.stringify({ kind: KIND, ...entry })}\n`, { file: 0o600, directory: 0o777 });
  }

  /** Removes the attachment's entry. Idempotent. */
  remove(entry: Pick<CachedAttachment, 'containerId' | 'ifName' | 'list'>): void {
    const path = this.#path(entry);
    rmSync(path, { force: true });
    // Of a write that was killed.
    rmSync(temporaryOf(path), { force: true });
  }

  /** The attachments of one container. Rejects when a file of it cannot be understood. */
  ofContainer(containerId: string): readonly CachedAttachment[] {
    const listing = this.#read((name) => name.startsWith(`${containerId}~`));
    const [broken] = listing.broken;
    if (broken !== undefined) throw broken;
    return listing.entries;
  }

  /** `skip`: containers whose files are not read. */
  list(skip: (containerId: string) => boolean = () => false): CacheListing {
    return this.#read((name) => !skip(name.split('~', 1)[0] ?? ''));
  }

  /** Whether there is no entry, and no file in place of one. Reads names alone. */
  isEmpty(): boolean {
    return !namesIn(this.#dir).some(isEntryName);
  }

  #read(isWanted: (name: string) => boolean): CacheListing {
    const entries: CachedAttachment[] = [];
    const broken: Error[] = [];
    for (const name of namesIn(this.#dir)) {
      if (!isEntryName(name) || !isWanted(name)) continue;
      const path = join(this.#dir, name);
      const text = readIfExists(path);
      if (text === undefined) continue;
      const entry = parseEntry(text);
      if (entry === undefined) broken.push(new Error(`${path} is not a cached CNI attachment; remove it by hand`));
      else entries.push(entry);
    }
    return { entries, broken };
  }
}

const isEntryName = (name: string): boolean => name.endsWith('.json');

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isPlugin = (value: unknown): value is PluginConfig => isJsonObject(value) && isText(value['type']);

/** Undefined for text that is not an entry of this version. */
function parseEntry(text: string): CachedAttachment | undefined {
  const raw = tryParseJson(text);
  if (!isJsonObject(raw) || raw['kind'] !== KIND) return undefined;
  const { containerId, netns, ifName, args, capabilityArgs, list, state, result, createdAt } = raw;
  if (!isText(containerId) || !isText(netns) || !isText(ifName) || !isText(args)) return undefined;
  if (!isJsonObject(capabilityArgs) || !isJsonObject(list) || typeof createdAt !== 'number') return undefined;
  if (state !== 'adding' && state !== 'added') return undefined;
  if (result !== undefined && !isJsonObject(result)) return undefined;
  const { name, cniVersion, disableCheck, disableGC } = list;
  const rawPlugins: unknown = list['plugins'];
  // Without the list a DEL would run no plugin, and leave what they made.
  if (!Array.isArray(rawPlugins)) return undefined;
  const plugins: readonly unknown[] = rawPlugins;
  if (!isText(name) || !isText(cniVersion) || !plugins.every(isPlugin)) return undefined;
  return {
    containerId,
    netns,
    ifName,
    args,
    capabilityArgs,
    list: { name, cniVersion, disableCheck: disableCheck === true, disableGC: disableGC === true, plugins },
    state,
    result,
    createdAt: epochMs(createdAt),
  };
}
