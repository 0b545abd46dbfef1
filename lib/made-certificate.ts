// A self-signed serving certificate, made by a process of its own: the x509 library takes 5 MB that this one would never give back.

import { fileURLToPath } from 'node:url';
import type { EpochMs } from './clock.ts';
import { execOk } from './exec.ts';

export interface ServingCertificate {
  /** PEM, chain included. */
  readonly cert: string;
  readonly key: string;
}

/** `names`: host names and addresses, the first of them the common name. */
export async function madeApart(names: readonly string[], now: EpochMs): Promise<ServingCertificate> {
  const program = fileURLToPath(new URL('self-signed.ts', import.meta.url));
  const flags = ['--disable-warning=ExperimentalWarning', program];
  const text = await execOk(process.execPath, flags, { stdin: JSON.stringify({ names, now }), timeoutMs: 60_000 });
  const { cert, key } = JSON.parse(text) as ServingCertificate;
  return { cert, key };
}
