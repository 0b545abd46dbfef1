// Cuts texts from outside (containers, plugins, runtimes) to a size, so that nothing that is stored, logged or reported grows
// with them. Pure.

/**
 * No more than this of what a program in a container, a plugin or a runtime prints goes into an error. The kubelet reads
 * as much of a probe's output (pkg/probe/exec, maxReadLength).
 */
export const MAX_OUTPUT_BYTES = 10 * 1024;

/** The text, or as many of its first characters as fit into `maxBytes` bytes of UTF-8. */
export function cutText(text: string, maxBytes: number): string {
  // A UTF-16 unit is three bytes of UTF-8 at most, and one at least.
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text.slice(0, maxBytes + 1));
  if (bytes.length <= maxBytes && text.length <= maxBytes) return text;
  return cutBytes(bytes, maxBytes).toString('utf8');
}

/** The first `maxBytes` bytes of a text in UTF-8, less what would be half a character. */
export function cutBytes(bytes: Buffer, maxBytes: number): Buffer {
  if (bytes.length <= maxBytes) return bytes;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end);
}

/** Room for what cutWithMark adds. */
const MARK_BYTES = 40;

/** As cutText, and says at the end that something is missing. For logs and errors, not for fields of the API. */
export function cutWithMark(text: string, maxBytes: number): string {
  if (cutText(text, maxBytes).length === text.length) return text;
  const kept = cutText(text, Math.max(0, maxBytes - MARK_BYTES));
  return `${kept}… (${text.length - kept.length} characters more)`;
}
