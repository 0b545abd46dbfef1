// CertificateApproval, CertificateSigning and CertificateSubjectRestriction: who may approve and sign requests of a signer,
// and for which subjects. The rules are auth/certificates.ts; here is their place in the chain.

import type { Authorizer } from '../../auth/authorizer.ts';
import { certificateApproval, certificateSigning, certificateSubjectRestriction } from '../../auth/certificates.ts';
import { AdmissionForbidden, type AdmissionPlugin, type AdmittedResource, handlesOnly } from '../plugin.ts';

const GROUP = 'certificates.k8s.io';
const PLURAL = 'certificatesigningrequests';

function refuse(why: string | undefined): void {
  if (why !== undefined) throw new AdmissionForbidden(why);
}

function isPart({ group, plural, subresource }: AdmittedResource, wanted: string): boolean {
  return group === GROUP && plural === PLURAL && subresource === wanted;
}

/** `authorizer` is the server's, which is made after its plugins. */
export function certificateApprovalPlugin(authorizer: () => Authorizer): AdmissionPlugin {
  return {
    name: 'CertificateApproval',
    handles: (operation, resource) => operation === 'UPDATE' && isPart(resource, 'approval'),
    validate: ({ old, user }) => {
      if (old !== undefined) refuse(certificateApproval(old, user, authorizer()));
    },
  };
}

export function certificateSigningPlugin(authorizer: () => Authorizer): AdmissionPlugin {
  return {
    name: 'CertificateSigning',
    handles: (operation, resource) => operation === 'UPDATE' && isPart(resource, 'status'),
    validate: ({ object, old, user }) => {
      if (object !== undefined && old !== undefined) refuse(certificateSigning(object, old, user, authorizer()));
    },
  };
}

export const certificateSubjectRestrictionPlugin: AdmissionPlugin = {
  name: 'CertificateSubjectRestriction',
  handles: handlesOnly(GROUP, PLURAL, 'CREATE'),
  validate: ({ object }) => {
    if (object !== undefined) refuse(certificateSubjectRestriction(object));
  },
};
