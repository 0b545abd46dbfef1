// A short hash of a template: what tells a deployment's replica sets, and the revisions of stateful and daemon sets, apart by name.
// It is not upstream's number, which is of a print of Go's structures; a controller that takes over finds its sets and revisions by
// their templates, not by the hash. Pure.

const LETTERS = 'bcdfghjklmnpqrstvwxz2456789';

/** The same value with the fields of every object in order, and without those that JSON leaves out. */
export function inOrder(value: unknown): unknown {
  return JSON.parse(canonical(value));
}

/** JSON with the fields of every object in order: a template has one text however it was written. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** FNV-1a, 32 bits. */
function fnv(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

/** Letters that make no words. `collisions` is status.collisionCount, which each name that was taken makes larger. */
export function templateHash(template: unknown, collisions: number | undefined): string {
  const digits = String(fnv(`${canonical(template)}${collisions ?? ''}`));
  return Array.from(Buffer.from(digits), (byte) => LETTERS[byte % LETTERS.length]).join('');
}
