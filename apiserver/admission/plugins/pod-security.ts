// PodSecurity: pods keep to the Pod Security Standard that their namespace's labels name; what would break it in a workload's
// template is warned about (plugin/pkg/admission/security/podsecurity, k8s.io/pod-security-admission). Its configuration is
// podsecurity/configuration.ts's.

import { getOwn } from '../../../lib/own-property.ts';
import { invalid } from '../../errors.ts';
import type { KubeObject, KubeObjectMeta, ObjectLookup } from '../../kinds/resource.ts';
import { type Container, type Pod, type PodSpec, podOf } from '../../kinds/shapes.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import { type AdmissionAttributes, AdmissionForbidden, type AdmissionPlugin } from '../plugin.ts';
import type { PodSecurityConfiguration } from '../podsecurity/configuration.ts';
import {
  compareLevels,
  isFullyPrivileged,
  type LevelVersion,
  type Policy,
  policyOf,
  sameLevel,
  shownLevel,
} from '../podsecurity/levels.ts';
import { shownViolations, violations } from '../podsecurity/standards.ts';

const PREFIX = 'pod-security.kubernetes.io/';
/** Subresources of pods whose object is no pod, or which change nothing that matters. */
const IGNORED = new Set(['exec', 'attach', 'binding', 'eviction', 'log', 'portforward', 'proxy', 'status']);
const WORKLOADS = new Set([
  '/replicationcontrollers',
  '/podtemplates',
  'apps/replicasets',
  'apps/deployments',
  'apps/statefulsets',
  'apps/daemonsets',
  'batch/jobs',
  'batch/cronjobs',
]);
const MODES = ['enforce', 'audit', 'warn'] as const;
/** Existing pods that a change of a namespace's level is held against. */
const MAX_PODS = 3000;

interface Template {
  readonly metadata: KubeObjectMeta;
  readonly spec: PodSpec;
}

const part = (object: JsonObject, field: string): JsonObject => {
  const value = getOwn(object, field);
  return isObject(value) ? value : {};
};

/** The template of a workload; undefined where it has none. */
function templateOf(object: KubeObject): Template | undefined {
  let holder: JsonObject = object.kind === 'PodTemplate' ? object : part(object, 'spec');
  if (object.kind === 'CronJob') holder = part(part(holder, 'jobTemplate'), 'spec');
  const { template } = holder;
  if (!isObject(template)) return undefined;
  const { spec = {} } = podOf({ kind: 'Pod', apiVersion: 'v1', metadata: {}, spec: part(template, 'spec') });
  return { metadata: part(template, 'metadata'), spec };
}

/** Whether an update changes what the standards look at: containers and their images. */
function isSignificant(pod: Pod, old: Pod): boolean {
  const lists = (one: Pod): Container[][] => [one.spec?.containers ?? [], one.spec?.initContainers ?? []];
  const [now, before] = [lists(pod), lists(old)];
  const changed = now.some((list, index) => {
    const others = before[index] ?? [];
    return list.length !== others.length || list.some(({ image }, place) => image !== others[place]?.image);
  });
  if (changed) return true;
  return (pod.spec?.ephemeralContainers ?? []).some(
    ({ name, image }) => old.spec?.ephemeralContainers?.find((other) => other.name === name)?.image !== image,
  );
}

/** Whether the request is admitted for its namespace or its user, whatever it has. */
function isExempt({ namespace, user, annotate }: AdmissionAttributes, { exemptions }: PodSecurityConfiguration) {
  const reason = exemptions.namespaces.has(namespace)
    ? 'namespace'
    : exemptions.usernames.has(user.name)
      ? 'user'
      : undefined;
  if (reason !== undefined) annotate(`${PREFIX}exempt`, reason);
  return reason !== undefined;
}

const hasExemptClass = ({ runtimeClassName = '' }: PodSpec, { exemptions }: PodSecurityConfiguration): boolean =>
  exemptions.runtimeClasses.has(runtimeClassName);

function evaluate(
  attributes: AdmissionAttributes,
  configuration: PodSecurityConfiguration,
  policy: Policy,
  { metadata, spec }: Template,
  enforce: boolean,
): void {
  if (hasExemptClass(spec, configuration)) {
    attributes.annotate(`${PREFIX}exempt`, 'runtimeClass');
    return;
  }
  const shown = (level: LevelVersion): string => {
    const found = violations(level, metadata, spec);
    return found.length === 0
      ? ''
      : `violate PodSecurity ${JSON.stringify(shownLevel(level))}: ${shownViolations(found)}`;
  };
  if (enforce) attributes.annotate(`${PREFIX}enforce-policy`, shownLevel(policy.enforce));
  const audited = shown(policy.audit);
  if (audited !== '') attributes.annotate(`${PREFIX}audit-violations`, `would ${audited}`);
  const broken = enforce ? shown(policy.enforce) : '';
  if (broken !== '') throw new AdmissionForbidden(broken.replace('violate', 'violates'));
  const warned = shown(policy.warn);
  if (warned !== '') attributes.warn(`would ${warned}`);
}

function validatePod(
  attributes: AdmissionAttributes,
  configuration: PodSecurityConfiguration,
  policy: Policy,
  malformed: boolean,
): void {
  const { object, old, operation } = attributes;
  if (object === undefined) return;
  if (!malformed && isFullyPrivileged(policy)) {
    attributes.annotate(`${PREFIX}enforce-policy`, 'privileged:latest');
    return;
  }
  const pod = podOf(object);
  if (operation === 'UPDATE' && old !== undefined && !isSignificant(pod, podOf(old))) return;
  evaluate(attributes, configuration, policy, { metadata: pod.metadata, spec: pod.spec ?? {} }, true);
}

