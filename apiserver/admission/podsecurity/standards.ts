// The Pod Security Standards as a table: each check with its level and the versions from which it holds, as in Kubernetes
// 1.34 (k8s.io/pod-security-admission/policy). Later versions, and "latest", are those of 1.34. Pure.

import type { KubeObjectMeta } from '../../kinds/resource.ts';
import type { PodSpec } from '../../kinds/shapes.ts';
import {
  appArmorProfile,
  capabilities,
  hostNamespaces,
  hostPathVolumes,
  hostPorts,
  hostProbes,
  privileged,
  procMount,
  seccompAnnotations,
  seccompProfile,
  seLinuxOptions,
  sysctls,
  windowsHostProcess,
} from './baseline.ts';
import type { LevelVersion } from './levels.ts';
import {
  allowPrivilegeEscalation,
  exceptWindows,
  restrictedCapabilities,
  restrictedSeccompProfile,
  restrictedVolumes,
  runAsNonRoot,
  runAsUser,
} from './restricted.ts';
import type { CheckPod, Violation } from './result.ts';

interface Check {
  readonly id: string;
  readonly level: 'baseline' | 'restricted';
  /** From which minor version on which rule holds, ascending. */
  readonly versions: readonly (readonly [since: number, check: CheckPod])[];
  /** The baseline check that it includes. */
  readonly overrides?: string;
}

const RESERVED = 'net.ipv4.ip_local_reserved_ports';
const KEEPALIVE = [
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
];
const MEMORY = ['net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'];

/** In the order in which violations are shown: baseline first, each level by id. */
const CHECKS: readonly Check[] = [
  { id: 'appArmorProfile', level: 'baseline', versions: [[0, appArmorProfile]] },
  { id: 'capabilities_baseline', level: 'baseline', versions: [[0, capabilities]] },
  { id: 'hostNamespaces', level: 'baseline', versions: [[0, hostNamespaces]] },
  { id: 'hostPathVolumes', level: 'baseline', versions: [[0, hostPathVolumes]] },
  { id: 'hostPorts', level: 'baseline', versions: [[0, hostPorts]] },
  { id: 'hostProbesAndHostLifecycle', level: 'baseline', versions: [[34, hostProbes]] },
  { id: 'privileged', level: 'baseline', versions: [[0, privileged]] },
  { id: 'procMount', level: 'baseline', versions: [[0, procMount]] },
  {
    id: 'seLinuxOptions',
    level: 'baseline',
    versions: [
      [0, seLinuxOptions()],
      [31, seLinuxOptions('container_engine_t')],
    ],
  },
  {
    id: 'seccompProfile_baseline',
    level: 'baseline',
    versions: [
      [0, seccompAnnotations],
      [19, seccompProfile],
    ],
  },
  {
    id: 'sysctls',
    level: 'baseline',
    versions: [
      [0, sysctls()],
      [27, sysctls(RESERVED)],
      [29, sysctls(RESERVED, ...KEEPALIVE)],
      [32, sysctls(RESERVED, ...KEEPALIVE, ...MEMORY)],
    ],
  },
  { id: 'windowsHostProcess', level: 'baseline', versions: [[0, windowsHostProcess]] },
  {
    id: 'allowPrivilegeEscalation',
    level: 'restricted',
    versions: [
      [8, allowPrivilegeEscalation],
      [25, exceptWindows(allowPrivilegeEscalation)],
    ],
  },
  {
    id: 'capabilities_restricted',
    level: 'restricted',
    versions: [
      [22, restrictedCapabilities],
      [25, exceptWindows(restrictedCapabilities)],
    ],
    overrides: 'capabilities_baseline',
  },
  { id: 'restrictedVolumes', level: 'restricted', versions: [[0, restrictedVolumes]], overrides: 'hostPathVolumes' },
  { id: 'runAsNonRoot', level: 'restricted', versions: [[0, runAsNonRoot]] },
  { id: 'runAsUser', level: 'restricted', versions: [[23, runAsUser]] },
  {
    id: 'seccompProfile_restricted',
    level: 'restricted',
    versions: [
      [19, restrictedSeccompProfile],
      [25, exceptWindows(restrictedSeccompProfile)],
    ],
    overrides: 'seccompProfile_baseline',
  },
];

/** What the pod breaks of a level, in the standard's order. */
export function violations(
  { level, version }: LevelVersion,
  metadata: KubeObjectMeta,
  spec: PodSpec,
): readonly Violation[] {
  if (level === 'privileged') return [];
  const inForce = CHECKS.flatMap((check) => {
    const rule = check.versions.findLast(([since]) => since <= version)?.[1];
    const counts = check.level === 'baseline' || level === 'restricted';
    return rule === undefined || !counts ? [] : [{ id: check.id, rule, overrides: check.overrides }];
  });
  const overridden = new Set(inForce.map(({ overrides }) => overrides));
  return inForce.filter(({ id }) => !overridden.has(id)).flatMap(({ rule }) => rule(spec, metadata) ?? []);
}

/** "host namespaces (hostNetwork=true), privileged (…)" */
export function shownViolations(found: readonly Violation[]): string {
  return found.map(({ reason, detail }) => (detail === '' ? reason : `${reason} (${detail})`)).join(', ');
}
