// DenyServiceExternalIPs: Services get no external addresses that they do not have already
// (plugin/pkg/admission/network/denyserviceexternalips).

import type { Service } from 'kubernetes-types/core/v1';
import type { KubeObject } from '../../kinds/resource.ts';
import { as } from '../../kinds/shapes.ts';
import { AdmissionForbidden, type AdmissionPlugin, handlesOnly } from '../plugin.ts';

const addressesOf = (object: KubeObject | undefined): string[] =>
  object === undefined ? [] : (as<Service>(object, 'Service').spec?.externalIPs ?? []);

export const denyServiceExternalIPs: AdmissionPlugin = {
  name: 'DenyServiceExternalIPs',
  handles: handlesOnly('', 'services', 'CREATE', 'UPDATE'),
  validate: ({ object, old }) => {
    const known = addressesOf(old);
    if (addressesOf(object).some((address) => !known.includes(address))) {
      throw new AdmissionForbidden('Use of external IPs is denied by admission control.');
    }
  },
};
