// Approves the certificate requests that need no person: kubelets' client certificates whose creators are permitted to have them.
// signers.ts decides; the API server says who is permitted.

import { isConflict, isNotFound } from '../../../client/errors.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import { errorMessage } from '../../../lib/errors.ts';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';
import { CERTIFICATE_SIGNING_REQUEST, type CertificateSigningRequest, pathOf } from '../shared/objects.ts';
import { parseRequest } from './request.ts';
import { type AutomaticApproval, automaticApprovals } from './signers.ts';

/** Neither approved, denied nor signed. */
function isUndecided({ status }: CertificateSigningRequest): boolean {
  const decided = status?.conditions?.some(({ type }) => type === 'Approved' || type === 'Denied') === true;
  return !decided && status?.certificate === undefined;
}

interface Review {
  readonly status?: { readonly allowed?: boolean };
}

/** Keys are names of requests. */
export class CertificateApprovingController implements Controller {
  readonly name = 'certificatesigningrequest-approving';
  readonly workers = 1;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #requests: Informers['certificateSigningRequests'];

  constructor(context: ControllerContext, informers: Pick<Informers, 'certificateSigningRequests'>) {
    this.#context = context;
    this.#requests = informers.certificateSigningRequests;
    this.queue = new WorkQueue({ clock: context.clock });
    this.#requests.onChange((changes) => {
      for (const { type, object } of changes) {
        if (type !== 'removed' && isUndecided(object)) this.queue.add(object.metadata.name);
      }
    });
  }

  async sync(name: string): Promise<void> {
    const request = this.#requests.get(name);
    if (request === undefined || !isUndecided(request)) return;
    const { signerName, usages = [], username = '', request: encoded } = request.spec;
    const facts = await parseRequest(encoded).catch((error: unknown) => {
      throw new Error(`unable to parse csr "${name}": ${errorMessage(error)}`, { cause: error });
    });
    const approvals = automaticApprovals(signerName, facts, usages, username);
    for (const approval of approvals) {
      if (!(await this.#isPermitted(request, approval))) continue;
      await this.#approve(request, approval.message);
      return;
    }
    if (approvals.length === 0) return;
    const names = approvals.map(({ subresource }) => subresource).join(' ');
    this.#context.log(
      `csr "${name}" is one of [${names}], and its creator ${username} may create none of them: a person decides`,
    );
  }

  async #isPermitted({ spec }: CertificateSigningRequest, { subresource }: AutomaticApproval): Promise<boolean> {
    const { username, uid, groups, extra } = spec;
    const { status } = await this.#context.client.create<Review>('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: username,
        uid,
        groups,
        extra,
        resourceAttributes: {
          group: 'certificates.k8s.io',
          resource: 'certificatesigningrequests',
          verb: 'create',
          subresource,
          version: '*',
        },
      },
    });
    return status?.allowed === true;
  }

  async #approve(request: CertificateSigningRequest, message: string): Promise<void> {
    const { apiVersion, kind } = CERTIFICATE_SIGNING_REQUEST;
    const at = rfc3339(this.#context.clock.now());
    const approved = { type: 'Approved', status: 'True', reason: 'AutoApproved', message, lastUpdateTime: at };
    const conditions = [...(request.status?.conditions ?? []), approved];
    try {
      const path = pathOf(CERTIFICATE_SIGNING_REQUEST, request, 'approval');
      await this.#context.client.replace(path, {
        ...request,
        apiVersion,
        kind,
        status: { ...request.status, conditions },
      });
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }
}
