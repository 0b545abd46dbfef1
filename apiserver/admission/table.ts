// Every admission plugin of kube-apiserver 1.34, in the order in which it runs them (pkg/kubeapiserver/options/plugins.go),
// and which of them a server has: what is on by default, what the flags change, and what is not here.

import { UserError } from '../../lib/errors.ts';
import type { Authorizer } from '../auth/authorizer.ts';
import type { PluginConfigurations } from './configuration.ts';
import type { AdmissionPlugin, RemotePlugin } from './plugin.ts';
import { alwaysAdmit, alwaysDeny } from './plugins/always.ts';
import { alwaysPullImages } from './plugins/always-pull-images.ts';
import {
  certificateApprovalPlugin,
  certificateSigningPlugin,
  certificateSubjectRestrictionPlugin,
} from './plugins/certificates.ts';
import { clusterTrustBundleAttest } from './plugins/cluster-trust-bundle-attest.ts';
import { defaultIngressClass } from './plugins/default-ingress-class.ts';
import { defaultStorageClass } from './plugins/default-storage-class.ts';
import { defaultTolerationSeconds } from './plugins/default-toleration-seconds.ts';
import { denyServiceExternalIPs } from './plugins/deny-service-external-ips.ts';
import { extendedResourceToleration } from './plugins/extended-resource-toleration.ts';
import { limitPodHardAntiAffinityTopology } from './plugins/limit-pod-hard-anti-affinity-topology.ts';
import { limitRanger } from './plugins/limit-ranger.ts';
import { mutatingAdmissionWebhook } from './plugins/mutating-admission-webhook.ts';
import { namespaceExists } from './plugins/namespace-exists.ts';
import { namespaceLifecycle } from './plugins/namespace-lifecycle.ts';
import { nodeRestriction } from './plugins/node-restriction.ts';
import { persistentVolumeClaimResize } from './plugins/persistent-volume-claim-resize.ts';
import { podNodeSelector } from './plugins/pod-node-selector.ts';
import { podSecurity } from './plugins/pod-security.ts';
import { priority } from './plugins/priority.ts';
import { resourceQuota } from './plugins/resource-quota.ts';
import { runtimeClass } from './plugins/runtime-class.ts';
import { serviceAccount } from './plugins/service-account.ts';
import { storageObjectInUseProtection } from './plugins/storage-object-in-use-protection.ts';
import { taintNodesByCondition } from './plugins/taint-nodes-by-condition.ts';
import { validatingAdmissionPolicy } from './plugins/validating-admission-policy.ts';
import { validatingAdmissionWebhook } from './plugins/validating-admission-webhook.ts';
import type { FindKind } from './policies/params.ts';
import type { QuotaUsage } from './quota/check.ts';
import type { WebhookClient } from './webhooks/client.ts';

/** What plugins need beside the request. */
export interface PluginParts {
  /** Audiences that nodes may request tokens for though no volume of the pod needs them. */
  readonly nodeAudiences: readonly string[];
  readonly quotas: QuotaUsage;
  /** Of the registry whose plugins these are. */
  readonly authorizer: () => Authorizer;
  readonly webhooks: WebhookClient;
  readonly findKind: FindKind;
  readonly configurations: PluginConfigurations;
}

interface PluginRow {
  readonly name: string;
  /** On without a flag. As kube-apiserver, and NodeRestriction as kubeadm has it. */
  readonly on: boolean;
  /** Absent: not here. */
  readonly create?: (parts: PluginParts) => AdmissionPlugin | RemotePlugin;
}

const absent = (name: string, on = false): PluginRow => ({ name, on });
const here = (plugin: AdmissionPlugin): PluginRow => ({ name: plugin.name, on: true, create: () => plugin });

/** Off without a flag. */
const optional = (plugin: AdmissionPlugin): PluginRow => ({ name: plugin.name, on: false, create: () => plugin });

