// The table of rows as the server uses it: the built-in ones, which stay, and rows that definitions add and withdraw at run
// time. Everything else sees one table and is notified when it changes.

import { sameJson } from '../../lib/same-json.ts';
import type { ResourceKind } from './resource.ts';
import { compareVersions } from './versions.ts';

/** What another server serves, for discovery (apidiscovery.k8s.io/v2 has the form of the resources). */
export interface RemoteVersion {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly Readonly<Record<string, unknown>>[];
  /** False where the server does not answer at present. */
  readonly isCurrent: boolean;
}

type Path = Pick<ResourceKind, 'group' | 'version' | 'plural'>;

const pathOf = ({ group, version, plural }: Path): string => `${group}/${version}/${plural}`;

/** By group, the versions of a group from the most stable one, resources by name. */
function inOrder(a: ResourceKind, b: ResourceKind): number {
  if (a.group !== b.group) return a.group < b.group ? -1 : 1;
  return compareVersions(a.version, b.version) || (a.plural < b.plural ? -1 : a.plural > b.plural ? 1 : 0);
}

export class RowTable {
  readonly #fixed: readonly ResourceKind[];
  readonly #owned = new Map<string, readonly ResourceKind[]>();
  readonly #listeners = new Set<() => void>();
  #remote: readonly RemoteVersion[] = [];
  #all: readonly ResourceKind[] = [];
  #rows = new Map<string, ResourceKind>();
  #preferred = new Map<string, ResourceKind>();
  #version = 0;

  constructor(fixed: readonly ResourceKind[]) {
    this.#fixed = fixed;
    this.#index();
  }

  /** In the order in which discovery shows them. */
  get all(): readonly ResourceKind[] {
    return this.#all;
  }

  /** Another number after each change. */
  get version(): number {
    return this.#version;
  }

  row(group: string, version: string, plural: string): ResourceKind | undefined {
    return this.#rows.get(pathOf({ group, version, plural }));
  }

  /** The row of a resource in the version that comes first. */
  preferred(group: string, plural: string): ResourceKind | undefined {
    return this.#preferred.get(`${group}/${plural}`);
  }

  /** Sets the rows of one owner (a definition's name); none withdraws them. A built-in row keeps its path. */
  replace(owner: string, rows: readonly ResourceKind[]): void {
    const before = this.#owned.get(owner) ?? [];
    if (before.length === 0 && rows.length === 0) return;
    if (rows.length === 0) this.#owned.delete(owner);
    else this.#owned.set(owner, rows);
    this.#index();
    this.#changed();
  }

  /** The versions that other servers answer for; a local row goes first. */
  get remote(): readonly RemoteVersion[] {
    return this.#remote;
  }

  setRemote(remote: readonly RemoteVersion[]): void {
    const others = remote.filter(
      ({ group, version }) => !this.#all.some((row) => row.group === group && row.version === version),
    );
    if (sameJson(others, this.#remote)) return;
    this.#remote = others;
    this.#changed();
  }

  #changed(): void {
    this.#version++;
    for (const listener of this.#listeners) listener();
  }

  /** Calls back after each change; returns a function that ends it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #index(): void {
    this.#all = [...this.#fixed, ...[...this.#owned.values()].flat().sort(inOrder)];
    this.#rows = new Map();
    this.#preferred = new Map();
    for (const row of this.#all) {
      if (!this.#rows.has(pathOf(row))) this.#rows.set(pathOf(row), row);
      const key = `${row.group}/${row.plural}`;
      if (!this.#preferred.has(key)) this.#preferred.set(key, row);
    }
  }
}
