// Service accounts: who a pod is to the API.

import type { ServiceAccount } from 'kubernetes-types/core/v1';
import { namedTable } from './columns.ts';
import { defineKind } from './metadata.ts';
import type { KubeObject } from './resource.ts';
import { as } from './shapes.ts';

const MOUNTABLE = 'kubernetes.io/enforce-mountable-secrets';

/** Of secrets only the names are kept. */
function onlyNames(object: KubeObject): void {
  const account = as<ServiceAccount>(object, 'ServiceAccount');
  if (account.secrets !== undefined) account.secrets = account.secrets.map(({ name = '' }) => ({ name }));
}

export const serviceaccounts = defineKind({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  singular: 'serviceaccount',
  shortNames: ['sa'],
  namespaced: true,
  subresources: ['token'],
  schema: 'io.k8s.api.core.v1.ServiceAccount',
  updateMeta: ['update', 'rules'],
  strategy: {
    prepareForCreate: onlyNames,
    prepareForUpdate: onlyNames,
    warnings: ({ metadata }, old) =>
      metadata.annotations?.[MOUNTABLE] === undefined || old?.metadata.annotations?.[MOUNTABLE] !== undefined
        ? []
        : [
            `metadata.annotations[${MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
          ],
    table: namedTable(
      [{ name: 'Secrets', type: 'string', description: 'Secrets that pods running as this account may use.' }],
      (object) => [(as<ServiceAccount>(object, 'ServiceAccount').secrets ?? []).length],
    ),
  },
});
