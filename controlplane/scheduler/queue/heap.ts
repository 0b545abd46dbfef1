// A binary heap whose items can be found and removed by their key.

export class Heap<T> {
  readonly #items: T[] = [];
  readonly #places = new Map<string, number>();
  readonly #keyOf: (item: T) => string;
  readonly #compare: (a: T, b: T) => number;

  /** `compare` is negative when `a` comes out before `b`. */
  constructor(keyOf: (item: T) => string, compare: (a: T, b: T) => number) {
    this.#keyOf = keyOf;
    this.#compare = compare;
  }

  get size(): number {
    return this.#items.length;
  }
  get(key: string): T | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.#items[place];
  }
  peek(): T | undefined {
    return this.#items[0];
  }
  items(): readonly T[] {
    return [...this.#items];
  }

  push(item: T): void {
    this.remove(this.#keyOf(item));
    this.#items.push(item);
    this.#rise(this.#items.length - 1, item);
  }

  pop(): T | undefined {
    const [first] = this.#items;
    if (first !== undefined) this.remove(this.#keyOf(first));
    return first;
  }

  remove(key: string): T | undefined {
    const place = this.#places.get(key);
    if (place === undefined) return undefined;
    const removed = this.#items[place];
    this.#places.delete(key);
    const last = this.#items.pop();
    if (last !== undefined && place < this.#items.length) {
      const settled = this.#rise(place, last);
      if (settled === place) this.#sink(place, last);
    }
    return removed;
  }

  #put(place: number, item: T): void {
    this.#items[place] = item;
    this.#places.set(this.#keyOf(item), place);
  }

  #rise(place: number, item: T): number {
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = this.#items[parent];
      if (above === undefined || this.#compare(item, above) >= 0) break;
      this.#put(place, above);
      place = parent;
    }
    this.#put(place, item);
    return place;
  }

  #sink(place: number, item: T): void {
    for (;;) {
      const left = 2 * place + 1;
      const [a, b] = [this.#items[left], this.#items[left + 1]];
      if (a === undefined) break;
      const [child, below] = b !== undefined && this.#compare(b, a) < 0 ? [left + 1, b] : [left, a];
      if (this.#compare(below, item) >= 0) break;
      this.#put(place, below);
      place = child;
    }
    this.#put(place, item);
  }
}
