// node.status.volumesInUse: attachable volumes that this node uses, or is about to. A volume may be mounted only once
// the cluster has been told, so that nobody detaches it meanwhile. Small, because every agent has it.

export class VolumesInUse {
  readonly #names = new Set<string>();
  #written: ReadonlySet<string> = new Set();
  readonly #waiting = new Map<string, (() => void)[]>();
  /** Called when the list has become another one: the node's status is to be written. */
  onChange: () => void = () => undefined;

  list(): readonly string[] {
    return [...this.#names].sort();
  }

  /** Resolves when the node's status on the server names the volume. */
  add(name: string): Promise<void> {
    if (!this.#names.has(name)) {
      this.#names.add(name);
      this.onChange();
    }
    if (this.#written.has(name)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), resolve]);
    });
  }

  delete(name: string): void {
    if (this.#names.delete(name)) this.onChange();
  }

  /** The status on the server names these. */
  written(names: readonly string[]): void {
    this.#written = new Set(names);
    for (const name of names) {
      for (const resolve of this.#waiting.get(name) ?? []) resolve();
      this.#waiting.delete(name);
    }
  }
}
