// Certificates for servers that tests start: a CA and what it signs, made in memory.

import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface TestCa {
  /** PEM. */
  readonly cert: string;
  /** A certificate for a server under these names (DNS names and addresses). */
  server(names: readonly string[]): Promise<KeyPair>;
  /** A client's, with a common name and an organization. */
  client(name: string, group: string): Promise<KeyPair>;
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

async function keyPem(keys: webcrypto.CryptoKeyPair): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
}

const HOUR = 3_600_000;

export async function makeCa(name = 'test-ca'): Promise<TestCa> {
  x509.cryptoProvider.set(webcrypto);
  const keys = await generateKeys();
  const validity = { notBefore: new Date(Date.now() - HOUR), notAfter: new Date(Date.now() + HOUR) };
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    ...validity,
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  let serial = 1;
  const issue = async (subject: string, extensions: x509.Extension[]): Promise<KeyPair> => {
    const own = await generateKeys();
    const cert = await x509.X509CertificateGenerator.create({
      serialNumber: (++serial).toString(16).padStart(2, '0'),
      subject,
      issuer: ca.subject,
      publicKey: own.publicKey,
      signingKey: keys.privateKey,
      ...validity,
      signingAlgorithm: ALGORITHM,
      extensions,
    });
    return { cert: cert.toString('pem'), key: await keyPem(own) };
  };
  return {
    cert: ca.toString('pem'),
    server: (names) =>
      issue('CN=server', [
        new x509.SubjectAlternativeNameExtension(
          names.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? ('ip' as const) : ('dns' as const), value })),
        ),
      ]),
    client: (commonName, group) => issue(`CN=${commonName}, O=${group}`, []),
  };
}
