// What is wrong with a certificate at a moment: expired, not valid yet, signed by another CA. Reads PEM text; pure.

import { X509Certificate } from 'node:crypto';
import { certificateTime } from '../../lib/certificate-time.ts';
import { type EpochMs, elapsedMs } from '../../lib/clock.ts';
import type { CertificateFact } from './facts.ts';
import { duration } from './words.ts';

const DAY_MS = 24 * 3_600_000;
/** Certificates between the one that is shown and the CA's. */
const MAX_CHAIN = 5;
/** What a kubelet calls the issuer of the serving certificate that it makes for itself: "n1-ca@1700000000". */
const OWN_ISSUER = /^CN=\S+-ca@\d+$/;

/** The certificates of a PEM bundle, keys and text between them left out. Throws an error of OpenSSL for broken ones. */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

function isSigned(
  leaf: X509Certificate,
  between: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
  depth = 0,
): boolean {
  const by = (issuer: X509Certificate): boolean => leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey);
  if (authorities.some(by)) return true;
  if (depth === MAX_CHAIN) return false;
  return between.some((issuer) => by(issuer) && isSigned(issuer, between, authorities, depth + 1));
}

/** "CN=a\nO=b" of Node as one line. */
function oneLine(name: string): string {
  return name.replaceAll('\n', ', ');
}

/** `chain`: the certificate, and those between it and the CA. `authorities`: undefined where no CA is known. */
export function certificateFact(
  place: string,
  [leaf, ...between]: readonly X509Certificate[],
  authorities: readonly X509Certificate[] | undefined,
): CertificateFact | undefined {
  if (leaf === undefined) return undefined;
  const issuer = oneLine(leaf.issuer);
  return {
    place,
    subject: oneLine(leaf.subject),
    issuer,
    notBefore: certificateTime(leaf.validFrom),
    notAfter: certificateTime(leaf.validTo),
    signedByCa: authorities === undefined ? undefined : isSigned(leaf, between, authorities),
    selfMade: leaf.subject === leaf.issuer || OWN_ISSUER.test(issuer),
  };
}

/** "expired 2 days ago", "is not valid yet: it begins in 3 h"; undefined while it is valid. */
export function timeFault({ notBefore, notAfter }: CertificateFact, at: EpochMs): string | undefined {
  if (notAfter < at) return `expired ${duration(elapsedMs(notAfter, at))} ago`;
  if (notBefore > at) return `is not valid yet: it begins in ${duration(elapsedMs(at, notBefore))}`;
  return undefined;
}

/** "364 days left". */
export function timeLeft({ notAfter }: CertificateFact, at: EpochMs): string {
  const left = elapsedMs(at, notAfter);
  return left < 2 * DAY_MS ? `${duration(left)} left` : `${Math.floor(left / DAY_MS)} days left`;
}
