// ResourceQuota: nothing is created or grown beyond the quotas of its namespace. The rules are quota/check.ts, the figures
// those of quota/ledger.ts; between this decision and the write nothing else is written.

import { AdmissionForbidden, type AdmissionPlugin } from '../plugin.ts';
import { type QuotaUsage, quotaRefusal } from '../quota/check.ts';

export function resourceQuota(usage: QuotaUsage): AdmissionPlugin {
  return {
    name: 'ResourceQuota',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    validate: (attributes) => {
      const { namespace, resource } = attributes;
      if (namespace === '' || (resource.group === '' && resource.plural === 'namespaces')) return;
      const refusal = quotaRefusal(attributes, usage.quotas(namespace, `${resource.group}/${resource.plural}`));
      if (refusal !== undefined) throw new AdmissionForbidden(refusal);
    },
  };
}
