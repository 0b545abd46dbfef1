// Mounting and unmounting at paths that are any bytes: Node gives programs arguments in UTF-8 only. For tests.

import { execOk } from '../../../lib/exec.ts';

export function bytes(...parts: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
}

/** As `printf %b` reads it: every byte as an octal escape. */
function octal(path: Buffer): string {
  return [...path].map((byte) => `\\0${byte.toString(8).padStart(3, '0')}`).join('');
}

/** Runs a program whose last arguments are paths of any bytes, a newline at their end included. */
async function withPaths(program: readonly string[], paths: readonly Buffer[]): Promise<void> {
  const script = [
    'count=$1; shift',
    'while [ "$count" -gt 0 ]; do',
    // Command substitution would take newlines off the end.
    '  path=$(printf "%b" "$1"; printf x)',
    `  shift; set -- "$@" "\${path%x}"; count=$((count - 1))`,
    'done',
    'exec "$@"',
  ].join('\n');
  // The paths go first and come out last.
  await execOk('sh', ['-c', script, 'sh', String(paths.length), ...paths.map(octal), ...program]);
}

export async function bindMount(source: Buffer, target: Buffer, readOnly = false): Promise<void> {
  await withPaths(['mount', '-n', '-c', '-o', readOnly ? 'bind,ro' : 'bind'], [source, target]);
}

export async function unmount(target: Buffer): Promise<void> {
  await withPaths(['umount', '-n', '-c'], [target]);
}
