// ClusterTrustBundleAttest: a signer's bundle is written by who may attest for the signer
// (plugin/pkg/admission/certificates/ctbattest).

import type { ClusterTrustBundle } from 'kubernetes-types/certificates/v1alpha1';
import { sameJson } from '../../../lib/same-json.ts';
import type { Authorizer } from '../../auth/authorizer.ts';
import { mayUseSigner } from '../../auth/certificates.ts';
import { as } from '../../kinds/shapes.ts';
import { AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../plugin.ts';

/** `authorizer` is the server's, which is made after its plugins. */
export function clusterTrustBundleAttest(authorizer: () => Authorizer): AdmissionPlugin {
  return {
    name: 'ClusterTrustBundleAttest',
    handles: handlesOnly('certificates.k8s.io', 'clustertrustbundles', 'CREATE', 'UPDATE'),
    validate: ({ object, old, user }) => {
      if (object === undefined) return;
      const { spec } = as<ClusterTrustBundle>(object, 'ClusterTrustBundle');
      const before = old === undefined ? undefined : as<ClusterTrustBundle>(old, 'ClusterTrustBundle').spec;
      const signer = spec?.signerName ?? '';
      if (before !== undefined && (before.signerName ?? '') !== signer) {
        throw new AdmissionForbidden('changing signerName is forbidden');
      }
      if (signer === '') return;
      // Owners and finalizers may be changed by who collects garbage.
      const { ownerReferences: _o, finalizers: _f, managedFields: _m, resourceVersion: _v, ...head } = object.metadata;
      const {
        ownerReferences: _p,
        finalizers: _g,
        managedFields: _n,
        resourceVersion: _w,
        ...was
      } = old?.metadata ?? {};
      if (old !== undefined && sameJson(spec, before) && sameJson(head, was)) return;
      if (!mayUseSigner(user, authorizer(), 'attest', signer)) {
        throw new AdmissionForbidden(`user not permitted to attest for signerName ${JSON.stringify(signer)}`);
      }
    },
  };
}
