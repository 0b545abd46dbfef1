// The certificate that the kubelet API shows: the configured one, or a self-signed one kept in the certificate directory
// and made again before it runs out. The x509 library is loaded only when something has to be made.

import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  webcrypto,
  X509Certificate,
} from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';

export interface ServingCertificate {
  /** PEM, chain included. */
  readonly cert: string;
  readonly key: string;
}

export interface ServingCertificateOptions {
  readonly tlsCertFile: string;
  readonly tlsPrivateKeyFile: string;
  readonly certDir: string;
  readonly nodeName: string;
  readonly nodeIPs: readonly string[];
  /** Epoch ms. */
  readonly now: number;
}

const DAY_MS = 24 * 3_600_000;
const LIFE_MS = 365 * DAY_MS;
/** Made again when less than this is left. */
const RENEW_MS = 30 * DAY_MS;
/** Valid from a little earlier, for callers whose clocks differ. */
const BACKDATE_MS = 3_600_000;

/** Reads or makes the certificate. Rejects with UserError when the configured files cannot be used. */
export async function loadServingCertificate(options: ServingCertificateOptions): Promise<ServingCertificate> {
  const { tlsCertFile, tlsPrivateKeyFile, certDir, now } = options;
  if (tlsCertFile !== '') return await configured(tlsCertFile, tlsPrivateKeyFile);
  const certPath = join(certDir, 'kubelet.crt');
  const keyPath = join(certDir, 'kubelet.key');
  const [cert, key] = await Promise.all([readFileIfExists(certPath), readFileIfExists(keyPath)]);
  const names = servingNames(options);
  if (cert !== undefined && key !== undefined && renewalReason({ cert, key }, names, now) === undefined) {
    return { cert, key };
  }
  const made = await selfSigned(names, now);
  // The key first: a crash between the two leaves a pair that does not match, which is noticed and made again.
  await writeFileAtomic(keyPath, made.key, 0o600);
  await writeFileAtomic(certPath, made.cert, 0o644);
  return made;
}

/** Names and addresses that the node is called by. */
export function servingNames({ nodeName, nodeIPs }: Pick<ServingCertificateOptions, 'nodeName' | 'nodeIPs'>): string[] {
  return [...new Set([nodeName, 'localhost', '127.0.0.1', ...nodeIPs])];
}

/** Why a pair must be made anew, or undefined when it is good. Pure. */
export function renewalReason(pair: ServingCertificate, names: readonly string[], now: number): string | undefined {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pair.cert);
    if (!matches(certificate, pair.key)) return 'the key is another certificate’s';
  } catch (error) {
    return `it cannot be read: ${errorMessage(error)}`;
  }
  if (Date.parse(certificate.validFrom) > now) return 'it is not valid yet';
  if (Date.parse(certificate.validTo) - now < RENEW_MS) return 'it is about to run out';
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

async function selfSigned(names: readonly string[], now: number): Promise<ServingCertificate> {
  // The library is built on a container that wants this polyfill to be there first.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  x509.cryptoProvider.set(webcrypto);
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const pem = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const der = (key: string, type: 'pkcs8' | 'spki'): Uint8Array<ArrayBuffer> =>
    new Uint8Array(
      type === 'pkcs8'
        ? createPrivateKey(key).export({ type, format: 'der' })
        : createPublicKey(key).export({ type, format: 'der' }),
    );
  const { subtle } = webcrypto;
  const keys = {
    privateKey: await subtle.importKey('pkcs8', der(pem.privateKey, 'pkcs8'), algorithm, true, ['sign']),
    publicKey: await subtle.importKey('spki', der(pem.publicKey, 'spki'), algorithm, true, ['verify']),
  };
  // A serial number is positive: the top bit stays clear.
  const serial = randomBytes(16);
  serial[0] = (serial[0] ?? 0) & 0x7f;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial.toString('hex'),
    name: new x509.Name([{ CN: [names[0] ?? 'kubelet'] }]),
    notBefore: new Date(now - BACKDATE_MS),
    notAfter: new Date(now + LIFE_MS),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
      ),
    ],
  });
  return { cert: `${certificate.toString('pem')}\n`, key: pem.privateKey };
}
