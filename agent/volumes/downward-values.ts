// What downward API volumes write: fields of the pod's metadata, and resources of its containers. Pure.

import type { Container, Pod } from '../../client/types.ts';
import { parseQuantity } from '../../lib/quantity.ts';

const SHORT: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\t': '\\t',
  '\r': '\\r',
  '\b': '\\b',
  '\f': '\\f',
  '\v': '\\v',
  '\u0007': '\\a',
  '"': '\\"',
  '\\': '\\\\',
};

/** A string as Go's %q prints it: printable Unicode stays, everything else is escaped. */
export function goQuote(text: string): string {
  let out = '"';
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    const short = SHORT[char];
    if (short !== undefined) out += short;
    else if (code < 0x20 || code === 0x7f) out += `\\x${code.toString(16).padStart(2, '0')}`;
    else if (code < 0x7f || /[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(char)) out += char;
    else if (code <= 0xffff) out += `\\u${code.toString(16).padStart(4, '0')}`;
    else out += `\\U${code.toString(16).padStart(8, '0')}`;
  }
  return `${out}"`;
}

/** Labels or annotations as the kubelet writes them: key="value", sorted, no newline at the end. */
export function formatMap(map: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(map ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}=${goQuote(value)}`)
    .join('\n');
}

/** The text of a fieldRef. Throws for a path that a volume cannot have. */
export function fieldText(pod: Pod, path: string): string {
  const keyed = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (keyed !== null) {
    const map = keyed[1] === 'labels' ? pod.metadata.labels : pod.metadata.annotations;
    return map?.[keyed[2] ?? ''] ?? '';
  }
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name;
    case 'metadata.namespace':
      return pod.metadata.namespace;
    case 'metadata.uid':
      return pod.metadata.uid;
    case 'metadata.labels':
      return formatMap(pod.metadata.labels);
    case 'metadata.annotations':
      return formatMap(pod.metadata.annotations);
    default:
      throw new Error(`unsupported fieldPath: ${path}`);
  }
}

export interface ResourceRef {
  readonly containerName?: string;
  readonly resource: string;
  readonly divisor?: string;
}

const NANO = 1_000_000_000n;

/**
 * The figure of a resourceFieldRef, divided and rounded up; a limit that is not set is the node's allocatable. Throws
 * for a container or resource that does not exist.
 */
export function resourceText(pod: Pod, ref: ResourceRef, allocatable: Readonly<Record<string, string>>): string {
  const containers: readonly Container[] = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  const container = containers.find(({ name }) => name === ref.containerName);
  if (container === undefined) throw new Error(`container ${ref.containerName ?? ''} not found`);
  const match = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.exec(ref.resource);
  if (match === null) throw new Error(`unsupported container resource : ${ref.resource}`);
  const [, side, resource = ''] = match;
  const own = side === 'limits' ? container.resources?.limits : container.resources?.requests;
  const fallback = side === 'limits' ? allocatable[resource] : undefined;
  const amount = parseQuantity(own?.[resource] ?? fallback ?? '0') ?? 0n;
  const divisor = parseQuantity(ref.divisor ?? '1') || NANO;
  // cpu counts in millicores, the rest in whole units, before the division: 100m of cpu by 1 is 1.
  const unit = resource === 'cpu' ? NANO / 1000n : NANO;
  const up = (dividend: bigint, by: bigint): bigint => (dividend + by - 1n) / by;
  return String(up(up(amount, unit), up(divisor, unit)));
}
