// Decodes a manifest of any size without blocking the agent: a long text that is not JSON is parsed in a process of its
// own, with limits on memory and time. Parsing YAML takes far more of both than its length suggests, and a manifest
// directory may contain any file.

import { errorMessage } from '../../lib/errors.ts';
import { exec } from '../../lib/exec.ts';
import { decodeManifest } from './decode.ts';
import { ManifestError } from './manifest-error.ts';

/** Up to this length (characters) the worst YAML costs the agent some hundred milliseconds. */
const LONG = 16 * 1024;
const LIMIT_MS = 10_000;
const LIMIT_MIB = 512;
const PROGRAM = new URL('decode-program.ts', import.meta.url).pathname;

/** Rejects with ManifestError, too when reading takes longer than `limitMs` or too much memory. */
export async function decodeAside(source: string, limitMs = LIMIT_MS): Promise<unknown> {
  if (source.length <= LONG) return decodeManifest(source);
  if (source.trimStart().startsWith('{')) {
    try {
      return JSON.parse(source);
    } catch {
      // YAML, or broken: the YAML parser decides.
    }
  }
  const flags = [`--max-old-space-size=${LIMIT_MIB}`, '--disable-warning=ExperimentalWarning'];
  const { code, stdout, stderr, timedOut } = await exec(process.execPath, [...flags, PROGRAM], {
    stdin: source,
    timeoutMs: limitMs,
    maxOutputBytes: 64 * 1024 * 1024,
  });
  if (timedOut) throw new ManifestError(`cannot be read within ${limitMs / 1000} s`);
  // Exit code 1: the error is on stderr; anything else means that it ran out of memory.
  if (code === 1) throw new ManifestError(stderr.trim().slice(0, 1000));
  if (code !== 0) throw new ManifestError(`cannot be read with ${LIMIT_MIB} MiB of memory`);
  try {
    return JSON.parse(stdout);
  } catch (error) {
    throw new ManifestError(`is neither YAML nor JSON: ${errorMessage(error)}`, { cause: error });
  }
}
