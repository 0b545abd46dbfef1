// A certificate request (PKCS#10) as the controllers read it, and the certificate that answers it. The library is loaded with the first one.

import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import type * as X509 from '@peculiar/x509';
import type { EpochMs } from '../../../lib/clock.ts';

export interface RequestFacts {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly addresses: readonly string[];
  readonly emails: readonly string[];
  readonly uris: readonly string[];
}

/** A CA that signs: PEM of its certificate and its key. */
export interface SigningAuthority {
  readonly cert: string;
  readonly key: string;
  /** How long certificates are valid at most. ms. */
  readonly durationMs: number;
}

async function library(): Promise<typeof X509> {
  // x509 is built on a container library that needs this polyfill first.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  x509.cryptoProvider.set(webcrypto);
  return x509;
}

function alternativeNames(
  x509: typeof X509,
  { extensions }: X509.Pkcs10CertificateRequest,
): X509.SubjectAlternativeNameExtension | undefined {
  return extensions.find((each) => each instanceof x509.SubjectAlternativeNameExtension);
}

/** Throws where the text is no request. `request`: spec.request, PEM in base64. */
export async function parseRequest(request: string): Promise<RequestFacts> {
  const x509 = await library();
  const parsed = new x509.Pkcs10CertificateRequest(Buffer.from(request, 'base64').toString('utf8'));
  const names = alternativeNames(x509, parsed)?.names.toJSON() ?? [];
  const of = (type: string): string[] => names.flatMap((name) => (name.type === type ? [name.value] : []));
  return {
    commonName: parsed.subjectName.getField('CN')[0] ?? '',
    organizations: parsed.subjectName.getField('O'),
    dnsNames: of('dns'),
    addresses: of('ip'),
    emails: of('email'),
    uris: of('url'),
  };
}

/** RFC 5280's names, as certificates.k8s.io has them. */
const KEY_USAGES = {
  signing: 'digitalSignature',
  'digital signature': 'digitalSignature',
  'content commitment': 'nonRepudiation',
  'key encipherment': 'keyEncipherment',
  'key agreement': 'keyAgreement',
  'data encipherment': 'dataEncipherment',
  'cert sign': 'keyCertSign',
  'crl sign': 'cRLSign',
  'encipher only': 'encipherOnly',
  'decipher only': 'decipherOnly',
} as const;

const EXTENDED_USAGES: ReadonlyMap<string, string> = new Map([
  ['any', '2.5.29.37.0'],
  ['server auth', '1.3.6.1.5.5.7.3.1'],
  ['client auth', '1.3.6.1.5.5.7.3.2'],
  ['code signing', '1.3.6.1.5.5.7.3.3'],
  ['email protection', '1.3.6.1.5.5.7.3.4'],
  ['s/mime', '1.3.6.1.5.5.7.3.4'],
  ['ipsec end system', '1.3.6.1.5.5.7.3.5'],
  ['ipsec tunnel', '1.3.6.1.5.5.7.3.6'],
  ['ipsec user', '1.3.6.1.5.5.7.3.7'],
  ['timestamping', '1.3.6.1.5.5.7.3.8'],
  ['ocsp signing', '1.3.6.1.5.5.7.3.9'],
  ['microsoft sgc', '1.3.6.1.4.1.311.10.3.3'],
  ['netscape sgc', '2.16.840.1.113730.4.1'],
]);

export interface Terms {
  readonly usages: readonly string[];
  readonly notBefore: EpochMs;
  readonly notAfter: EpochMs;
}

/** The certificate as PEM in base64, as status.certificate has it. Throws for a usage that there is not. */
export async function sign(request: string, terms: Terms, authority: SigningAuthority): Promise<string> {
  const x509 = await library();
  const parsed = new x509.Pkcs10CertificateRequest(Buffer.from(request, 'base64').toString('utf8'));
  const issuer = new x509.X509Certificate(authority.cert);
  const names = alternativeNames(x509, parsed);
  const keyUsages = new Map<string, keyof typeof x509.KeyUsageFlags>(Object.entries(KEY_USAGES));
  let flags = 0;
  const extended: string[] = [];
  for (const usage of terms.usages) {
    const flag = keyUsages.get(usage);
    const id = EXTENDED_USAGES.get(usage);
    if (flag !== undefined) flags |= x509.KeyUsageFlags[flag];
    else if (id !== undefined) extended.push(id);
    else throw new Error(`unrecognized usage: ${usage}`);
  }
  const extensions: X509.Extension[] = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    // One without any would forbid every use.
    ...(flags === 0 ? [] : [new x509.KeyUsagesExtension(flags, true)]),
    ...(extended.length === 0 ? [] : [new x509.ExtendedKeyUsageExtension(extended)]),
    await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ...(names === undefined ? [] : [names]),
  ];
  const { algorithm, key } = await signingKey(authority.key);
  // A positive serial number of 127 random bits, as the CA/Browser rules require.
  const serial = randomBytes(16);
  serial.writeUInt8(serial.readUInt8(0) & 0x7f, 0);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial.toString('hex'),
    subject: parsed.subject,
    issuer: issuer.subject,
    notBefore: new Date(terms.notBefore),
    notAfter: new Date(Math.min(terms.notAfter, issuer.notAfter.getTime())),
    signingAlgorithm: algorithm,
    publicKey: parsed.publicKey,
    signingKey: key,
    extensions,
  });
  return Buffer.from(`${certificate.toString('pem')}\n`).toString('base64');
}

/** A CA's key may be of RSA or of any of NIST's curves. */
async function signingKey(pem: string) {
  const key = createPrivateKey(pem);
  const curves: ReadonlyMap<string, string> = new Map([
    ['prime256v1', 'P-256'],
    ['secp384r1', 'P-384'],
    ['secp521r1', 'P-521'],
  ]);
  const curve = curves.get(key.asymmetricKeyDetails?.namedCurve ?? '');
  const isRsa = key.asymmetricKeyType === 'rsa';
  if (!isRsa && curve === undefined)
    throw new Error(`the CA's key is ${key.asymmetricKeyType}: RSA and P-256, P-384, P-521 can sign`);
  const algorithm = isRsa
    ? { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
    : { name: 'ECDSA', namedCurve: curve ?? '', hash: 'SHA-256' };
  const der = new Uint8Array(key.export({ type: 'pkcs8', format: 'der' }));
  return { algorithm, key: await webcrypto.subtle.importKey('pkcs8', der, algorithm, true, ['sign']) };
}
