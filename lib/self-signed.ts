// Makes a self-signed serving certificate. A program of its own: it reads {"names": [...], "now": epoch ms} from standard
// input and prints {"cert", "key"} in PEM, so that an agent that needs one certificate a year does not load the x509 library.

import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import { text } from 'node:stream/consumers';
// The library is built on a container that needs this polyfill first.
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import type { EpochMs } from './clock.ts';
import type { ServingCertificate } from './made-certificate.ts';

const LIFE_MS = 365 * 24 * 3_600_000;
/** How far the certificate is backdated, for callers whose clocks differ. ms. */
const BACKDATE_MS = 3_600_000;

/** `names`: host names and addresses, the first of them the common name; `now`: epoch ms. */
export async function selfSigned(names: readonly string[], now: EpochMs): Promise<ServingCertificate> {
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

if (import.meta.main) {
  const { names, now } = JSON.parse(await text(process.stdin)) as { names: readonly string[]; now: EpochMs };
  process.stdout.write(JSON.stringify(await selfSigned(names, now)));
}
