// Rules for a whole pod: its spec's own fields, and the order in which the parts are validated. Updates are
// validate-update.ts.

import { MIRROR_ANNOTATION } from '../../auth/pod-references.ts';
import { addErrors, forbidden, invalid, oneOfListed, required, syntax, tooLong } from '../field-errors.ts';
import { validateLabels } from '../metadata.ts';
import { dns1123Label, dns1123Subdomain, qualifiedName, subdomainWithUnderscores } from '../names.ts';
import type { FieldError, KubeObjectMeta } from '../resource.ts';
import type { Pod, PodSpec } from '../shapes.ts';
import { looseAddress } from '../shared/addresses.ts';
import { validatePodAnnotations, validateProfilesMatch } from './validate-annotations.ts';
import { validateAllContainers, validateImageSpaces } from './validate-containers.ts';
import { containersOf, validateHostProcess, validateOs } from './validate-os.ts';
import { validateOverhead, validatePodResources, validateResourceClaims } from './validate-resources.ts';
import { validateAffinity, validateGates, validateSpread, validateTolerations } from './validate-scheduling.ts';
import { validatePodSecurityContext } from './validate-security.ts';
import { validateVolumes } from './validate-volumes.ts';

/** Of a new pod. */
export function validatePodCreate(pod: Pod): FieldError[] {
  const spec = pod.spec ?? {};
  const errors = validatePod(pod);
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(forbidden('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if ((spec.nodeName ?? '') !== '' && (spec.schedulingGates ?? []).length > 0) {
    errors.push(forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  return errors.concat(validateProfilesMatch('spec', pod.metadata.annotations, spec));
}

/** Of a pod, new or changed, but for the metadata that every object has. */
export function validatePod(pod: Pod): FieldError[] {
  const spec = pod.spec ?? {};
  const errors = validatePodAnnotations('metadata.annotations', pod.metadata.annotations, spec);
  addErrors(errors, validatePodSpec('spec', spec, pod.metadata));
  if ((spec.serviceAccountName ?? '') === '') {
    for (const [index, volume] of (spec.volumes ?? []).entries()) {
      for (const [place, source] of (volume.projected?.sources ?? []).entries()) {
        if (source.serviceAccountToken === undefined) continue;
        const at = `spec.volumes[${index}].projected.sources[${place}].serviceAccountToken`;
        errors.push(forbidden(at, 'must not be specified when serviceAccountName is not set'));
      }
    }
  }
  return errors.concat(validateImageSpaces('spec', spec));
}

/** `metadata`: of a pod; absent for a template. In upstream's order. */
export function validatePodSpec(field: string, spec: PodSpec, metadata?: KubeObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.terminationGracePeriodSeconds === undefined) {
    errors.push(required(`${field}.terminationGracePeriodSeconds`));
  }
  const podName = metadata === undefined ? undefined : (metadata.name ?? '');
  const { volumes, errors: volumeErrors } = validateVolumes(`${field}.volumes`, spec.volumes ?? [], podName);
  const isMirror = metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined;
  const claims = new Set((spec.resourceClaims ?? []).flatMap(({ name = '' }) => (name === '' ? [] : [name])));
  addErrors(
    errors,
    volumeErrors,
    validateResourceClaims(`${field}.resourceClaims`, spec, isMirror),
    validateAllContainers(field, { spec, volumes, claims }),
    validatePodResources(`${field}.resources`, spec),
    validateHostPorts(field, spec, metadata !== undefined),
    oneOfListed(`${field}.restartPolicy`, spec.restartPolicy, ['Always', 'OnFailure', 'Never']),
    oneOfListed(`${field}.dnsPolicy`, spec.dnsPolicy, DNS_POLICIES),
    validateLabels(`${field}.nodeSelector`, spec.nodeSelector),
    validatePodSecurityContext(`${field}.securityContext`, spec),
    validateAffinity(`${field}.affinity`, spec.affinity),
    validateDns(`${field}.dnsConfig`, spec),
    validateReadinessGates(`${field}.readinessGates`, spec.readinessGates ?? []),
    validateGates(`${field}.schedulingGates`, spec.schedulingGates ?? []),
    validateSpread(`${field}.topologySpreadConstraints`, spec.topologySpreadConstraints ?? []),
    validateHostProcess(field, spec),
    validateHostUsers(field, spec),
    validateHostnameOverride(`${field}.hostnameOverride`, spec),
    validateNames(field, spec, ['serviceAccountName', 'nodeName']),
    validateActiveDeadline(`${field}.activeDeadlineSeconds`, spec.activeDeadlineSeconds),
    validateLabelNames(field, spec),
    validateTolerations(`${field}.tolerations`, spec.tolerations ?? []),
    validateHostAliases(`${field}.hostAliases`, spec.hostAliases ?? []),
    validateNames(field, spec, ['priorityClassName', 'runtimeClassName']),
    validatePreemption(`${field}.preemptionPolicy`, spec.preemptionPolicy),
    validateOverhead(`${field}.overhead`, spec.overhead),
    validateOs(field, spec),
  );
  return errors;
}

const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];

function validatePreemption(field: string, policy: string | undefined): FieldError[] {
  return policy === undefined ? [] : oneOfListed(field, policy, ['PreemptLowerPriority', 'Never']);
}

/** On the host's network a container port is a port of the host; a template may leave that to its pods. */
function validateHostPorts(field: string, spec: PodSpec, isPod: boolean): FieldError[] {
  if (spec.hostNetwork !== true) return [];
  const why = 'must match `containerPort` when `hostNetwork` is true';
  return (spec.containers ?? []).flatMap((container, index) =>
    (container.ports ?? []).flatMap(({ hostPort = 0, containerPort = 0 }, place) =>
      (isPod || hostPort !== 0) && hostPort !== containerPort
        ? [invalid(`${field}.containers[${index}].ports[${place}].hostPort`, hostPort, why)]
        : [],
    ),
  );
}

/** Upstream spells the fields as Go does. */
function validateHostUsers(field: string, spec: PodSpec): FieldError[] {
  if (spec.hostUsers !== false) return [];
  const errors: FieldError[] = [];
  const why = 'when `hostUsers` is false';
  if (spec.hostNetwork === true) errors.push(forbidden(`${field}.hostNetwork`, why));
  if (spec.hostPID === true) errors.push(forbidden(`${field}.HostPID`, why));
  if (spec.hostIPC === true) errors.push(forbidden(`${field}.HostIPC`, why));
  for (const [at, { volumeDevices = [] }] of containersOf(field, spec)) {
    if (volumeDevices.length > 0) errors.push(forbidden(`${at}.volumeDevices`, why));
  }
  return errors;
}

function validateHostnameOverride(field: string, spec: PodSpec): FieldError[] {
  const name = spec.hostnameOverride;
  if (name === undefined) return [];
  const errors: FieldError[] = [];
  if (spec.setHostnameAsFQDN === true) {
    errors.push(forbidden(field, 'may not be specified when setHostnameAsFQDN is true'));
  }
  if (spec.hostNetwork === true) errors.push(forbidden(field, 'may not be specified when hostNetwork is true'));
  if (name.length > MAX_HOSTNAME) errors.push(tooLong(field, MAX_HOSTNAME));
  return errors.concat(syntax(field, name, dns1123Subdomain(name)));
}

const MAX_HOSTNAME = 64;

type NameField = 'serviceAccountName' | 'nodeName' | 'priorityClassName' | 'runtimeClassName';

function validateNames(field: string, spec: PodSpec, names: readonly NameField[]): FieldError[] {
  return names.flatMap((name) => {
    const value = spec[name];
    const unset = value === undefined || (value === '' && name !== 'runtimeClassName');
    return unset ? [] : syntax(`${field}.${name}`, value, dns1123Subdomain(value));
  });
}

function validateLabelNames(field: string, spec: PodSpec): FieldError[] {
  return (['hostname', 'subdomain'] as const).flatMap((name) => {
    const value = spec[name] ?? '';
    return value === '' ? [] : syntax(`${field}.${name}`, value, dns1123Label(value));
  });
}

function validateActiveDeadline(field: string, seconds: number | undefined): FieldError[] {
  return seconds !== undefined && (seconds < 1 || seconds > 2 ** 31 - 1)
    ? [invalid(field, seconds, 'must be between 1 and 2147483647, inclusive')]
    : [];
}

type Aliases = NonNullable<PodSpec['hostAliases']>;

function validateHostAliases(field: string, aliases: Aliases): FieldError[] {
  return aliases.flatMap(({ ip = '', hostnames = [] }, index) => [
    ...syntax(`${field}[${index}].ip`, ip, looseAddress(ip)),
    ...hostnames.flatMap((name, place) =>
      syntax(`${field}[${index}].hostnames[${place}]`, name, dns1123Subdomain(name)),
    ),
  ]);
}

const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;

function validateDns(field: string, spec: PodSpec): FieldError[] {
  const config = spec.dnsConfig;
  const errors: FieldError[] = [];
  const servers = config?.nameservers ?? [];
  const searches = config?.searches ?? [];
  if (spec.dnsPolicy === 'None' && config === undefined) {
    return [required(field, 'must provide `dnsConfig` when `dnsPolicy` is None')];
  }
  if (spec.dnsPolicy === 'None' && servers.length === 0) {
    return [required(`${field}.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None')];
  }
  if (servers.length > MAX_NAMESERVERS) {
    errors.push(invalid(`${field}.nameservers`, servers, `must not have more than ${MAX_NAMESERVERS} nameservers`));
  }
  for (const [index, server] of servers.entries()) {
    addErrors(errors, syntax(`${field}.nameservers[${index}]`, server, looseAddress(server)));
  }
  if (searches.length > MAX_SEARCHES) {
    errors.push(invalid(`${field}.searches`, searches, `must not have more than ${MAX_SEARCHES} search paths`));
  }
  if (searches.join(' ').length > MAX_SEARCH_CHARACTERS) {
    errors.push(
      invalid(
        `${field}.searches`,
        searches,
        `must not have more than ${MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list`,
      ),
    );
  }
  for (const [index, search] of searches.entries()) {
    const bare = search.replace(/\.$/, '');
    if (search !== '.') addErrors(errors, syntax(`${field}.searches[${index}]`, bare, subdomainWithUnderscores(bare)));
  }
  for (const [index, option] of (config?.options ?? []).entries()) {
    if ((option.name ?? '') === '') errors.push(required(`${field}.options[${index}]`, 'must not be empty'));
  }
  return errors;
}

function validateReadinessGates(field: string, gates: readonly { conditionType?: string | undefined }[]): FieldError[] {
  return gates.flatMap((gate, index) =>
    syntax(`${field}[${index}].conditionType`, gate.conditionType ?? '', qualifiedName(gate.conditionType ?? '')),
  );
}
