// Rules for the status that a node reports: what has ended stays ended, addresses, conditions, and users of processes.

import { isSidecar } from '../../../lib/sidecar.ts';
import { addErrors, duplicate, forbidden, IMMUTABLE, invalid, syntax } from '../field-errors.ts';
import { dns1123Subdomain, qualifiedName } from '../names.ts';
import type { FieldError } from '../resource.ts';
import type { Pod, PodStatus } from '../shapes.ts';
import { addressWarnings, legacyAddress, looseAddress } from '../shared/addresses.ts';
import { canRestart } from './restart.ts';
import { validateAnnotationChanges } from './validate-update.ts';

type ContainerStatus = NonNullable<PodStatus['containerStatuses']>[number];

export function validatePodStatusUpdate(pod: Pod, old: Pod): FieldError[] {
  const [status, before] = [pod.status ?? {}, old.status ?? {}];
  const errors = validateAnnotationChanges(pod, old);
  addErrors(errors, validateConditions(status.conditions ?? []));
  const node = status.nominatedNodeName ?? '';
  if (node !== '' && node !== (before.nominatedNodeName ?? '')) {
    addErrors(errors, syntax('status.nominatedNodeName', node, dns1123Subdomain(node)));
    if ((old.spec?.nodeName ?? '') !== '' && CLEARS_NOMINATION) {
      errors.push(forbidden('status.nominatedNodeName', 'may not be set on pods that are already bound to a node'));
    }
  }
  if ((status.observedGeneration ?? 0) < 0) {
    errors.push(invalid('status.observedGeneration', status.observedGeneration, 'must be a non-negative integer'));
  }
  if ((status.qosClass ?? '') !== (before.qosClass ?? '')) {
    errors.push(invalid('status.qosClass', status.qosClass, IMMUTABLE));
  }
  addErrors(
    errors,
    validateTransitions('containerStatuses', status, before, (one) => canRestart(old, one)),
    validateTransitions('initContainerStatuses', status, before, (one) => mayRunAgain(old, one)),
    validateTransitions('ephemeralContainerStatuses', status, before, () => false),
    validateClaimStatuses(pod),
    validatePodIps(status, before),
    validateHostIps(status, before),
    validateUsers(pod),
  );
  return errors;
}

/** The gate ClearingNominatedNodeNameAfterBinding is off. */
const CLEARS_NOMINATION = false;
const SYSTEM_CONDITIONS = ['PodScheduled', 'Ready', 'Initialized'];

function validateConditions(conditions: NonNullable<PodStatus['conditions']>): FieldError[] {
  return conditions.flatMap((condition, index) => {
    const { type = '' } = condition;
    const errors: FieldError[] = [];
    const observed = 'observedGeneration' in condition ? Number(condition.observedGeneration) : 0;
    if (observed < 0) {
      const why = 'must be a non-negative integer';
      errors.push(invalid(`status.conditions[${index}].observedGeneration`, observed, why));
    }
    if (SYSTEM_CONDITIONS.includes(type)) return errors;
    return errors.concat(syntax(`status.conditions[${index}].Type`, type, qualifiedName(type)));
  });
}

type StatusList = 'containerStatuses' | 'initContainerStatuses' | 'ephemeralContainerStatuses';

/** A terminated container that is not to be restarted cannot run again. */
function validateTransitions(
  list: StatusList,
  status: PodStatus,
  before: PodStatus,
  mayRestart: (ended: ContainerStatus) => boolean,
): FieldError[] {
  return (before[list] ?? []).flatMap((ended, index) => {
    if (ended.state?.terminated === undefined) return [];
    const now = (status[list] ?? []).find((one) => one.name === ended.name && one.state?.terminated === undefined);
    return now === undefined || mayRestart(ended)
      ? []
      : [forbidden(`status.${list}[${index}].state`, 'may not be transitioned to non-terminated state')];
  });
}

function mayRunAgain({ spec = {} }: Pod, ended: ContainerStatus): boolean {
  if (spec.restartPolicy === 'Always') return true;
  if (spec.restartPolicy === 'OnFailure' && (ended.state?.terminated?.exitCode ?? 0) !== 0) return true;
  const container = (spec.initContainers ?? []).find((one) => one.name === ended.name);
  return container !== undefined && isSidecar(container);
}

