// The program of decode-aside.ts: a manifest on standard input, its value as JSON on standard output. Exit code 1 with one
// line on standard error is what is wrong with the manifest.

import { readFileSync, writeSync } from 'node:fs';
import { decodeManifest } from './decode.ts';
import { ManifestError } from './manifest-error.ts';

function writeAll(fd: number, text: string): void {
  let rest = Buffer.from(text);
  while (rest.length > 0) rest = rest.subarray(writeSync(fd, rest));
}

try {
  writeAll(1, JSON.stringify(decodeManifest(readFileSync(0, 'utf8')) ?? null));
} catch (error) {
  if (!(error instanceof ManifestError)) throw error;
  writeAll(2, error.message);
  process.exitCode = 1;
}
