// Reads certificate requests (PKCS#10) and certificates as PEM. Only reads: signing is keys.ts, and what a request may
// demand is decided elsewhere. The library is loaded with the first request.

import { createPublicKey, verify, X509Certificate } from 'node:crypto';
import { createRequire } from 'node:module';
import type * as X509 from '@peculiar/x509';
import { getOwn } from '../../lib/own-property.ts';

const require = createRequire(import.meta.url);
let loaded: typeof X509 | undefined;

/** At once: a write is one turn of the event loop, in which nothing can be waited for. */
function library(): typeof X509 {
  if (loaded === undefined) {
    require('reflect-metadata');
    const library: typeof X509 = require('@peculiar/x509');
    loaded = library;
  }
  return loaded;
}

/** What is wrong with a request or a certificate, as kube-apiserver says it where that can be. */
export class PemError extends Error {
  override name = 'PemError';
}

interface Block {
  readonly type: string;
  readonly headers: boolean;
  readonly der: Buffer<ArrayBuffer>;
}

const BEGIN = '-----BEGIN ';
const DASHES = '-----';

/** The first block from `from` on, and where the text goes on; undefined when there is none. */
function nextBlock(text: string, from: number): { readonly block: Block; readonly end: number } | undefined {
  const start = text.indexOf(BEGIN, from);
  if (start < 0) return undefined;
  const labelEnd = text.indexOf(DASHES, start + BEGIN.length);
  if (labelEnd < 0) return undefined;
  const type = text.slice(start + BEGIN.length, labelEnd);
  const footer = `-----END ${type}${DASHES}`;
  const bodyEnd = text.indexOf(footer, labelEnd);
  if (bodyEnd < 0 || type.includes('\n')) return undefined;
  const body = text.slice(labelEnd + DASHES.length, bodyEnd);
  const headers = body.includes(':');
  return { block: { type, headers, der: Buffer.from(body, 'base64') }, end: bodyEnd + footer.length };
}

export interface CertificateRequestFacts {
  readonly commonName: string;
  readonly organizations: readonly string[];
}

const HASHES: Readonly<Record<string, string>> = {
  'SHA-1': 'sha1',
  'SHA-256': 'sha256',
  'SHA-384': 'sha384',
  'SHA-512': 'sha512',
};

/** The first element of a DER sequence: what is signed. Both have passed the parser. */
function signedPart(der: Buffer<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const [, start] = lengthAt(der, 0);
  const [length, content] = lengthAt(der, start);
  return new Uint8Array(der.subarray(start, content + length));
}

/** Length of the content of the element at `offset`, and where the content begins (X.690 8.1.3). */
function lengthAt(der: Buffer, offset: number): [length: number, content: number] {
  const first = der.readUInt8(offset + 1);
  if (first < 0x80) return [first, offset + 2];
  const bytes = first & 0x7f;
  return [der.readUIntBE(offset + 2, bytes), offset + 2 + bytes];
}

/** WebCrypto's, whose types belong to browsers. */
interface SignatureAlgorithm {
  readonly name?: string;
  readonly hash?: { readonly name?: string };
}

const FAILURES: Readonly<Record<string, string>> = {
  ECDSA: 'x509: ECDSA verification failure',
  'RSASSA-PKCS1-v1_5': 'crypto/rsa: verification error',
  Ed25519: 'x509: Ed25519 verification failure',
};

/** Throws PemError for a request whose signature is not by its own key, or by an algorithm that is unknown here. */
function checkSignature(request: X509.Pkcs10CertificateRequest, der: Buffer<ArrayBuffer>): void {
  const { name = '', hash }: SignatureAlgorithm = request.signatureAlgorithm;
  const failure = getOwn(FAILURES, name);
  const digest = getOwn(HASHES, hash?.name ?? '');
  if (failure === undefined || (name !== 'Ed25519' && digest === undefined)) {
    throw new PemError('x509: cannot verify signature: algorithm unimplemented');
  }
  const key = createPublicKey({ key: Buffer.from(request.publicKey.rawData), format: 'der', type: 'spki' });
  const ok = verify(digest ?? null, signedPart(der), key, new Uint8Array(request.signature));
  if (!ok) throw new PemError(failure);
}

/** The request that the PEM text holds. Throws PemError when it does not parse, or `verified` and not signed by its key. */
export function readCertificateRequest(pem: string, verified: boolean): CertificateRequestFacts {
  const found = nextBlock(pem, 0);
  if (found?.block.type !== 'CERTIFICATE REQUEST') throw new PemError('PEM block type must be CERTIFICATE REQUEST');
  const { der } = found.block;
  try {
    const request = new (library().Pkcs10CertificateRequest)(new Uint8Array(der));
    if (verified) checkSignature(request, der);
    const { subjectName } = request;
    return { commonName: subjectName.getField('CN')[0] ?? '', organizations: subjectName.getField('O') };
  } catch (error) {
    if (error instanceof PemError || !(error instanceof Error)) throw error;
    throw new PemError(`the request does not parse as PKCS#10: ${error.message}`);
  }
}

/** Throws PemError for a text that is no list of certificates. */
export function checkCertificates(pem: string): void {
  let found = nextBlock(pem, 0);
  if (found === undefined) throw new PemError('must contain at least one CERTIFICATE PEM block');
  for (; found !== undefined; found = nextBlock(pem, found.end)) {
    const { type, headers, der } = found.block;
    if (type !== 'CERTIFICATE') throw new PemError(`only CERTIFICATE PEM blocks are allowed, found "${type}"`);
    if (headers) throw new PemError('no PEM block headers are permitted');
    try {
      new X509Certificate(new Uint8Array(der));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      throw new PemError(`x509: malformed certificate: ${error.message}`);
    }
  }
}
