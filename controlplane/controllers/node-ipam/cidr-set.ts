// The blocks of addresses that a range is cut into, one for each node: which are taken, and which comes next. As upstream's cidrset:
// a block that became free is not given away again before all behind it. No I/O.

import { addressBits, type Range, rangeText } from '../../../lib/ip-range.ts';

/** Of a range of IPv6 no more blocks than this. Bits. */
const MOST_BITS = 16;

/** Why a range cannot be cut into such blocks, in upstream's words. */
export function cidrSetProblem(range: Range, prefix: number): string | undefined {
  if (range.prefix > prefix) {
    return 'Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size configured for CIDR family';
  }
  if (prefix > addressBits(range.family) || prefix - range.prefix > (range.family === 6 ? MOST_BITS : 31)) {
    return 'New CIDR set failed; the node CIDR size is too big';
  }
  return undefined;
}

export class CidrSet {
  readonly #range: Range;
  readonly #prefix: number;
  /** How many blocks there are. */
  readonly size: number;
  /** How many nodes, or others, have a block: two may, by someone's mistake. */
  readonly #taken = new Map<number, number>();
  #next = 0;

  /** `prefix`: of each block. Only for what has no cidrSetProblem. */
  constructor(range: Range, prefix: number) {
    const host = BigInt(addressBits(range.family) - range.prefix);
    this.#range = { ...range, address: (range.address >> host) << host };
    this.#prefix = prefix;
    this.size = 2 ** (prefix - range.prefix);
  }

  /** The next free block, which is taken from now on; undefined when there is none. */
  allocate(): Range | undefined {
    if (this.#taken.size >= this.size) return undefined;
    while (this.#taken.has(this.#next)) this.#next = (this.#next + 1) % this.size;
    const index = this.#next;
    this.#next = (index + 1) % this.size;
    this.#taken.set(index, 1);
    const { family, address } = this.#range;
    const shift = BigInt(addressBits(family) - this.#prefix);
    return { family, address: address + (BigInt(index) << shift), prefix: this.#prefix };
  }

  /** False where the range is no part of this one. */
  occupy(range: Range): boolean {
    return this.#change(range, (count) => count + 1);
  }

  release(range: Range): boolean {
    return this.#change(range, (count) => count - 1);
  }

  #change(range: Range, change: (count: number) => number): boolean {
    const span = this.#span(range);
    if (span === undefined) return false;
    for (let index = span.first; index <= span.last; index++) {
      const count = change(this.#taken.get(index) ?? 0);
      if (count > 0) this.#taken.set(index, count);
      else this.#taken.delete(index);
    }
    return true;
  }

  /** The blocks that the range touches. */
  #span({ family, address, prefix }: Range): { readonly first: number; readonly last: number } | undefined {
    if (family !== this.#range.family) return undefined;
    const bits = addressBits(family);
    const common = BigInt(bits - Math.min(prefix, this.#range.prefix));
    if (address >> common !== this.#range.address >> common) return undefined;
    if (prefix <= this.#range.prefix) return { first: 0, last: this.size - 1 };
    const block = BigInt(bits - this.#prefix);
    const host = BigInt(bits - prefix);
    const begin = (address >> host) << host;
    const indexOf = (at: bigint): number => Number((at - this.#range.address) >> block);
    return { first: indexOf(begin), last: indexOf(begin + (1n << host) - 1n) };
  }

  toString(): string {
    return rangeText(this.#range);
  }
}
