// Features that this node lacks: another operating system's programs, supplementalGroupsPolicy where the runtime has it
// not, AppArmor where the kernel has it not, and what nodelet does not implement. The support of each
// field of a pod is in docs/pod-fields.md. Pure.

import type { Pod } from '../../client/types.ts';

interface Refusal {
  readonly reason: string;
  readonly message: string;
}

/** kubernetes.io/os in the node selector, and spec.os. The node runs Linux. */
export function refuseOS({ spec }: Pod, labels: Readonly<Record<string, string>>): Refusal | undefined {
  const selected = spec.nodeSelector?.['kubernetes.io/os'];
  if (selected !== undefined && selected !== (labels['kubernetes.io/os'] ?? 'linux')) {
    return {
      reason: 'PodOSSelectorNodeLabelDoesNotMatch',
      message: "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    };
  }
  if (spec.os !== undefined && spec.os.name !== 'linux') {
    return { reason: 'PodOSNotSupported', message: "Failed to admit pod as the OS field doesn't match node OS" };
  }
  return undefined;
}

/** With the field that is newer than the types (KEP-3619). */
type WithGroupsPolicy = Pod['spec']['securityContext'] & { readonly supplementalGroupsPolicy?: string };

/** `supported`: undefined while unknown, which refuses nothing. */
export function refuseSupplementalGroupsPolicy({ spec }: Pod, supported: boolean | undefined): Refusal | undefined {
  const security: WithGroupsPolicy = spec.securityContext ?? {};
  const { supplementalGroupsPolicy: policy = 'Merge' } = security;
  if (policy === 'Merge' || supported !== false) return undefined;
  return {
    reason: 'SupplementalGroupsPolicyNotSupported',
    message: 'SupplementalGroupsPolicy=Strict is not supported in this node',
  };
}

/** With the fields that are newer than the types. */
type NewerContainer = Pod['spec']['containers'][number] & {
  readonly restartPolicyRules?: readonly { readonly action?: string }[];
  readonly securityContext?: { readonly cgroupOptions?: { readonly mountMode?: string } };
};
type NewerSpec = Pod['spec'] & {
  readonly defaultNetwork?: string;
  readonly resourceClaims?: readonly unknown[];
};

/** Features that pods may use and that nodelet lacks, by the names of their gates, with a predicate for pods that use them. */
const ABSENT: readonly (readonly [
  feature: string,
  wanted: (spec: NewerSpec, all: readonly NewerContainer[]) => boolean,
])[] = [
  // Devices: without them the pod would run as if it had none (KEP-4381).
  [
    'DynamicResourceAllocation',
    (spec, all) =>
      (spec.resourceClaims ?? []).length > 0 || all.some(({ resources }) => (resources?.claims ?? []).length > 0),
  ],
  // Isolation that the pod counts on.
  ['PodDefaultNetworkNone', ({ defaultNetwork = 'Default' }) => defaultNetwork !== 'Default'],
  [
    'CgroupOptions',
    (_, all) => all.some(({ securityContext }) => securityContext?.cgroupOptions?.mountMode !== undefined),
  ],
  // KEP-5532
  [
    'RestartAllContainersOnContainerExits',
    (_, all) =>
      all.some(({ restartPolicyRules = [] }) =>
        restartPolicyRules.some(({ action }) => action === 'RestartAllContainers'),
      ),
  ],
];

/** The kubelet's messages of its check of declared features (KEP-5328). A pod that has started is not checked again. */
export function refuseAbsentFeatures({ spec, status }: Pod): Refusal | undefined {
  if ((status?.phase ?? 'Pending') !== 'Pending') return undefined;
  const all = [...(spec.initContainers ?? []), ...spec.containers];
  const missing = ABSENT.flatMap(([feature, wanted]) => (wanted(spec, all) ? [feature] : []));
  if (missing.length === 0) return undefined;
  return {
    reason: 'PodFeatureUnsupported',
    message: `Pod requires node features that are not available: ${missing.join(', ')}`,
  };
}

interface WithAppArmor {
  readonly appArmorProfile?: { readonly type?: string; readonly localhostProfile?: string };
}

const ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';

/** Whether any profile but "unconfined" is requested, in the spec or by the older annotations. */
function wantsAppArmor({ metadata, spec }: Pod): boolean {
  const contexts: readonly (WithAppArmor | undefined)[] = [
    spec.securityContext,
    ...[...(spec.initContainers ?? []), ...spec.containers].map(({ securityContext }) => securityContext),
  ];
  const inSpec = contexts.some((context) => (context?.appArmorProfile?.type ?? 'Unconfined') !== 'Unconfined');
  const annotated = Object.entries(metadata.annotations ?? {}).some(
    ([key, value]) => key.startsWith(ANNOTATION) && value !== '' && value !== 'unconfined',
  );
  return inSpec || annotated;
}

/** A pod that has started is not checked again. */
export function refuseAppArmor(pod: Pod, enabled: boolean): Refusal | undefined {
  if ((pod.status?.phase ?? 'Pending') !== 'Pending' || enabled || !wantsAppArmor(pod)) return undefined;
  return { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host' };
}
