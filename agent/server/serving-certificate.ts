// The certificate that the kubelet API shows: the configured one, or a self-signed one kept in the certificate directory
// and made again before it runs out. It makes none itself: lib/self-signed.ts does.

import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { certificateTime } from '../../lib/certificate-time.ts';
import { type EpochMs, elapsedMs } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { narrowMode } from '../../lib/file-mode.ts';
import { madeApart, type ServingCertificate } from '../../lib/made-certificate.ts';

export interface ServingCertificateOptions {
  readonly tlsCertFile: string;
  readonly tlsPrivateKeyFile: string;
  readonly certDir: string;
  readonly nodeName: string;
  readonly nodeIPs: readonly string[];
  /** Epoch ms. */
  readonly now: EpochMs;
}

const DAY_MS = 24 * 3_600_000;
/** Made again when less than this is left. */
const RENEW_MS = 30 * DAY_MS;

/** Reads or makes the certificate. Rejects with UserError when the configured files cannot be used. */
export async function loadServingCertificate(options: ServingCertificateOptions): Promise<ServingCertificate> {
  const { tlsCertFile, tlsPrivateKeyFile, certDir, now } = options;
  if (tlsCertFile !== '') return await configured(tlsCertFile, tlsPrivateKeyFile);
  const certPath = join(certDir, 'kubelet.crt');
  const keyPath = join(certDir, 'kubelet.key');
  await narrowMode(keyPath);
  const [cert, key] = await Promise.all([readFileIfExists(certPath), readFileIfExists(keyPath)]);
  const names = servingNames(options);
  if (cert !== undefined && key !== undefined && renewalReason({ cert, key }, names, now) === undefined) {
    return { cert, key };
  }
  const made = await madeApart(names, now);
  // The key first: a crash between the two leaves a pair that does not match, which is detected and made again.
  await writeFileAtomic(keyPath, made.key, 0o600);
  await writeFileAtomic(certPath, made.cert, 0o644);
  return made;
}

/** Names and addresses that the node is called by. */
export function servingNames({ nodeName, nodeIPs }: Pick<ServingCertificateOptions, 'nodeName' | 'nodeIPs'>): string[] {
  return [...new Set([nodeName, 'localhost', '127.0.0.1', ...nodeIPs])];
}

/** Why a pair must be made anew, or undefined when it is good. Pure. */
export function renewalReason(pair: ServingCertificate, names: readonly string[], now: EpochMs): string | undefined {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pair.cert);
    if (!matches(certificate, pair.key)) return 'the key is another certificate’s';
  } catch (error) {
    return `it cannot be read: ${errorMessage(error)}`;
  }
  if (certificateTime(certificate.validFrom) > now) return 'it is not valid yet';
  if (elapsedMs(now, certificateTime(certificate.validTo)) < RENEW_MS) return 'it is about to run out';
  const missing = names.find((name) => !(isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)));
  return missing === undefined ? undefined : `it does not name ${missing}`;
}

function matches(certificate: X509Certificate, key: string): boolean {
  const spki = { type: 'spki', format: 'der' } as const;
  return createPublicKey(createPrivateKey(key)).export(spki).equals(certificate.publicKey.export(spki));
}

async function configured(certFile: string, keyFile: string): Promise<ServingCertificate> {
  const read = async (field: string, file: string): Promise<string> => {
    try {
      return await readFile(file, 'utf8');
    } catch (error) {
      throw new UserError(`${field}: ${file} cannot be read: ${errorMessage(error)}`, { cause: error });
    }
  };
  const pair = { cert: await read('tlsCertFile', certFile), key: await read('tlsPrivateKeyFile', keyFile) };
  try {
    if (matches(new X509Certificate(pair.cert), pair.key)) return pair;
  } catch (error) {
    throw new UserError(`tlsCertFile ${certFile} and tlsPrivateKeyFile ${keyFile}: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  throw new UserError(`tlsPrivateKeyFile ${keyFile} is not the key of tlsCertFile ${certFile}`);
}
