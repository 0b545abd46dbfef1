// The template that a job's pods are created from: the job's own, with the finalizer by which they are counted, and for an
// Indexed job what tells a pod its index. Pure.

import type { Container as CoreContainer, PodTemplateSpec } from 'kubernetes-types/core/v1';
import type { Pod } from '../../../client/types.ts';
import type { Job } from '../shared/objects.ts';
import { matchFailurePolicy } from './failure-policy.ts';
import {
  hasLimitPerIndex,
  INDEX_FAILURES,
  INDEX_IGNORED_FAILURES,
  INDEX_KEY,
  indexFailures,
  TRACKING_FINALIZER,
} from './job-pods.ts';

const INDEX_VARIABLE = 'JOB_COMPLETION_INDEX';
/** A generated name is a label's 63 characters at most, the last five random. */
const MAX_PREFIX = 58;

function withFinalizer(template: PodTemplateSpec): PodTemplateSpec {
  const { finalizers = [] } = template.metadata ?? {};
  if (finalizers.includes(TRACKING_FINALIZER)) return template;
  return { ...template, metadata: { ...template.metadata, finalizers: [...finalizers, TRACKING_FINALIZER] } };
}

/** A variable of that name which the template has stays as it is. */
function withVariable(container: CoreContainer): CoreContainer {
  const { env = [] } = container;
  if (env.some(({ name }) => name === INDEX_VARIABLE)) return container;
  const fieldRef = { fieldPath: `metadata.labels['${INDEX_KEY}']` };
  return { ...container, env: [...env, { name: INDEX_VARIABLE, valueFrom: { fieldRef } }] };
}

/** How often the index has failed, with the pod that is replaced. */
function failureCounts(job: Job, replaced: Pod | undefined): Record<string, string> {
  if (!hasLimitPerIndex(job)) return {};
  const before = replaced === undefined ? { counted: 0, ignored: 0 } : indexFailures(replaced);
  const counts = replaced !== undefined && matchFailurePolicy(job.spec.podFailurePolicy, replaced).counts;
  const counted = before.counted + (counts ? 1 : 0);
  const ignored = before.ignored + (replaced !== undefined && !counts ? 1 : 0);
  return {
    [INDEX_FAILURES]: String(counted),
    ...(ignored > 0 ? { [INDEX_IGNORED_FAILURES]: String(ignored) } : {}),
  };
}

export interface PodToCreate {
  readonly template: PodTemplateSpec;
  /** Undefined: the usual one, the job's name and a hyphen. */
  readonly generateName?: string;
}

/** `index`: undefined for a job that is not Indexed. `replaced`: the pod of that index that failed last. */
export function podToCreate(job: Job, index: number | undefined, replaced: Pod | undefined): PodToCreate {
  const template = withFinalizer(job.spec.template);
  if (index === undefined) return { template };
  const value = String(index);
  const { metadata, spec } = template;
  const suffix = `-${value}-`;
  const { name } = job.metadata;
  return {
    generateName: `${name.slice(0, MAX_PREFIX - suffix.length)}${suffix}`,
    template: {
      metadata: {
        ...metadata,
        labels: { ...metadata?.labels, [INDEX_KEY]: value },
        annotations: { ...metadata?.annotations, [INDEX_KEY]: value, ...failureCounts(job, replaced) },
      },
      spec: {
        ...spec,
        hostname: `${name}-${value}`,
        containers: (spec?.containers ?? []).map(withVariable),
        ...(spec?.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(withVariable) }),
      },
    },
  };
}