function validateWorkload(
  attributes: AdmissionAttributes,
  configuration: PodSecurityConfiguration,
  policy: Policy,
): void {
  if (policy.warn.level === 'privileged' && policy.audit.level === 'privileged') return;
  const template = attributes.object === undefined ? undefined : templateOf(attributes.object);
  if (template !== undefined) evaluate(attributes, configuration, policy, template, false);
}

const controllerOf = ({ metadata }: KubeObject): unknown =>
  metadata.ownerReferences?.find((owner) => owner['controller'] === true)?.['uid'];

/** Warnings about pods that a stricter level would have refused; of each controller one pod comes first. */
function existingPods(
  namespace: string,
  enforce: LevelVersion,
  lookup: ObjectLookup,
  configuration: PodSecurityConfiguration,
): string[] {
  const [first, others]: [Pod[], Pod[]] = [[], []];
  const seen = new Set<unknown>();
  for (const object of lookup.each('', 'pods', namespace)) {
    if (hasExemptClass(podOf(object).spec ?? {}, configuration)) continue;
    const controller = controllerOf(object);
    (controller !== undefined && seen.has(controller) ? others : first).push(podOf(object));
    seen.add(controller);
  }
  const pods = [...first, ...others];
  const byReasons = new Map<string, string[]>();
  for (const { metadata, spec = {} } of pods.slice(0, MAX_PODS)) {
    const found = violations(enforce, metadata, spec);
    if (found.length === 0) continue;
    const reasons = found.map(({ reason }) => reason).join(', ');
    byReasons.set(reasons, [...(byReasons.get(reasons) ?? []), metadata.name ?? '']);
  }
  const warnings: string[] = [];
  if (pods.length > MAX_PODS) {
    warnings.push(
      `new PodSecurity enforce level only checked against the first ${MAX_PODS} of ${pods.length} existing pods`,
    );
  }
  if (byReasons.size > 0) {
    warnings.push(
      `existing pods in namespace ${JSON.stringify(namespace)} violate the new PodSecurity enforce level ${JSON.stringify(shownLevel(enforce))}`,
    );
  }
  const lines = [...byReasons].map(([reasons, names]) => {
    const more = names.length - 1;
    const and = more === 0 ? '' : ` (and ${more} other ${more === 1 ? 'pod' : 'pods'})`;
    return `${names.sort()[0]}${and}: ${reasons}`;
  });
  return [...warnings, ...lines.sort()];
}

/** About labels that have no effect; undefined where there are none. */
function exemptWarning(
  name: string,
  policy: Policy,
  labels: Readonly<Record<string, string>> | undefined,
  defaults: Policy,
): string | undefined {
  const isDefault = MODES.every((mode) => equivalent(policy[mode], defaults[mode]));
  if (isFullyPrivileged(policy) || isDefault) return undefined;
  const shown = MODES.filter((mode) => {
    const labelled = [`${PREFIX}${mode}`, `${PREFIX}${mode}-version`].some((one) => getOwn(labels, one) !== undefined);
    return labelled && policy[mode].level !== 'privileged';
  }).map((mode) => `${mode}=${shownLevel(policy[mode])}`);
  return `namespace ${JSON.stringify(name)} is exempt from Pod Security, and the policy (${shown.join(', ')}) will be ignored`;
}

/** Of privileged ones the version says nothing. */
function equivalent(a: LevelVersion, b: LevelVersion): boolean {
  return a.level === b.level && (a.level === 'privileged' || a.version === b.version);
}

function validateNamespace(
  attributes: AdmissionAttributes,
  lookup: ObjectLookup,
  configuration: PodSecurityConfiguration,
): void {
  const { object, old, name } = attributes;
  if (object === undefined) return;
  const { defaults, exemptions } = configuration;
  const { labels } = object.metadata;
  const { policy, errors } = policyOf(labels, defaults);
  const before = old === undefined ? undefined : policyOf(old.metadata.labels, defaults);
  const unchanged = before !== undefined && JSON.stringify(before.errors) === JSON.stringify(errors);
  if (errors.length > 0 && !unchanged) throw invalid({ group: '', kind: 'Namespace' }, name, errors);
  const [now, was] = [policy.enforce, before?.policy.enforce];
  if (was !== undefined) {
    if (sameLevel(now, was) || now.level === 'privileged') return;
    if (now.version === was.version && compareLevels(now.level, was.level) < 1) return;
  }
  if (exemptions.namespaces.has(name)) {
    const warning = exemptWarning(name, policy, labels, defaults);
    if (warning !== undefined) attributes.warn(warning);
  } else if (was !== undefined) {
    for (const warning of existingPods(name, now, lookup, configuration)) attributes.warn(warning);
  }
}

export const podSecurity = (configuration: PodSecurityConfiguration): AdmissionPlugin => ({
  name: 'PodSecurity',
  handles: (operation, { group, plural, subresource }) => {
    if (operation !== 'CREATE' && operation !== 'UPDATE') return false;
    if (group === '' && plural === 'pods') return !IGNORED.has(subresource);
    return subresource === '' && (WORKLOADS.has(`${group}/${plural}`) || (group === '' && plural === 'namespaces'));
  },
  validate: (attributes, lookup) => {
    const { group, plural } = attributes.resource;
    if (group === '' && plural === 'namespaces') return validateNamespace(attributes, lookup, configuration);
    if (isExempt(attributes, configuration)) return;
    const labels = lookup.get('', 'namespaces', '', attributes.namespace)?.metadata.labels;
    const { policy, errors } = policyOf(labels, configuration.defaults);
    if (group === '' && plural === 'pods') return validatePod(attributes, configuration, policy, errors.length > 0);
    return validateWorkload(attributes, configuration, policy);
  },
});
