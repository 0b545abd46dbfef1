// Aligns two sequences so that as much as possible of both stands side by side: a longest common subsequence. Pure.

export type Aligned<T> =
  | { readonly kind: 'both'; readonly a: T; readonly b: T }
  | { readonly kind: 'a'; readonly a: T }
  | { readonly kind: 'b'; readonly b: T };

/** Cells of the table; longer sequences are cut into runs of this length each. */
const MAX_LENGTH = 2000;

/** `key` says which entries may stand side by side. Entries that only one has keep their place. */
export function align<T>(a: readonly T[], b: readonly T[], key: (entry: T) => string): Aligned<T>[] {
  const aligned: Aligned<T>[] = [];
  for (let from = 0; from < Math.max(a.length, b.length); from += MAX_LENGTH)
    aligned.push(...alignRun(a.slice(from, from + MAX_LENGTH), b.slice(from, from + MAX_LENGTH), key));
  return aligned;
}

function alignRun<T>(a: readonly T[], b: readonly T[], key: (entry: T) => string): Aligned<T>[] {
  const [keysA, keysB] = [a.map(key), b.map(key)];
  const width = b.length + 1;
  /** Of the rests of both from these places on. */
  const lengths = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] = keysA[i] === keysB[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const aligned: Aligned<T>[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const [first, second] = [a[i], b[j]];
    if (first !== undefined && second !== undefined && keysA[i] === keysB[j]) {
      aligned.push({ kind: 'both', a: first, b: second });
      i++;
      j++;
    } else if (first !== undefined && (second === undefined || at(i + 1, j) >= at(i, j + 1))) {
      aligned.push({ kind: 'a', a: first });
      i++;
    } else if (second !== undefined) {
      aligned.push({ kind: 'b', b: second });
      j++;
    }
  }
  return aligned;
}
