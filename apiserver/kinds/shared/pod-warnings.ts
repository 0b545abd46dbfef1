// What is valid in a pod or a pod template and still worth a warning: what is deprecated, does nothing, or hides something.
// The texts are the real server's.

import { getOwn } from '../../../lib/own-property.ts';
import type { Container, PodSpec, PodTemplate } from '../shapes.ts';
import { addressWarnings } from './addresses.ts';
import { claimWarnings, fractionWarning } from './claim-warnings.ts';
import { NODE_LABELS, termWarnings } from './node-label-warnings.ts';
import { overlapWarnings } from './path-warnings.ts';

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
};
/** After what a volume's claim is worth. */
const LATER_VOLUMES: Readonly<Record<string, string>> = {
  cephfs: 'deprecated in v1.28, non-functional in v1.31+',
  rbd: 'deprecated in v1.28, non-functional in v1.31+',
};
const SECCOMP = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';
const APPARMOR = 'container.apparmor.security.beta.kubernetes.io/';
const NO_SELECTOR = 'a null labelSelector results in matching no pod';

type Annotations = { readonly [key: string]: string | undefined } | undefined;

/** `at`: '' for a pod, "spec.template." for a template. */
export function podWarnings(at: string, { metadata, spec = {} }: PodTemplate): string[] {
  const annotations = metadata?.annotations;
  return [
    ...labelWarnings(at, spec),
    ...spreadWarnings(at, spec),
    ...deprecated(`${at}metadata.annotations`, annotations, ANNOTATIONS),
    ...volumeWarnings(at, spec),
    ...overlapWarnings(spec.volumes),
    ...repeated(`${at}spec.hostAliases`, spec.hostAliases, 'ip'),
    ...repeated(`${at}spec.imagePullSecrets`, spec.imagePullSecrets, 'name'),
    ...(spec.imagePullSecrets ?? []).flatMap(({ name = '' }, index) =>
      name === '' ? [`${at}spec.imagePullSecrets[${index}].name: invalid empty name ""`] : [],
    ),
    ...fractions(`${at}spec.overhead`, spec.overhead),
    ...seccompWarnings(at, annotations, SECCOMP, spec.securityContext?.seccompProfile),
    ...containersOf(at, spec).flatMap(([field, container]) =>
      containerWarnings(at, field, container, spec, annotations),
    ),
    ...portWarnings(containersOf(at, spec)),
    ...graceWarnings(at, spec),
    ...affinityWarnings(at, spec),
    ...(spec.dnsConfig?.nameservers ?? []).flatMap((address, index) =>
      addressWarnings(`${at}spec.dnsConfig.nameservers[${index}]`, address),
    ),
    ...(spec.hostAliases ?? []).flatMap(({ ip = '' }, index) =>
      addressWarnings(`${at}spec.hostAliases[${index}].ip`, ip),
    ),
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

function labelWarnings(at: string, { nodeSelector, affinity }: PodSpec): string[] {
  const field = `${at}spec.affinity.nodeAffinity`;
  const {
    requiredDuringSchedulingIgnoredDuringExecution: hard,
    preferredDuringSchedulingIgnoredDuringExecution: soft,
  } = affinity?.nodeAffinity ?? {};
  return [
    ...deprecated(`${at}spec.nodeSelector`, nodeSelector, NODE_LABELS),
    ...(hard?.nodeSelectorTerms ?? []).flatMap((term, index) =>
      termWarnings(`${field}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[${index}]`, term),
    ),
    ...(soft ?? []).flatMap(({ preference = {} }, index) =>
      termWarnings(`${field}.preferredDuringSchedulingIgnoredDuringExecution[${index}].preference`, preference, true),
    ),
  ];
}

function spreadWarnings(at: string, { topologySpreadConstraints = [] }: PodSpec): string[] {
  return topologySpreadConstraints.flatMap(({ topologyKey = '', labelSelector }, index) => {
    const field = `${at}spec.topologySpreadConstraints[${index}]`;
    const message = getOwn(NODE_LABELS, topologyKey);
    return [
      ...(message === undefined ? [] : [`${field}.topologyKey: ${topologyKey} is ${message}`]),
      ...(labelSelector === undefined ? [`${field}.labelSelector: ${NO_SELECTOR}`] : []),
    ];
  });
}

function volumeWarnings(at: string, { volumes = [] }: PodSpec): string[] {
  return volumes.flatMap((volume, index) => {
    const field = `${at}spec.volumes[${index}]`;
    const of = (sources: Readonly<Record<string, string>>): string[] =>
      Object.entries(sources)
        .filter(([source]) => getOwn(volume, source) !== undefined)
        .map(([source, message]) => `${field}.${source === 'storageos' ? 'storageOS' : source}: ${message}`);
    const claim = volume.ephemeral?.volumeClaimTemplate?.spec;
    return [
      ...of(VOLUMES),
      ...(claim === undefined ? [] : claimWarnings(`${field}.ephemeral.volumeClaimTemplate.spec`, claim)),
      ...of(LATER_VOLUMES),
    ];
  });
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
  return ['memory', 'ephemeral-storage'].flatMap((name) =>
    fractionWarning(`${field}[${name}]`, getOwn(quantities, name)),
  );
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
