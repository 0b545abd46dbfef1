// Sizes of values that are not there yet, as ranges, what is known of the parts of an expression, and the arithmetic of costs: nothing
// overflows. Pure.

/** How many characters, items or entries, from least to most. */
export interface Size {
  readonly min: number;
  readonly max: number;
}

/** As many as upstream counts to. */
const MOST = 2 ** 64;
export const UNKNOWN: Size = { min: 0, max: MOST };

export const exactly = (size: number): Size => ({ min: size, max: size });
export const asSize = (size: Size | undefined): Size => size ?? UNKNOWN;
export const times = (a: number, b: number): number => Math.min(MOST, a * b);
/** Rounded up. */
export const factor = (size: number, by: number): number => Math.min(MOST, Math.ceil(size * by));

export function add(a: Size, b: Size): Size {
  return { min: Math.min(MOST, a.min + b.min), max: Math.min(MOST, a.max + b.max) };
}

export function product(a: Size, b: Size): Size {
  return { min: times(a.min, b.min), max: times(a.max, b.max) };
}

export function union(a: Size, b: Size): Size {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}

/** A declared type as far as costs depend on it. */
export interface SizedType {
  readonly kind: 'scalar' | 'string' | 'bytes' | 'list' | 'map' | 'object' | 'dyn';
  /** Characters, items or entries; 0 where there is no such number. */
  readonly maxElements: number;
  /** Of a list or a map. */
  readonly items?: SizedType;
  /** Of an object, by their names in expressions. */
  readonly fields?: Readonly<Record<string, SizedType>>;
}

/** Sizes of a list's items or a map's keys and values. */
export interface EntrySizes {
  readonly kind: 'list' | 'map';
  readonly key: Size;
  readonly value: Size;
}

/** What a part of an expression costs, and what is known of its result. */
export interface Estimate {
  /** At most. */
  readonly cost: number;
  readonly size: Size | undefined;
  /** The declaration of the value, where it is a part of a variable. */
  readonly place: SizedType | undefined;
  /** Of a list or map that the expression makes. */
  readonly entries: EntrySizes | undefined;
  /** "string", "list<int>", "dyn", … */
  readonly type: string;
}
