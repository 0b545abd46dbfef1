// PersistentVolumeClaimResize: a claim grows only when it is bound and its class has allowVolumeExpansion
// (plugin/pkg/admission/storage/persistentvolume/resize).

import type { PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import type { StorageClass } from 'kubernetes-types/storage/v1';
import { parseQuantity } from '../../../lib/quantity.ts';
import { as, type Of } from '../../kinds/shapes.ts';
import { CLASS_ANNOTATION } from '../../kinds/storage/shared.ts';
import { AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../plugin.ts';

type Claim = Of<PersistentVolumeClaim>;

const requested = (claim: Claim): bigint => parseQuantity(claim.spec?.resources?.requests?.['storage'] ?? '0') ?? 0n;

export const persistentVolumeClaimResize: AdmissionPlugin = {
  name: 'PersistentVolumeClaimResize',
  handles: handlesOnly('', 'persistentvolumeclaims', 'UPDATE'),
  validate: ({ object, old }, lookup) => {
    if (object === undefined || old === undefined) return;
    const claim = as<PersistentVolumeClaim>(object, 'PersistentVolumeClaim');
    const before = as<PersistentVolumeClaim>(old, 'PersistentVolumeClaim');
    if (requested(claim) <= requested(before)) return;
    if (before.status?.phase !== 'Bound') {
      throw new AdmissionForbidden('Only bound persistent volume claims can be expanded');
    }
    const name = claim.metadata.annotations?.[CLASS_ANNOTATION] ?? claim.spec?.storageClassName ?? '';
    const stored = name === '' ? undefined : lookup.get('storage.k8s.io', 'storageclasses', '', name);
    if (stored === undefined || as<StorageClass>(stored, 'StorageClass').allowVolumeExpansion !== true) {
      throw new AdmissionForbidden(
        'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
      );
    }
  },
};
