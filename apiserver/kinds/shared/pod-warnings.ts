// What is valid in a pod or a pod template and still worth a warning: what is deprecated, does nothing, or hides something.
// The texts are the real server's.

import { getOwn } from '../../../lib/own-property.ts';
import { parseQuantity } from '../../../lib/quantity.ts';
import type { Container, PodSpec, PodTemplate } from '../shapes.ts';

const LABELS: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  'app.kubernetes.io/created-by': 'deprecated since v1.9',
  'scheduler.alpha.kubernetes.io/preferAvoidPods': 'deprecated since v1.22; use Taints and Tolerations instead',
  'node-role.kubernetes.io/master': 'use "node-role.kubernetes.io/control-plane" instead',
};
const ANNOTATIONS: Readonly<Record<string, string>> = {
  'scheduler.alpha.kubernetes.io/critical-pod': 'non-functional in v1.16+; use the "priorityClassName" field instead',
  'security.alpha.kubernetes.io/sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
  'security.alpha.kubernetes.io/unsafe-sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
};
const VOLUMES: Readonly<Record<string, string>> = {
  photonPersistentDisk: 'deprecated in v1.11, non-functional in v1.16+',
  gitRepo: 'deprecated in v1.11, and disabled by default in v1.33+',
  scaleIO: 'deprecated in v1.16, non-functional in v1.22+',
  flocker: 'deprecated in v1.22, non-functional in v1.25+',
  storageos: 'deprecated in v1.22, non-functional in v1.25+',
  quobyte: 'deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'deprecated in v1.25, non-functional in v1.26+',
  cephfs: 'deprecated in v1.28, non-functional in v1.31+',
  rbd: 'deprecated in v1.28, non-functional in v1.31+',
};
const SECCOMP = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';
const APPARMOR = 'container.apparmor.security.beta.kubernetes.io/';
const NO_SELECTOR = 'a null labelSelector results in matching no pod';
const NANO = 1_000_000_000n;

type Annotations = { readonly [key: string]: string | undefined } | undefined;

/** `at`: '' for a pod, "spec.template." for a template. */
export function podWarnings(at: string, { metadata, spec = {} }: PodTemplate): string[] {
  const annotations = metadata?.annotations;
  return [
    ...labelWarnings(at, spec),
    ...spreadWarnings(at, spec),
    ...deprecated(`${at}metadata.annotations`, annotations, ANNOTATIONS),
    ...volumeWarnings(at, spec),
    ...repeated(`${at}spec.hostAliases`, spec.hostAliases, 'ip'),
    ...repeated(`${at}spec.imagePullSecrets`, spec.imagePullSecrets, 'name'),
    ...fractions(`${at}spec.overhead`, spec.overhead),
    ...seccompWarnings(at, annotations, SECCOMP, spec.securityContext?.seccompProfile),
    ...containersOf(at, spec).flatMap(([field, container]) =>
      containerWarnings(at, field, container, spec, annotations),
    ),
    ...portWarnings(containersOf(at, spec)),
    ...graceWarnings(at, spec),
    ...affinityWarnings(at, spec),
  ];
}

function deprecated(field: string, keys: Annotations, messages: Readonly<Record<string, string>>): string[] {
  return Object.keys(keys ?? {}).flatMap((key) => {
    const message = getOwn(messages, key);
    return message === undefined ? [] : [`${field}[${key}]: ${message}`];
  });
}

function containersOf(at: string, spec: PodSpec): (readonly [field: string, container: Container])[] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap((list) =>
    (spec[list] ?? []).map((container, index) => [`${at}spec.${list}[${index}]`, container] as const),
  );
}

interface Term {
  matchExpressions?: { key?: string | undefined }[] | undefined;
}

function labelWarnings(at: string, { nodeSelector, affinity }: PodSpec): string[] {
  const field = `${at}spec.affinity.nodeAffinity`;
  const {
    requiredDuringSchedulingIgnoredDuringExecution: hard,
    preferredDuringSchedulingIgnoredDuringExecution: soft,
  } = affinity?.nodeAffinity ?? {};
  const of = (place: string, { matchExpressions = [] }: Term): string[] =>
    matchExpressions.flatMap(({ key = '' }, index) => {
      const message = getOwn(LABELS, key);
      return message === undefined ? [] : [`${place}.matchExpressions[${index}].key: ${key} is ${message}`];
    });
  return [
    ...deprecated(`${at}spec.nodeSelector`, nodeSelector, LABELS),
    ...(hard?.nodeSelectorTerms ?? []).flatMap((term, index) =>
      of(`${field}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[${index}]`, term),
    ),
    ...(soft ?? []).flatMap(({ preference = {} }, index) =>
      of(`${field}.preferredDuringSchedulingIgnoredDuringExecution[${index}].preference`, preference),
    ),
  ];
}

function spreadWarnings(at: string, { topologySpreadConstraints = [] }: PodSpec): string[] {
  return topologySpreadConstraints.flatMap(({ topologyKey = '', labelSelector }, index) => {
    const field = `${at}spec.topologySpreadConstraints[${index}]`;
    const message = getOwn(LABELS, topologyKey);
    return [
      ...(message === undefined ? [] : [`${field}.topologyKey: ${topologyKey} is ${message}`]),
      ...(labelSelector === undefined ? [`${field}.labelSelector: ${NO_SELECTOR}`] : []),
    ];
  });
}

function volumeWarnings(at: string, { volumes = [] }: PodSpec): string[] {
  return volumes.flatMap((volume, index) =>
    Object.entries(VOLUMES)
      .filter(([source]) => getOwn(volume, source) !== undefined)
      .map(([source, message]) => `${at}spec.volumes[${index}].${source}: ${message}`),
  );
}

