// The CAs whose client certificates are accepted, from a file that may change while the server runs: it is read again,
// new connections are checked with it, and those that were made before are checked once more.

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errorMessage, isErrno, UserError } from '../../lib/errors.ts';
import { type DirectoryWatch, watchDirectory } from '../../lib/watch-directory.ts';

/** Beside the file system's own notice, as upstream. */
const CHECK_MS = 60_000;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The certificates of a PEM text. Throws for one that does not parse. */
function certificatesIn(pem: string): X509Certificate[] {
  return (pem.match(CERTIFICATE) ?? []).map((one) => new X509Certificate(one));
}

export interface ClientCaOptions {
  readonly path: string;
  /** Always accepted beside the file's: the lab's own components. PEM. */
  readonly always?: string | undefined;
  readonly clock: Clock;
  readonly log: (line: string) => void;
}

export class ClientCa {
  readonly #options: ClientCaOptions;
  readonly #always: readonly X509Certificate[];
  #file: readonly X509Certificate[] = [];
  #text = '';
  #generation = 0;
  #watch: DirectoryWatch | undefined;
  #timer: Timer | undefined;

  /** Throws UserError for a file that cannot be read or holds no certificate. */
  constructor(options: ClientCaOptions) {
    this.#options = options;
    this.#always = certificatesIn(options.always ?? '');
    try {
      this.#text = readFileSync(options.path, 'utf8');
      this.#file = certificatesIn(this.#text);
    } catch (error) {
      throw new UserError(`client CA file ${options.path}: ${errorMessage(error)}`);
    }
    if (this.#file.length === 0) throw new UserError(`client CA file ${options.path} holds no certificate`);
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
    const look = (): void => {
      if (this.#reload()) changed();
    };
    const again = (): void => {
      look();
      this.#timer = clock.after(CHECK_MS, again);
    };
    this.#timer = clock.after(CHECK_MS, again);
    this.#watch = watchDirectory(dirname(path), {
      changed: look,
      failed: (error) => log(`changes of ${path} are seen once a minute: ${error.message}`),
      clock,
    });
  }

  #reload(): boolean {
    const { path, log } = this.#options;
    try {
      const text = readFileSync(path, 'utf8');
      if (text === this.#text) return false;
      const certificates = certificatesIn(text);
      if (certificates.length === 0) throw new Error('it holds no certificate');
      this.#text = text;
      this.#file = certificates;
      this.#generation++;
      log(`client CA file ${path}: ${certificates.length} certificates from now on`);
      return true;
    } catch (error) {
      // Between the removal and the coming of its successor.
      if (!isErrno(error, 'ENOENT')) log(`client CA file ${path} is not used as it is now: ${errorMessage(error)}`);
      return false;
    }
  }

  stop(): void {
    this.#timer?.cancel();
    this.#watch?.close();
  }
}
