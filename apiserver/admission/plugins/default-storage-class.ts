// DefaultStorageClass: a claim that names no class gets the default one (plugin/pkg/admission/storage/storageclass).

import type { PersistentVolumeClaim } from 'kubernetes-types/core/v1';
import { as } from '../../kinds/shapes.ts';
import { CLASS_ANNOTATION, defaultClass } from '../../kinds/storage/shared.ts';
import { type AdmissionPlugin, handlesOnly } from '../plugin.ts';

export const defaultStorageClass: AdmissionPlugin = {
  name: 'DefaultStorageClass',
  handles: handlesOnly('', 'persistentvolumeclaims', 'CREATE'),
  admit: ({ object }, lookup) => {
    if (object === undefined) return;
    const { metadata, spec } = as<PersistentVolumeClaim>(object, 'PersistentVolumeClaim');
    // '' is "no class", undefined "whatever the default is".
    if (spec === undefined || (metadata.annotations?.[CLASS_ANNOTATION] ?? spec.storageClassName) !== undefined) return;
    const name = defaultClass({ lookup });
    if (name !== undefined) spec.storageClassName = name;
  },
};
