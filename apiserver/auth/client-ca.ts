// The CAs whose client certificates are accepted, from a file that may change while the server runs: it is read again,
// new connections are checked with it, and those that were made before are checked once more.

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { followFile } from '../../lib/follow-file.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The certificates of a PEM text. Throws for one that does not parse. */
function certificatesIn(pem: string): X509Certificate[] {
  return (pem.match(CERTIFICATE) ?? []).map((one) => new X509Certificate(one));
}

/** What is to be known of the CAs of clients. */
export interface TrustedCas {
  /** Changes when they do. */
  readonly generation: number;
  accepts(certificate: X509Certificate): boolean;
}

export interface ClientCaOptions {
  /** What the file is, in messages. Default: client CA file. */
  readonly what?: string;
  readonly path: string;
  /** Always accepted beside the file's: the lab's own components. PEM. */
  readonly always?: string | undefined;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

export class ClientCa implements TrustedCas {
  readonly #options: ClientCaOptions;
  readonly #what: string;
  readonly #always: readonly X509Certificate[];
  #file: readonly X509Certificate[] = [];
  readonly #text: string;
  #generation = 0;
  #unfollow: () => void = () => undefined;

  /** Throws UserError for a file that cannot be read or holds no certificate. */
  constructor(options: ClientCaOptions) {
    this.#options = options;
    this.#what = options.what ?? 'client CA file';
    this.#always = certificatesIn(options.always ?? '');
    try {
      this.#text = readFileSync(options.path, 'utf8');
      this.#file = certificatesIn(this.#text);
    } catch (error) {
      throw new UserError(`${this.#what} ${options.path}: ${errorMessage(error)}`);
    }
    if (this.#file.length === 0) throw new UserError(`${this.#what} ${options.path} holds no certificate`);
  }

  /** Changes with every change of the CAs. */
  get generation(): number {
    return this.#generation;
  }

  /** PEM. */
  get bundle(): string {
    return [...this.#always, ...this.#file].map((certificate) => certificate.toString()).join('\n');
  }

  /** Whether one of the CAs, as they are now, has signed the certificate, or a CA in its chain. */
  accepts(certificate: X509Certificate): boolean {
    const authorities = [...this.#always, ...this.#file];
    const signed = (one: X509Certificate): boolean =>
      authorities.some((authority) => one.checkIssued(authority) && one.verify(authority.publicKey));
    let current: X509Certificate | undefined = certificate;
    // A chain ends with a certificate that is its own issuer.
    for (let depth = 0; current !== undefined && depth < 8; depth++) {
      if (signed(current)) return true;
      const next: X509Certificate | undefined = current.issuerCertificate;
      if (next === undefined || !current.checkIssued(next) || !current.verify(next.publicKey)) return false;
      current = next;
    }
    return false;
  }

  /** Calls `changed` after each change of the file to other certificates. A file that is broken changes nothing. */
  follow(changed: () => void): void {
    const { path, clock, log } = this.#options;
    this.#unfollow = followFile({
      path,
      text: this.#text,
      changed: (text) => {
        this.#replace(text);
        changed();
      },
      refused: (why) => log(`${this.#what} ${path} is not used as it is now: ${why}`),
      clock,
      log,
    });
  }

  #replace(text: string): void {
    const { path, log } = this.#options;
    const certificates = certificatesIn(text);
    if (certificates.length === 0) throw new Error('it holds no certificate');
    this.#file = certificates;
    this.#generation++;
    log(`${this.#what} ${path}: ${certificates.length} certificates from now on`);
  }

  stop(): void {
    this.#unfollow();
  }
}
