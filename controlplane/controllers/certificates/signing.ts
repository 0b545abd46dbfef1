// Signs approved certificate requests of kubernetes.io's signers with the cluster's CA. signers.ts decides.

import { isConflict, isNotFound } from '../../../client/errors.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { CERTIFICATE_SIGNING_REQUEST, type CertificateSigningRequest, pathOf } from '../shared/objects.ts';
import { parseRequest, type SigningAuthority, sign } from './request.ts';
import { isSigner, signerProblem, validity } from './signers.ts';

const holds = ({ status }: CertificateSigningRequest, type: string): boolean =>
  status?.conditions?.some((condition) => condition.type === type && condition.status !== 'False') === true;

/** Approved, and neither failed nor signed yet. */
export function isToBeSigned(request: CertificateSigningRequest): boolean {
  const { signerName } = request.spec;
  return (
    isSigner(signerName) &&
    holds(request, 'Approved') &&
    !holds(request, 'Denied') &&
    !holds(request, 'Failed') &&
    request.status?.certificate === undefined
  );
}

/** Keys are names of requests. */
export class CertificateSigningController implements Controller {
  readonly name = 'certificatesigningrequest-signing';
  readonly workers = 1;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #requests: Informers['certificateSigningRequests'];
  readonly #authority: SigningAuthority | undefined;

  /** Without an authority nothing is signed, as kube-controller-manager without --cluster-signing-cert-file. */
  constructor(
    context: ControllerContext,
    informers: Pick<Informers, 'certificateSigningRequests'>,
    authority: SigningAuthority | undefined,
  ) {
    this.#context = context;
    this.#requests = informers.certificateSigningRequests;
    this.#authority = authority;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#requests.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type !== 'removed' && isToBeSigned(object)) this.queue.add(object.metadata.name);
      }
    });
  }

  async sync(name: string): Promise<void> {
    const request = this.#requests.get(name);
    const authority = this.#authority;
    if (request === undefined || authority === undefined || !isToBeSigned(request)) return;
    const { signerName, usages = [], expirationSeconds, request: encoded } = request.spec;
    const now = this.#context.clock.now();
    const facts = await parseRequest(encoded).catch((error: unknown) => {
      throw new Error(`unable to parse csr "${name}": ${errorMessage(error)}`, { cause: error });
    });
    const problem = signerProblem(signerName, facts, usages);
    if (problem !== undefined) {
      const failed = { type: 'Failed', status: 'True', reason: 'SignerValidationFailure', message: problem };
      const at = rfc3339(now);
      const conditions = [
        ...(request.status?.conditions ?? []),
        { ...failed, lastUpdateTime: at, lastTransitionTime: at },
      ];
      await this.#report(request, { ...request.status, conditions });
      return;
    }
    const certificate = await sign(
      encoded,
      { usages, ...validity(expirationSeconds, authority.durationMs, now) },
      authority,
    );
    await this.#report(request, { ...request.status, certificate });
  }

  async #report(request: CertificateSigningRequest, status: object): Promise<void> {
    const { apiVersion, kind } = CERTIFICATE_SIGNING_REQUEST;
    try {
      const path = pathOf(CERTIFICATE_SIGNING_REQUEST, request, 'status');
      await this.#context.client.replace(path, { ...request, apiVersion, kind, status });
    } catch (error) {
      // A conflict: it has changed, and is on its way back here.
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }
}
