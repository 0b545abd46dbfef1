// pods/<name>/eviction: deletes a pod if its disruption budget allows it, and counts it there. Between reading the budget and
// writing it nothing else runs, so that no two evictions use the same allowance.

import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1';
import { rfc3339 } from '../../../lib/rfc3339.ts';
import { badRequest, conflict, forbidden, invalid, StatusError } from '../../errors.ts';
import { as, type Of, type Pod, podOf } from '../../kinds/shapes.ts';
import { isUnusable, matchesSelector } from '../../kinds/shared/selectors.ts';
import { isObject, type JsonObject } from '../../patch/json-value.ts';
import type { StoredObject } from '../../storage/object-store.ts';
import { type DeleteOptions, deleteObject } from '../delete.ts';
import type { Registry } from '../registry.ts';
import { mutateStored } from '../write.ts';

type Budget = Of<PodDisruptionBudget>;
const EVICTION = { group: 'policy', kind: 'Eviction' } as const;
const VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget.";
/** Evictions that the controller has not confirmed yet, in one budget. */
const MAX_DISRUPTED = 2000;

/** Throws 400, 403, 404, 409, 422, 429 where the budget allows none now, or 500 where there are two budgets. */
export function evictPod(
  registry: Registry,
  namespace: string,
  name: string,
  body: unknown,
  read: (options: unknown) => DeleteOptions,
): void {
  if (!isObject(body)) throw badRequest('the body of the request is not an object');
  const options = readEviction(body, name, read);
  const row = registry.rowOf('', 'pods');
  const stored = registry.need(row, namespace, name);
  const pod = podOf(registry.parse(row, stored));
  if (needsBudget(pod)) spendBudget(registry, pod, options.dryRun);
  if (options.dryRun) {
    deleteObject(registry, row, namespace, name, options);
    return;
  }
  checkPreconditions(pod, options);
  markDisrupted(registry, stored, rfc3339(registry.clock.now()));
  // They were checked, and the mark has changed the version.
  const { resourceVersion: _version, uid: _uid, ...rest } = options;
  deleteObject(registry, row, namespace, name, rest);
}

function readEviction(body: JsonObject, name: string, read: (options: unknown) => DeleteOptions): DeleteOptions {
  const { metadata, deleteOptions } = body;
  const inBody = isObject(metadata) ? metadata['name'] : undefined;
  if (inBody !== name) throw badRequest('name in URL does not match name in Eviction object');
  if (isObject(deleteOptions) && deleteOptions['ignoreStoreReadErrorWithClusterBreakingPotential'] === true) {
    const detail = 'Invalid value: true: can not be set for pod eviction, try after removing the option';
    const field = 'deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential';
    throw invalid(EVICTION, name, [{ type: 'FieldValueInvalid', field, detail }]);
  }
  return read(deleteOptions);
}

/** A pod that does not run, or is on its way out, costs no budget. */
function needsBudget({ status, metadata }: Pod): boolean {
  return metadata.deletionTimestamp === undefined && !['Succeeded', 'Failed', 'Pending'].includes(status?.phase ?? '');
}

function checkPreconditions(pod: Pod, options: DeleteOptions): void {
  const { name = '', uid, resourceVersion } = pod.metadata;
  const failed = (what: string, wanted: string, is: string | undefined, why: string): Error =>
    conflict(
      { group: '', plural: 'Pod' },
      name,
      `the ${what} in the precondition (${wanted}) does not match the ${what} in record (${is}). The object might have been ${why}`,
    );
  if (options.uid !== undefined && options.uid !== '' && options.uid !== uid) {
    throw failed('UID', options.uid, uid, 'deleted and then recreated');
  }
  const wanted = options.resourceVersion;
  if (wanted !== undefined && wanted !== '' && wanted !== resourceVersion) {
    throw failed('ResourceVersion', wanted, resourceVersion, 'modified');
  }
}

