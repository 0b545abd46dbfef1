// Removes certificate requests that have had their time. cleanup.ts decides.

import { X509Certificate } from 'node:crypto';
import { isNotFound } from '../../../client/errors.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { certificateTime } from '../../../lib/certificate-time.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { CERTIFICATE_SIGNING_REQUEST, type CertificateSigningRequest, pathOf } from '../shared/objects.ts';
import { removableAt, removableInMs } from './cleanup.ts';

/** Undefined where it has no certificate. */
function expiryOf({ status }: CertificateSigningRequest): EpochMs | undefined {
  if (status?.certificate === undefined) return undefined;
  return certificateTime(new X509Certificate(Buffer.from(status.certificate, 'base64')).validTo);
}

/** Keys are names of requests. */
export class CertificateCleaner implements Controller {
  readonly name = 'certificatesigningrequest-cleaner';
  readonly workers = 1;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #requests: Informers['certificateSigningRequests'];

  constructor(context: ControllerContext, informers: Pick<Informers, 'certificateSigningRequests'>) {
    this.#context = context;
    this.#requests = informers.certificateSigningRequests;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#requests.onChange((changes) => {
      for (const { type, object } of changes) if (type !== 'removed') this.queue.add(object.metadata.name);
    });
  }

  async sync(name: string): Promise<void> {
    const request = this.#requests.get(name);
    if (request === undefined) return;
    const at = removableAt(request, expiryOf(request));
    if (at === undefined) return;
    const wait = removableInMs(at, this.#context.clock.now());
    if (wait > 0) {
      this.queue.addAfter(name, wait);
      return;
    }
    const { uid } = request.metadata;
    await this.#context.client
      .delete(pathOf(CERTIFICATE_SIGNING_REQUEST, request), { preconditions: { uid } })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
  }
}
