// NamespaceExists: nothing is written, and nothing deleted, in a namespace that is not there
// (plugin/pkg/admission/namespace/exists).

import { notFound } from '../../errors.ts';
import type { AdmissionPlugin } from '../plugin.ts';

const NAMESPACES = { group: '', plural: 'namespaces' } as const;

export const namespaceExists: AdmissionPlugin = {
  name: 'NamespaceExists',
  handles: (operation) => operation !== 'CONNECT',
  validate: ({ namespace }, lookup) => {
    if (namespace === '' || lookup.get('', 'namespaces', '', namespace) !== undefined) return;
    throw notFound(NAMESPACES, namespace);
  },
};
