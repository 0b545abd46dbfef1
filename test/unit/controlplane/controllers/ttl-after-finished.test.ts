// The TTL controller: when a job is deleted, and that it asks the server before it does.

import { expect, it } from 'vitest';
import type { Job } from '../../../../controlplane/controllers/shared/objects.ts';
import {
  TtlAfterFinishedController,
  ttlLeftMs,
} from '../../../../controlplane/controllers/ttl-after-finished/ttl-after-finished.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, meta, NOW } from '../environment.ts';

const AT = epochMs(Date.parse(NOW));
const PATH = '/apis/batch/v1/namespaces/demo/jobs/work';

function ended(ttl: number | undefined, condition: string | undefined, seconds: number, leaving = false): Job {
  const lastTransitionTime = rfc3339(plusMs(AT, -seconds * 1000));
  return {
    metadata: { ...meta('work'), namespace: 'demo', ...(leaving ? { deletionTimestamp: NOW } : {}) },
    spec: { template: {}, ...(ttl === undefined ? {} : { ttlSecondsAfterFinished: ttl }) },
    status: condition === undefined ? {} : { conditions: [{ type: condition, status: 'True', lastTransitionTime }] },
  };
}

it.each<[string, Job, number | undefined]>([
  ['not ended', ended(10, undefined, 0), undefined],
  ['about to end', ended(10, 'FailureTarget', 99), undefined],
  ['without a TTL', ended(undefined, 'Complete', 99), undefined],
  ['on its way out', ended(0, 'Complete', 99, true), undefined],
  ['at once', ended(0, 'Complete', 0), 0],
  ['in a while', ended(10, 'Failed', 4), 6000],
  ['past', ended(10, 'Failed', 11), 0],
  ['ended in the future', ended(10, 'Complete', -5), 15_000],
])('%s', (_what, job, wanted) => {
  expect(ttlLeftMs(job, AT)).toBe(wanted);
});

it('deletes a job with its pods when its time has come, unless the server has another TTL', async () => {
  const run = (stored: Job) => {
    const env = environment();
    env.run(new TtlAfterFinishedController(env.context, env.informers));
    env.client.objects.set(PATH, stored);
    env.informers.jobs.replace([ended(10, 'Complete', 4)]);
    return env;
  };
  const due = run(ended(10, 'Complete', 4));
  await due.clock.advance(5999);
  expect(due.client.writes).toEqual([]);
  await due.clock.advance(1);
  const options = { propagationPolicy: 'Foreground', preconditions: { uid: 'uid-work' } };
  expect(due.client.writes).toEqual([{ verb: 'delete', path: PATH, body: options }]);
  const changed = run(ended(100, 'Complete', 4));
  await changed.clock.advance(6000);
  await settle();
  expect(changed.client.writes).toEqual([]);
});
