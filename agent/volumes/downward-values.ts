// What downward API volumes write: fields of the pod's metadata, and resources of its containers. Pure.

import type { Pod } from '../../client/types.ts';
import { getOwn } from '../../lib/own-property.ts';
import {
  containerNamed,
  containerResourceText,
  metadataFieldText,
  type ResourceFieldRef,
} from '../model/downward-api.ts';

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
    const short = getOwn(SHORT, char);
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
  if (path === 'metadata.labels') return formatMap(pod.metadata.labels);
  if (path === 'metadata.annotations') return formatMap(pod.metadata.annotations);
  const text = metadataFieldText(pod, path);
  if (text === undefined) throw new Error(`unsupported fieldPath: ${path}`);
  return text;
}

/** The text of a resourceFieldRef, which in a volume always names its container. Throws where it leads nowhere. */
export function resourceText(pod: Pod, ref: ResourceFieldRef, allocatable: Readonly<Record<string, string>>): string {
  return containerResourceText(pod, containerNamed(pod, ref.containerName ?? ''), ref, allocatable);
}