function markDisrupted(registry: Registry, stored: StoredObject, now: string): void {
  mutateStored(registry, registry.rowOf('', 'pods'), stored, false, (object) => {
    const pod = podOf(object);
    const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== 'DisruptionTarget');
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'EvictionByEvictionAPI',
      message: 'Eviction API: evicting',
      lastTransitionTime: now,
    };
    pod.status = { ...pod.status, conditions: [...others, condition] };
  });
}

function budgetsOf(registry: Registry, pod: Pod): Budget[] {
  const { namespace = '', labels } = pod.metadata;
  const found: Budget[] = [];
  for (const object of registry.lookup.each('policy', 'poddisruptionbudgets', namespace)) {
    const budget = as<PodDisruptionBudget>(object, 'PodDisruptionBudget');
    const selector = budget.spec?.selector;
    if (!isUnusable(selector) && matchesSelector(selector, labels)) found.push(budget);
  }
  return found;
}

/** Takes one disruption from the pod's budget, if it has one and needs it. */
function spendBudget(registry: Registry, pod: Pod, dryRun: boolean): void {
  const [budget, second] = budgetsOf(registry, pod);
  if (second !== undefined) {
    const message = 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
    throw new StatusError(500, '', message);
  }
  if (budget === undefined || mayGoUnhealthy(budget, pod)) return;
  checkBudget(budget);
  const row = registry.rowOf('policy', 'poddisruptionbudgets');
  const stored = registry.need(row, budget.metadata.namespace ?? '', budget.metadata.name ?? '');
  const now = rfc3339(registry.clock.now());
  mutateStored(registry, row, stored, dryRun, (object) => {
    count(as<PodDisruptionBudget>(object, 'PodDisruptionBudget'), pod.metadata.name ?? '', now);
  });
}

/** A pod that is not ready protects nothing, where the rest is healthy or the budget says so. */
function mayGoUnhealthy({ spec, status = {} }: Budget, pod: Pod): boolean {
  const ready = (pod.status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True');
  if (ready) return false;
  const { currentHealthy = 0, desiredHealthy = 0 } = status;
  return spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow' || (currentHealthy >= desiredHealthy && desiredHealthy > 0);
}

function tooManyRequests(cause: string, retryAfterSeconds?: number): StatusError {
  return new StatusError(429, 'TooManyRequests', VIOLATION, {
    causes: [{ reason: 'DisruptionBudget', message: cause }],
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}

function checkBudget({ metadata, status = {} }: Budget): void {
  const { name = '', generation = 0 } = metadata;
  const { disruptionsAllowed = 0, desiredHealthy = 0, currentHealthy = 0, disruptedPods = {} } = status;
  if ((status.observedGeneration ?? 0) < generation) {
    throw tooManyRequests(`The disruption budget ${name} is still being processed by the server.`, 10);
  }
  const refused = (why: string): Error => forbidden({ group: 'policy', plural: 'poddisruptionbudget' }, name, why);
  if (disruptionsAllowed < 0) throw refused('pdb disruptions allowed is negative');
  if (Object.keys(disruptedPods).length > MAX_DISRUPTED) {
    throw refused('DisruptedPods map too big - too many evictions not confirmed by PDB controller');
  }
  if (disruptionsAllowed > 0) return;
  throw tooManyRequests(
    `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
  );
}

function count(budget: Budget, pod: string, now: string): void {
  const { status = {} } = budget;
  const disruptionsAllowed = (status.disruptionsAllowed ?? 0) - 1;
  budget.status = { ...status, disruptionsAllowed, disruptedPods: { ...status.disruptedPods, [pod]: now } };
  if (disruptionsAllowed > 0) return;
  const before = (status.conditions ?? []).find(({ type }) => type === 'DisruptionAllowed');
  const others = (status.conditions ?? []).filter(({ type }) => type !== 'DisruptionAllowed');
  const condition = {
    type: 'DisruptionAllowed',
    status: 'False',
    reason: 'InsufficientPods',
    message: '',
    observedGeneration: status.observedGeneration,
    lastTransitionTime: before?.status === 'False' ? before.lastTransitionTime : now,
  };
  budget.status.conditions = [...others, condition];
}
