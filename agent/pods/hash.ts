// The identity of a container's definition, kept on the container in the runtime. As the kubelet's since 1.31, only the
// name and the image count: everything else of a running container cannot change, or must not restart it. Pure.

import type { Container, EphemeralContainer } from '../../client/types.ts';

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** 32-bit FNV-1a over the text's UTF-8. */
export function fnv32a(text: string): number {
  let hash = FNV_OFFSET;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, FNV_PRIME) >>> 0;
  return hash;
}

/** JSON as Go's encoder writes a map of strings: sorted keys, and &, <, > escaped. */
function goJson(fields: Readonly<Record<string, string>>): string {
  const toEscape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const sorted = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(Object.fromEntries(sorted)).replace(/[<>&\u2028\u2029]/g, toEscape);
}

/** By definition: it is asked for in every sync of its pod. */
const KNOWN = new WeakMap<object, string>();

/**
 * The kubelet's HashContainer, bit for bit, so that containers of a kubelet keep running when nodelet takes its node
 * over: FNV-32a over Go's dump of the JSON bytes. Hexadecimal, as in the annotation.
 */
export function hashContainer(container: Container | EphemeralContainer): string {
  const known = KNOWN.get(container);
  if (known !== undefined) return known;
  const json = goJson({ name: container.name, image: container.image ?? '' });
  const hash = fnv32a(`([]uint8)[${[...Buffer.from(json)].join(' ')}]`).toString(16);
  KNOWN.set(container, hash);
  return hash;
}
