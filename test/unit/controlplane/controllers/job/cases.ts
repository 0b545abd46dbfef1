// Jobs and pods for the tests of the Job controller, in few words.

import type { Pod } from '../../../../../client/types.ts';
import type { Job, JobStatus } from '../../../../../controlplane/controllers/shared/objects.ts';
import { epochMs, plusMs } from '../../../../../lib/clock.ts';
import { rfc3339 } from '../../../../../lib/rfc3339.ts';
import { meta, NOW } from '../../environment.ts';

export const AT = epochMs(Date.parse(NOW));
export const ago = (seconds: number): string => rfc3339(plusMs(AT, -seconds * 1000));
export const FINALIZER = 'batch.kubernetes.io/job-tracking';
export const INDEX = 'batch.kubernetes.io/job-completion-index';
export const OWNER = { apiVersion: 'batch/v1', kind: 'Job', name: 'work', uid: 'uid-work', controller: true };

type Spec = Job['spec'];

/** As the server stores it, with its defaults. */
export function makeJob(spec: Partial<Spec> = {}, status: JobStatus = {}): Job {
  return {
    metadata: { ...meta('work'), namespace: 'demo', generation: 1 },
    spec: {
      parallelism: 1,
      ...(spec.parallelism === undefined ? { completions: 1 } : {}),
      backoffLimit: 6,
      completionMode: 'NonIndexed',
      selector: { matchLabels: { job: 'work' } },
      template: {
        metadata: { labels: { job: 'work' } },
        spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] },
      },
      ...spec,
    },
    status,
  };
}

export interface Facts {
  readonly phase?: string;
  readonly index?: number | string;
  readonly failures?: number;
  readonly ignored?: number;
  /** Seconds ago. */
  readonly ended?: number;
  readonly exit?: number;
  readonly deleted?: boolean;
  readonly counted?: boolean;
  readonly ready?: boolean;
  readonly node?: string;
  readonly condition?: string;
  readonly restarts?: number;
  readonly age?: number;
}

export function jobPod(name: string, facts: Facts = {}): Pod {
  const { phase = 'Running', index, failures, ignored, ended, exit = phase === 'Failed' ? 1 : 0, node = 'n' } = facts;
  const terminated = ended === undefined ? undefined : { exitCode: exit, finishedAt: ago(ended) };
  const annotation = (key: string, value: number | string | undefined) =>
    value === undefined ? {} : { [key]: String(value) };
  const conditions = [
    ...(facts.ready === true ? [{ type: 'Ready', status: 'True', lastTransitionTime: ago(1) }] : []),
    ...(facts.condition === undefined ? [] : [{ type: facts.condition, status: 'True' }]),
  ];
  return {
    metadata: {
      ...meta(name),
      namespace: 'demo',
      labels: { job: 'work' },
      creationTimestamp: ago(facts.age ?? 1000),
      annotations: {
        ...annotation(INDEX, index),
        ...annotation('batch.kubernetes.io/job-index-failure-count', failures),
        ...annotation('batch.kubernetes.io/job-index-ignored-failure-count', ignored),
      },
      ownerReferences: [OWNER],
      ...(facts.counted === true ? {} : { finalizers: [FINALIZER] }),
      ...(facts.deleted === true ? { deletionTimestamp: NOW } : {}),
    },
    spec: { containers: [{ name: 'c' }], nodeName: node },
    status: {
      phase,
      conditions,
      containerStatuses: [
        {
          name: 'c',
          image: '',
          imageID: '',
          ready: facts.ready === true,
          restartCount: facts.restarts ?? 0,
          state: terminated === undefined ? { running: {} } : { terminated },
        },
      ],
    },
  };
}