function validateClaimStatuses({ spec, status }: Pod): FieldError[] {
  const claims = new Set((spec?.resourceClaims ?? []).map(({ name }) => name));
  const names = new Set<string>();
  return (status?.resourceClaimStatuses ?? []).flatMap(({ name = '', resourceClaimName }, index) => {
    const at = `status.resourceClaimStatuses[${index}].name`;
    const errors: FieldError[] = [];
    if (!claims.has(name)) {
      errors.push(invalid(at, name, 'must match the name of an entry in `spec.resourceClaims`'));
    }
    if (names.has(name)) errors.push(duplicate(at, name));
    names.add(name);
    if (resourceClaimName === undefined) return errors;
    return errors.concat(syntax(at, resourceClaimName, dns1123Subdomain(resourceClaimName)));
  });
}

interface Address {
  readonly ip?: string | undefined;
}

function isPair(addresses: readonly Address[]): boolean {
  if (addresses.length < 2) return true;
  return addresses.length === 2 && new Set(addresses.map(({ ip = '' }) => legacyAddress(ip)?.family)).size === 2;
}

const ONE_EACH = 'may specify no more than one IP for each IP family';

function validateEach(field: string, now: readonly Address[], before: readonly Address[]): FieldError[] {
  const known = new Set(before.map(({ ip }) => ip));
  return now.flatMap(({ ip = '' }, index) => (known.has(ip) ? [] : syntax(`${field}[${index}]`, ip, looseAddress(ip))));
}

function validatePodIps({ podIPs: ips = [] }: PodStatus, { podIPs: before = [] }: PodStatus): FieldError[] {
  const errors = validateEach('status.podIPs', ips, before);
  if (!isPair(ips)) errors.push(invalid('status.podIPs', ips, ONE_EACH));
  return errors;
}

function validateHostIps(
  { hostIP = '', hostIPs: ips = [] }: PodStatus,
  { hostIPs: before = [] }: PodStatus,
): FieldError[] {
  const first = ips[0]?.ip ?? '';
  if (ips.length === 0) return [];
  const errors: FieldError[] = [];
  if (hostIP !== first) errors.push(invalid('status.hostIPs[0].ip', first, 'must be equal to `hostIP`'));
  addErrors(errors, validateEach('status.hostIPs', ips, before));
  if (!isPair(ips)) errors.push(invalid('status.hostIPs', ips, ONE_EACH));
  return errors;
}

const MAX_ID = 2 ** 31 - 1;

function validateUsers({ spec, status = {} }: Pod): FieldError[] {
  const lists = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const;
  return lists.flatMap((list) =>
    (status[list] ?? []).flatMap((one, index) => {
      const user = 'user' in one && isUser(one.user) ? one.user : undefined;
      const linux = user?.linux;
      if (linux === undefined) return [];
      const at = `status.${list}[${index}].user.linux`;
      if (spec?.os?.name === 'windows') return [forbidden(at, 'cannot be set for a windows pod')];
      const id = (field: string, value = 0): FieldError[] =>
        value >= 0 && value <= MAX_ID ? [] : [invalid(field, value, `must be between 0 and ${MAX_ID}, inclusive`)];
      return [
        ...id(`${at}.uid`, linux.uid),
        ...id(`${at}.gid`, linux.gid),
        ...(linux.supplementalGroups ?? []).flatMap((group, place) => id(`${at}.supplementalGroups[${place}]`, group)),
      ];
    }),
  );
}

interface User {
  readonly linux?: { uid?: number; gid?: number; supplementalGroups?: number[] };
}

function isUser(value: unknown): value is User {
  return typeof value === 'object' && value !== null;
}

/** Addresses that are valid, and not in the canonical form. */
export function podStatusWarnings({ status = {} }: Pod): string[] {
  return (['podIPs', 'hostIPs'] as const).flatMap((list) =>
    (status[list] ?? []).flatMap(({ ip = '' }, index) => addressWarnings(`status.${list}[${index}].ip`, ip)),
  );
}
