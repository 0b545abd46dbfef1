// The admission plugins of certificate requests, by upstream's names, as pure functions: who may approve a request for a
// signer (CertificateApproval), who may sign it (CertificateSigning), and which subjects a signer takes
// (CertificateSubjectRestriction). Each returns why not, in kube-apiserver's words.

import { sameJson } from '../../lib/same-json.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';
import { PemError, readCertificateRequest } from '../pki/requests.ts';
import type { Caller } from './attributes.ts';
import type { Authorizer } from './authorizer.ts';

const API_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';

function part(object: Readonly<KubeObject>, field: 'spec' | 'status'): JsonObject {
  const value = object[field];
  return isObject(value) ? value : {};
}

function signerOf(request: Readonly<KubeObject>): string {
  const { signerName } = part(request, 'spec');
  return typeof signerName === 'string' ? signerName : '';
}

/** Whether the caller may do it for the signer, or for all signers of its domain: "kubernetes.io/*". */
export function mayUseSigner(caller: Caller, authorizer: Authorizer, verb: string, signer: string): boolean {
  const [domain = ''] = signer.split('/');
  const request = { verb, group: 'certificates.k8s.io', resource: 'signers', subresource: '', namespace: '' };
  return [signer, `${domain}/*`].some((name) => authorizer.authorize(caller, { ...request, name }).allowed);
}

/** CertificateApproval, on an update of certificatesigningrequests/approval. */
export function certificateApproval(old: KubeObject, caller: Caller, authorizer: Authorizer): string | undefined {
  const signer = signerOf(old);
  if (mayUseSigner(caller, authorizer, 'approve', signer)) return undefined;
  return `user not permitted to approve requests with signerName ${JSON.stringify(signer)}`;
}

/** CertificateSigning, on an update of certificatesigningrequests/status. */
export function certificateSigning(
  object: KubeObject,
  old: KubeObject,
  caller: Caller,
  authorizer: Authorizer,
): string | undefined {
  const signed = (one: KubeObject): unknown => {
    const { certificate = '', conditions = [] } = part(one, 'status');
    return { certificate, conditions };
  };
  if (sameJson(signed(object), signed(old))) return undefined;
  const signer = signerOf(old);
  if (mayUseSigner(caller, authorizer, 'sign', signer)) return undefined;
  return `user not permitted to sign requests with signerName ${JSON.stringify(signer)}`;
}

/** CertificateSubjectRestriction, on create. */
export function certificateSubjectRestriction(object: KubeObject): string | undefined {
  if (signerOf(object) !== API_CLIENT_SIGNER) return undefined;
  const { request } = part(object, 'spec');
  try {
    const pem = Buffer.from(typeof request === 'string' ? request : '', 'base64').toString('latin1');
    const { organizations } = readCertificateRequest(pem, false);
    if (!organizations.includes('system:masters')) return undefined;
    return `use of ${API_CLIENT_SIGNER} signer with system:masters group is not allowed`;
  } catch (error) {
    if (!(error instanceof PemError)) throw error;
    return `failed to parse CSR: ${error.message}`;
  }
}
