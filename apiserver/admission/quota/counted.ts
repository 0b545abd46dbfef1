// A stored object as quotas count it.

import type { PersistentVolumeClaim, Service } from 'kubernetes-types/core/v1';
import type { Counted } from '../../../lib/quota/objects.ts';
import type { CountedResource } from '../../../lib/quota/usage.ts';
import type { KubeObject } from '../../kinds/resource.ts';
import { as, podOf } from '../../kinds/shapes.ts';

export function countedOf({ group, plural }: CountedResource, object: KubeObject): Counted {
  if (group === '' && plural === 'pods') return { kind: 'pod', pod: podOf(object) };
  if (group === '' && plural === 'services') return { kind: 'service', service: as<Service>(object, 'Service') };
  if (group === '' && plural === 'persistentvolumeclaims') {
    return { kind: 'claim', claim: as<PersistentVolumeClaim>(object, 'PersistentVolumeClaim') };
  }
  return { kind: 'other' };
}