export const PLUGINS: readonly PluginRow[] = [
  optional(alwaysAdmit),
  absent('NamespaceAutoProvision'),
  here(namespaceLifecycle),
  optional(namespaceExists),
  optional(limitPodHardAntiAffinityTopology),
  here(limitRanger),
  here(serviceAccount),
  { name: 'NodeRestriction', on: true, create: (parts) => nodeRestriction(parts) },
  here(taintNodesByCondition),
  optional(alwaysPullImages),
  absent('ImagePolicyWebhook'),
  { name: 'PodSecurity', on: true, create: ({ configurations }) => podSecurity(configurations.podSecurity) },
  optional(podNodeSelector),
  here(priority),
  here(defaultTolerationSeconds),
  absent('PodTolerationRestriction'),
  absent('EventRateLimit'),
  optional(extendedResourceToleration),
  here(defaultStorageClass),
  here(storageObjectInUseProtection),
  absent('OwnerReferencesPermissionEnforcement'),
  here(persistentVolumeClaimResize),
  here(runtimeClass),
  { name: 'CertificateApproval', on: true, create: ({ authorizer }) => certificateApprovalPlugin(authorizer) },
  { name: 'CertificateSigning', on: true, create: ({ authorizer }) => certificateSigningPlugin(authorizer) },
  { name: 'ClusterTrustBundleAttest', on: true, create: ({ authorizer }) => clusterTrustBundleAttest(authorizer) },
  here(certificateSubjectRestrictionPlugin),
  here(defaultIngressClass),
  optional(denyServiceExternalIPs),
  absent('PodTopologyLabels', true),
  absent('MutatingAdmissionPolicy', true),
  { name: 'MutatingAdmissionWebhook', on: true, create: ({ webhooks }) => mutatingAdmissionWebhook(webhooks) },
  { name: 'ValidatingAdmissionPolicy', on: true, create: ({ findKind }) => validatingAdmissionPolicy(findKind) },
  { name: 'ValidatingAdmissionWebhook', on: true, create: ({ webhooks }) => validatingAdmissionWebhook(webhooks) },
  { name: 'ResourceQuota', on: true, create: ({ quotas }) => resourceQuota(quotas) },
  optional(alwaysDeny),
];

/** Values of the flags; a plugin is named once at most. */
export interface PluginChoice {
  readonly enable?: readonly string[];
  readonly disable?: readonly string[];
  /** --admission-control-config-file */
  readonly configFile?: string;
}

/** The rows of the plugins that run, in order. Pure. Throws UserError with kube-apiserver's messages. */
export function chosenPlugins({ enable = [], disable = [] }: PluginChoice): readonly PluginRow[] {
  for (const [flag, names] of [
    ['enable-admission-plugins', enable],
    ['disable-admission-plugins', disable],
  ] as const) {
    const unknown = names.find((name) => !PLUGINS.some((row) => row.name === name));
    if (unknown !== undefined) throw new UserError(`${flag} plugin ${JSON.stringify(unknown)} is unknown`);
  }
  const both = enable.filter((name) => disable.includes(name)).sort();
  if (both.length > 0) {
    const list = [...new Set(both)].join(' ');
    throw new UserError(`[${list}] in enable-admission-plugins and disable-admission-plugins overlapped`);
  }
  const missing = PLUGINS.find((row) => row.create === undefined && enable.includes(row.name));
  if (missing !== undefined) {
    throw new UserError(
      `enable-admission-plugins: ${missing.name} is a plugin of kube-apiserver that this server does not have`,
    );
  }
  return PLUGINS.filter(
    (row) => row.create !== undefined && (enable.includes(row.name) || (row.on && !disable.includes(row.name))),
  );
}

/** The plugins that run, in order. Throws UserError. */
export function createPlugins(choice: PluginChoice, parts: PluginParts): (AdmissionPlugin | RemotePlugin)[] {
  return chosenPlugins(choice).flatMap(({ create }) => (create === undefined ? [] : [create(parts)]));
}
