// NamespaceLifecycle: nothing is created or changed in a namespace that is not there, nothing new comes into one that is
// being deleted, and three namespaces cannot be deleted (k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle).

import { forbidden, notFound, StatusError } from '../../errors.ts';
import { type AdmissionAttributes, type AdmissionPlugin, refusalOf } from '../plugin.ts';

const NAMESPACES = { group: '', plural: 'namespaces' } as const;
const IMMORTAL = new Set(['default', 'kube-system', 'kube-public']);

/** 403 with the cause that controllers look for. */
function terminating(attributes: AdmissionAttributes): StatusError {
  const { namespace } = attributes;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const { status } = refusalOf(attributes, why);
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  };
  return new StatusError(403, 'Forbidden', status.message ?? why, { ...status.details, causes: [cause] });
}

export const namespaceLifecycle: AdmissionPlugin = {
  name: 'NamespaceLifecycle',
  handles: (operation) => operation !== 'CONNECT',
  admit: (attributes, lookup) => {
    const { operation, resource, namespace, name } = attributes;
    if (resource.group === '' && resource.plural === 'namespaces') {
      if (operation === 'DELETE' && IMMORTAL.has(name)) {
        throw forbidden(resource, name, 'this namespace may not be deleted');
      }
      return;
    }
    if (namespace === '' || operation === 'DELETE') return;
    const found = lookup.get('', 'namespaces', '', namespace);
    if (found === undefined) throw notFound(NAMESPACES, namespace);
    if (operation === 'CREATE' && found.metadata.deletionTimestamp !== undefined) throw terminating(attributes);
  },
};
