// The resource table: one row per kind that the server serves. A new kind is a file here and a line below.

import { validatingadmissionpolicies, validatingadmissionpolicybindings } from './admission-policies.ts';
import { apiservices } from './apiservices.ts';
import { daemonsets } from './apps/daemonsets.ts';
import { deployments } from './apps/deployments.ts';
import { replicasets } from './apps/replicasets.ts';
import { controllerrevisions } from './apps/revisions.ts';
import { statefulsets } from './apps/statefulsets.ts';
import { horizontalpodautoscalers, horizontalpodautoscalersV1 } from './autoscaling/autoscalers.ts';
import { cronjobs } from './batch/cronjobs.ts';
import { jobs } from './batch/jobs.ts';
import { bindings } from './bindings.ts';
import { certificatesigningrequests } from './certificate-requests.ts';
import { priorityclasses, runtimeclasses } from './classes.ts';
import { configmaps } from './configmaps.ts';
import { customresourcedefinitions } from './customresourcedefinitions.ts';
import { resourceclaims, resourceclaimtemplates } from './dra/claims.ts';
import { deviceclasses, resourceslices } from './dra/classes.ts';
import { endpoints, endpointslices } from './endpoints.ts';
import { events, eventsV1 } from './events.ts';
import { prioritylevelconfigurations } from './flowcontrol/levels.ts';
import { flowschemas } from './flowcontrol/schemas.ts';
import { leases } from './leases.ts';
import { nodemetrics, podmetrics } from './metrics.ts';
import { namespaces } from './namespaces.ts';
import { ipaddresses, servicecidrs } from './networking/addresses.ts';
import { ingressclasses, ingresses } from './networking/ingresses.ts';
import { networkpolicies } from './networking/policies.ts';
import { nodes } from './nodes.ts';
import { pods } from './pods/index.ts';
import { poddisruptionbudgets } from './policy/budgets.ts';
import { limitranges } from './quota/limit-range.ts';
import { resourcequotas } from './quota/resource-quota.ts';
import { clusterrolebindings, clusterroles, rolebindings, roles } from './rbac.ts';

import { componentstatuses, podtemplates, replicationcontrollers } from './replication.ts';
import type { ResourceKind } from './resource.ts';
import { secrets } from './secrets.ts';
import { serviceaccounts } from './serviceaccounts.ts';
import { services } from './services.ts';
import { volumeattributesclasses } from './storage/attributes-classes.ts';
import { persistentvolumeclaims } from './storage/claims.ts';
import { csistoragecapacities, storageclasses } from './storage/classes.ts';
import { csidrivers, csinodes, volumeattachments } from './storage/drivers.ts';
import { persistentvolumes } from './storage/volumes.ts';
import { clustertrustbundles } from './trust-bundles.ts';
import { mutatingwebhookconfigurations, validatingwebhookconfigurations } from './webhooks.ts';

/** In the order in which discovery shows them. */
export const RESOURCE_KINDS: readonly ResourceKind[] = [
  bindings,
  componentstatuses,
  configmaps,
  endpoints,
  events,
  limitranges,
  namespaces,
  nodes,
  persistentvolumeclaims,
  persistentvolumes,
  pods,
  resourcequotas,
  podtemplates,
  replicationcontrollers,
  secrets,
  serviceaccounts,
  services,
  mutatingwebhookconfigurations,
  validatingadmissionpolicies,
  validatingadmissionpolicybindings,
  validatingwebhookconfigurations,
  apiservices,
  customresourcedefinitions,
  certificatesigningrequests,
  clustertrustbundles,
  eventsV1,
  controllerrevisions,
  daemonsets,
  deployments,
  replicasets,
  statefulsets,
  horizontalpodautoscalers,
  horizontalpodautoscalersV1,
  cronjobs,
  jobs,
  ingressclasses,
  ingresses,
  ipaddresses,
  networkpolicies,
  servicecidrs,
  poddisruptionbudgets,
  leases,
  flowschemas,
  prioritylevelconfigurations,
  endpointslices,
  runtimeclasses,
  clusterrolebindings,
  clusterroles,
  rolebindings,
  roles,
  deviceclasses,
  resourceclaims,
  resourceclaimtemplates,
  resourceslices,
  priorityclasses,
  csidrivers,
  csinodes,
  csistoragecapacities,
  storageclasses,
  volumeattachments,
  volumeattributesclasses,
  nodemetrics,
  podmetrics,
];
