// Rules for a whole pod: its spec's own fields, and the order in which the parts are validated. Updates are
// validate-update.ts.

import { addErrors, forbidden, invalid, oneOf, optionalOneOf, required, syntax } from '../field-errors.ts';
import { dns1123Label, dns1123Subdomain, ipAddress, qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Pod, PodSpec } from '../shapes.ts';
import { validateAllContainers } from './validate-containers.ts';
import { validateOverhead, validatePodResources, validateResourceClaims } from './validate-resources.ts';
import { validateScheduling } from './validate-scheduling.ts';
import { validateOs, validatePodSecurityContext } from './validate-security.ts';
import { validateImagePullSecrets, validateVolumes } from './validate-volumes.ts';

export function validatePod(pod: Pod): FieldError[] {
  const spec = pod.spec ?? {};
  return [...validatePodSpec('spec', spec), ...validatePodRules(pod, spec)];
}

/** Rules that need more than the spec, or that apply to create alone. */
function validatePodRules(pod: Pod, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const gates = spec.schedulingGates ?? [];
  if (gates.length > 0 && (spec.nodeName ?? '') !== '') {
    errors.push(forbidden('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  const mirror = 'kubernetes.io/config.mirror';
  if (pod.metadata.annotations?.[mirror] !== undefined && (spec.nodeName ?? '') === '') {
    errors.push(
      invalid(
        `metadata.annotations[${mirror}]`,
        pod.metadata.annotations[mirror],
        'must set spec.nodeName if mirror pod annotation is set',
      ),
    );
  }
  return errors;
}

export function validatePodSpec(field: string, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  addErrors(errors, validateVolumes(`${field}.volumes`, spec.volumes ?? []));
  addErrors(errors, validateAllContainers(field, spec));
  addErrors(errors, oneOf(`${field}.restartPolicy`, spec.restartPolicy, ['Always', 'OnFailure', 'Never']));
  addErrors(
    errors,
    oneOf(`${field}.dnsPolicy`, spec.dnsPolicy, ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']),
  );
  addErrors(errors, validatePodSecurityContext(`${field}.securityContext`, spec));
  addErrors(errors, validateImagePullSecrets(`${field}.imagePullSecrets`, spec.imagePullSecrets ?? []));
  addErrors(errors, validateHostNetwork(field, spec));
  addErrors(errors, validateNames(field, spec));
  addErrors(errors, validateSeconds(field, spec));
  addErrors(errors, validateHostAliases(`${field}.hostAliases`, spec.hostAliases ?? []));
  addErrors(errors, validateDns(`${field}.dnsConfig`, spec));
  addErrors(errors, validateScheduling(field, spec));
  addErrors(errors, validateReadinessGates(`${field}.readinessGates`, spec.readinessGates ?? []));
  addErrors(errors, validateResourceClaims(`${field}.resourceClaims`, spec));
  addErrors(errors, validatePodResources(`${field}.resources`, spec));
  addErrors(errors, validateOverhead(`${field}.overhead`, spec.overhead));
  addErrors(
    errors,
    optionalOneOf(`${field}.preemptionPolicy`, spec.preemptionPolicy, ['Never', 'PreemptLowerPriority']),
  );
  addErrors(errors, validateOs(field, spec));
  return errors;
}

/** On the host's network a container port is a port of the host. */
function validateHostNetwork(field: string, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.hostNetwork === true) {
    for (const list of ['containers', 'initContainers'] as const) {
      for (const [index, container] of (spec[list] ?? []).entries()) {
        for (const [portIndex, port] of (container.ports ?? []).entries()) {
          if (port.hostPort !== undefined && port.hostPort !== port.containerPort) {
            errors.push(
              invalid(
                `${field}.${list}[${index}].ports[${portIndex}].hostPort`,
                port.hostPort,
                'must match `containerPort` when `hostNetwork` is true',
              ),
            );
          }
        }
      }
    }
  }
  if (spec.hostUsers === false) {
    for (const host of ['hostNetwork', 'hostPID', 'hostIPC'] as const) {
      if (spec[host] === true) errors.push(forbidden(`${field}.${host}`, 'when `hostUsers` is false'));
    }
  }
  return errors;
}

function validateNames(field: string, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  for (const label of ['hostname', 'subdomain'] as const) {
    const value = spec[label] ?? '';
    if (value !== '') addErrors(errors, syntax(`${field}.${label}`, value, dns1123Label(value)));
  }
  for (const name of ['serviceAccountName', 'nodeName', 'priorityClassName', 'runtimeClassName'] as const) {
    const value = spec[name] ?? '';
    if (value !== '') addErrors(errors, syntax(`${field}.${name}`, value, dns1123Subdomain(value)));
  }
  const scheduler = spec.schedulerName ?? '';
  if (scheduler !== '') addErrors(errors, syntax(`${field}.schedulerName`, scheduler, qualifiedName(scheduler)));
  const override = spec.hostnameOverride;
  if (override !== undefined) {
    const at = `${field}.hostnameOverride`;
    if (spec.hostNetwork === true) errors.push(forbidden(at, 'cannot be set when hostNetwork is true'));
    if (spec.setHostnameAsFQDN === true) errors.push(forbidden(at, 'cannot be set when setHostnameAsFQDN is true'));
    if (override.length > 64) errors.push(invalid(at, override, 'must be no more than 64 characters'));
    else addErrors(errors, syntax(at, override, dns1123Subdomain(override)));
  }
  return errors;
}

function validateSeconds(field: string, spec: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const active = spec.activeDeadlineSeconds;
  if (active !== undefined && (active < 1 || active > 2 ** 31 - 1)) {
    errors.push(invalid(`${field}.activeDeadlineSeconds`, active, 'must be between 1 and 2147483647, inclusive'));
  }
  const grace = spec.terminationGracePeriodSeconds;
  if (grace !== undefined && grace < 0) {
    errors.push(invalid(`${field}.terminationGracePeriodSeconds`, grace, 'must be greater than or equal to 0'));
  }
  return errors;
}

type Aliases = NonNullable<PodSpec['hostAliases']>;

function validateHostAliases(field: string, aliases: Aliases): FieldError[] {
  return aliases.flatMap((alias, index) => {
    const at = `${field}[${index}]`;
    const ip = alias.ip ?? '';
    const errors = ip === '' ? [required(`${at}.ip`)] : syntax(`${at}.ip`, ip, ipAddress(ip));
    for (const hostname of alias.hostnames ?? []) {
      addErrors(errors, syntax(`${at}.hostnames`, hostname, dns1123Subdomain(hostname)));
    }
    return errors;
  });
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
    errors.push(required(`${field}.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None'));
  }
  if (servers.length > MAX_NAMESERVERS) {
    errors.push(invalid(`${field}.nameservers`, servers, `must not have more than ${MAX_NAMESERVERS} nameservers`));
  }
  for (const [index, server] of servers.entries()) {
    addErrors(errors, syntax(`${field}.nameservers[${index}]`, server, ipAddress(server)));
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
    const bare = search.replace(/\.$/, '').replace(/^_/, '').replaceAll('._', '.').replaceAll('_', '-');
    if (search !== '.') addErrors(errors, syntax(`${field}.searches[${index}]`, search, dns1123Subdomain(bare)));
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
