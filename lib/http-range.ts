// The part of a body that a request asks for (RFC 9110, section 14: one range of bytes). Pure.

export interface ByteRange {
  readonly start: number;
  /** Behind the last byte. */
  readonly end: number;
}

/** The whole for no header and for units and lists of ranges that are not served; 'unsatisfiable' for what lies behind the end. */
export function parseByteRange(
  header: string | undefined,
  size: number,
): { readonly kind: 'whole' } | ({ readonly kind: 'part' } & ByteRange) | { readonly kind: 'unsatisfiable' } {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? [];
  if (first === '' && last === '') return { kind: 'whole' };
  // The last bytes of it.
  if (first === '') {
    return last === '0'
      ? { kind: 'unsatisfiable' }
      : { kind: 'part', start: Math.max(0, size - Number(last)), end: size };
  }
  const start = Number(first);
  if (start >= size) return { kind: 'unsatisfiable' };
  if (last !== '' && Number(last) < start) return { kind: 'whole' };
  return { kind: 'part', start, end: last === '' ? size : Math.min(size, Number(last) + 1) };
}
