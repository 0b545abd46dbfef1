// StorageObjectInUseProtection: claims and volumes stay, deleted or not, as long as they are used
// (plugin/pkg/admission/storage/storageobjectinuseprotection).

import { addFinalizer } from '../../kinds/storage/shared.ts';
import type { AdmissionPlugin } from '../plugin.ts';

const FINALIZERS = new Map([
  ['persistentvolumeclaims', 'kubernetes.io/pvc-protection'],
  ['persistentvolumes', 'kubernetes.io/pv-protection'],
]);

export const storageObjectInUseProtection: AdmissionPlugin = {
  name: 'StorageObjectInUseProtection',
  handles: (operation, { group, plural, subresource }) =>
    operation === 'CREATE' && group === '' && subresource === '' && FINALIZERS.has(plural),
  admit: ({ object, resource }) => {
    const finalizer = FINALIZERS.get(resource.plural);
    if (object !== undefined && finalizer !== undefined) addFinalizer(object, finalizer);
  },
};
