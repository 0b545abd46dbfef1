// Key pairs and certificates: made with @peculiar/x509 (requests.ts reads with it), which is loaded when something has to be
// made and not before (reading back needs only node:crypto). Never decides which certificates there are: ensure.ts.

import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import type { Extension } from '@peculiar/x509';
import type { EpochMs } from '../../lib/clock.ts';

/** ECDSA P-256 everywhere: small, quick to sign with, and accepted by every client. */
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

export interface KeyPairPem {
  readonly privateKey: string;
  readonly publicKey: string;
}

/** A new P-256 pair as PKCS#8 and SPKI PEM. */
export function generateKeyPair(): KeyPairPem {
  return generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
}

/** The SPKI PEM that belongs to a private key. Throws when the PEM does not parse. */
export function publicKeyOf(privateKeyPem: string): string {
  return createPublicKey(createPrivateKey(privateKeyPem)).export({ type: 'spki', format: 'pem' }).toString();
}

export interface CertificateRequest {
  readonly commonName: string;
  readonly organization?: string;
  readonly usage: 'ca' | 'server' | 'client';
  /** Host names and IP addresses, for a server. */
  readonly hosts?: readonly string[];
  /** Epoch ms. */
  readonly notBefore: EpochMs;
  readonly notAfter: EpochMs;
}

export interface Signer {
  readonly cert: string;
  readonly key: string;
}

async function importPrivate(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
  return webcrypto.subtle.importKey('pkcs8', new Uint8Array(der), ALGORITHM, true, ['sign']);
}

async function importPublic(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPublicKey(pem).export({ type: 'spki', format: 'der' });
  return webcrypto.subtle.importKey('spki', new Uint8Array(der), ALGORITHM, true, ['verify']);
}

/** A PEM certificate for the key pair, signed by `signer`, or by itself when there is none. */
export async function issueCertificate(
  request: CertificateRequest,
  keys: KeyPairPem,
  signer?: Signer,
): Promise<string> {
  // x509 is built on a container library that needs this polyfill first.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  x509.cryptoProvider.set(webcrypto);
  const publicKey = await importPublic(keys.publicKey);
  const issuer = signer === undefined ? undefined : new x509.X509Certificate(signer.cert);
  const signingKey = await importPrivate(signer === undefined ? keys.privateKey : signer.key);
  const subject = new x509.Name([
    ...(request.organization === undefined ? [] : [{ O: [request.organization] }]),
    { CN: [request.commonName] },
  ]);
  const { KeyUsageFlags: usage } = x509;
  const extensions: Extension[] = [
    new x509.BasicConstraintsExtension(request.usage === 'ca', undefined, true),
    new x509.KeyUsagesExtension(
      request.usage === 'ca'
        ? usage.digitalSignature | usage.keyCertSign | usage.cRLSign
        : usage.digitalSignature | usage.keyEncipherment,
      true,
    ),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(issuer === undefined ? publicKey : issuer.publicKey),
  ];
  if (request.usage !== 'ca') {
    extensions.push(
      new x509.ExtendedKeyUsageExtension([
        request.usage === 'server' ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth,
      ]),
    );
  }
  if (request.hosts !== undefined && request.hosts.length > 0) {
    extensions.push(
      new x509.SubjectAlternativeNameExtension(
        request.hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host })),
      ),
    );
  }
  // A positive serial number of 127 random bits, as the CA/Browser rules require.
  const serial = randomBytes(16);
  serial.writeUInt8(serial.readUInt8(0) & 0x7f, 0);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial.toString('hex'),
    subject: subject.toString(),
    issuer: issuer === undefined ? subject.toString() : issuer.subject,
    notBefore: new Date(request.notBefore),
    notAfter: new Date(request.notAfter),
    signingAlgorithm: ALGORITHM,
    publicKey,
    signingKey,
    extensions,
  });
  return `${certificate.toString('pem')}\n`;
}