function repeated(
  field: string,
  items: readonly { ip?: string | undefined; name?: string | undefined }[] = [],
  key: 'ip' | 'name',
) {
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    const value = item[key] ?? '';
    const again = seen.has(value);
    seen.add(value);
    return again ? [`${field}[${index}].${key}: duplicate ${key} ${JSON.stringify(value)}`] : [];
  });
}

type Quantities = { readonly [name: string]: string | undefined } | undefined;

function fractions(field: string, quantities: Quantities): string[] {
  return ['memory', 'ephemeral-storage'].flatMap((name) => {
    const value = getOwn(quantities, name);
    const nano = value === undefined ? undefined : parseQuantity(value);
    if (nano === undefined || nano % NANO === 0n) return [];
    return [`${field}[${name}]: fractional byte value ${JSON.stringify(value)} is invalid, must be an integer`];
  });
}

function seccompWarnings(at: string, annotations: Annotations, key: string, profile: object | undefined): string[] {
  if (profile !== undefined || getOwn(annotations, key) === undefined) return [];
  return [`${at}metadata.annotations[${key}]: non-functional in v1.27+; use the "seccompProfile" field instead`];
}

function containerWarnings(
  at: string,
  field: string,
  container: Container,
  spec: PodSpec,
  annotations: Annotations,
): string[] {
  const { name = '', resources, securityContext } = container;
  const key = `${APPARMOR}${name}`;
  // Of a pod the annotation becomes the field.
  const annotated = at !== '' && getOwn(annotations, key) !== undefined;
  const unset = securityContext?.appArmorProfile === undefined && spec.securityContext?.appArmorProfile === undefined;
  return [
    ...seccompWarnings(at, annotations, `${SECCOMP_CONTAINER}${name}`, securityContext?.seccompProfile),
    ...(annotated && unset
      ? [`${at}metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`]
      : []),
    ...fractions(`${field}.resources.limits`, resources?.limits),
    ...fractions(`${field}.resources.requests`, resources?.requests),
    ...hiddenVariables(`${field}.env`, container.env),
  ];
}

/** A variable that is defined again, and not in terms of itself. */
function hiddenVariables(field: string, env: Container['env'] = []): string[] {
  const seen = new Set<string>();
  return env.flatMap(({ name = '', value = '', valueFrom }, index) => {
    const again = seen.has(name);
    seen.add(name);
    const own = `$(${name})`;
    if (!again || (valueFrom === undefined && value !== own && value.includes(own))) return [];
    const hidden = `hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`;
    return [`${field}[${index}]: ${hidden}`];
  });
}

type Port = NonNullable<Container['ports']>[number];
/** A client may send as many ports as fit into a body, each to be compared with those before. */
const MAX_COMPARED = 32;

function portWarnings(containers: readonly (readonly [string, Container])[]): string[] {
  const warnings: string[] = [];
  const taken = new Map<string, { field: string; port: Port }[]>();
  const names = new Map<string, string>();
  for (const [at, { ports = [] }] of containers) {
    for (const [index, port] of ports.entries()) {
      const field = `${at}.ports[${index}]`;
      const key = `${port.containerPort}/${port.protocol}`;
      const others = taken.get(key) ?? [];
      for (const other of others) {
        const how = clash(port, other.port);
        if (how !== undefined) warnings.push(`${field}: ${how} port definition with ${other.field}`);
      }
      if (others.length < MAX_COMPARED) taken.set(key, [...others, { field, port }]);
      const { name = '' } = port;
      const other = names.get(name);
      if (name !== '' && other === undefined) names.set(name, field);
      if (other === undefined) continue;
      const use = `services and probes that select ports by name will use ${other}`;
      warnings.push(`${field}: duplicate port name ${JSON.stringify(name)} with ${other}, ${use}`);
    }
  }
  return warnings;
}

function clash(port: Port, other: Port): string | undefined {
  const [host, otherHost] = [port.hostPort ?? 0, other.hostPort ?? 0];
  const [ip, otherIp] = [port.hostIP ?? '', other.hostIP ?? ''];
  if (ip === otherIp && host === otherHost) return 'duplicate';
  if (host === 0 || otherHost === 0) return 'overlapping';
  return host === otherHost && (ip === '') !== (otherIp === '') ? 'dangerously ambiguous' : undefined;
}

function graceWarnings(at: string, { terminationGracePeriodSeconds: seconds = 0 }: PodSpec): string[] {
  if (seconds >= 0) return [];
  return [
    `${at}spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`,
  ];
}

function affinityWarnings(at: string, { affinity }: PodSpec): string[] {
  return (['podAffinity', 'podAntiAffinity'] as const).flatMap((kind) => {
    const { requiredDuringSchedulingIgnoredDuringExecution: hard = [], ...rest } = affinity?.[kind] ?? {};
    const { preferredDuringSchedulingIgnoredDuringExecution: soft = [] } = rest;
    const field = `${at}spec.affinity.${kind}`;
    return [
      ...hard.flatMap(({ labelSelector }, index) =>
        labelSelector === undefined
          ? [`${field}.requiredDuringSchedulingIgnoredDuringExecution[${index}].labelSelector: ${NO_SELECTOR}`]
          : [],
      ),
      ...soft.flatMap(({ podAffinityTerm }, index) =>
        podAffinityTerm?.labelSelector === undefined
          ? [
              `${field}.preferredDuringSchedulingIgnoredDuringExecution[${index}].podAffinityTerm.labelSelector: ${NO_SELECTOR}`,
            ]
          : [],
      ),
    ];
  });
}
