// Ranges of whole numbers: IPv4 addresses and ports. Pure.

import { isIPv4 } from 'node:net';

/** Both ends are in it. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

const LAST_ADDRESS = 2 ** 32 - 1;

/** "10.0.0.0/8"; undefined for what is no block of IPv4 addresses. */
export function blockRange(block: string): Range | undefined {
  const [base = '', bits = ''] = block.split('/');
  const prefix = Number(bits);
  if (!isIPv4(base) || !/^\d+$/.test(bits) || prefix > 32) return undefined;
  const size = 2 ** (32 - prefix);
  const number = base.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const first = Math.floor(number / size) * size;
  return { first, last: first + size - 1 };
}

/** What is in `from` and in none of `holes`, in ascending order. */
export function subtract(from: Range, holes: readonly Range[]): readonly Range[] {
  const rest: Range[] = [];
  let { first } = from;
  for (const hole of union(holes)) {
    if (hole.last < first) continue;
    if (hole.first > from.last) break;
    if (hole.first > first) rest.push({ first, last: hole.first - 1 });
    first = hole.last + 1;
  }
  if (first <= from.last) rest.push({ first, last: from.last });
  return rest;
}

/** The same numbers in ascending ranges of which no two overlap or touch: nft refuses a set of others. */
export function union(ranges: readonly Range[]): readonly Range[] {
  const merged: Range[] = [];
  for (const range of [...ranges].sort((a, b) => a.first - b.first)) {
    const before = merged.at(-1);
    if (before !== undefined && range.first <= before.last + 1) {
      merged[merged.length - 1] = { first: before.first, last: Math.max(before.last, range.last) };
    } else merged.push(range);
  }
  return merged;
}

export const isEveryAddress = ({ first, last }: Range): boolean => first === 0 && last === LAST_ADDRESS;

const address = (number: number): string => [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.');

/** As nft writes it. */
export function addressText({ first, last }: Range): string {
  return first === last ? address(first) : `${address(first)}-${address(last)}`;
}

export function portText({ first, last }: Range): string {
  return first === last ? String(first) : `${first}-${last}`;
}
