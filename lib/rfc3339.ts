// Times as the Kubernetes API writes them (RFC 3339, UTC). Pure.

/** metav1.Time: whole seconds, cut off and never rounded up. `epochMs`: milliseconds since the Unix epoch. */
export function rfc3339(epochMs: number): string {
  return new Date(epochMs).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** metav1.MicroTime: six digits behind the point, the last three of them 0. */
export function rfc3339Micro(epochMs: number): string {
  return new Date(epochMs).toISOString().replace('Z', '000Z');
}

/** Milliseconds since the Unix epoch; undefined for a field that is absent, and for a text that is no time. */
export function parseRfc3339(text: string | undefined): number | undefined {
  const epochMs = Date.parse(text ?? '');
  return Number.isNaN(epochMs) ? undefined : epochMs;
}
