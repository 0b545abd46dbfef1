// What a killed agent leaves is taken up by the next one: at any moment of a pod's start or end, nothing is doubled,
// nothing leaked, and nothing restarted without need.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import { startLab, type TestLab } from '../support/lab.ts';
import {
  apply,
  container,
  eventually,
  FOREVER,
  getPod,
  gone,
  nothingLeft,
  podResources,
  ready,
  shellPod,
} from './harness.ts';

let lab: TestLab;
let steady: Pod;
let steadyThings: readonly string[];

beforeAll(async () => {
  lab = await startLab({ kills: true });
  await apply(lab, shellPod('steady', FOREVER));
  steady = await ready(lab, 'steady');
  steadyThings = await podResources(lab);
});
afterAll(() => lab?.stop());

async function killAgent(): Promise<void> {
  const old = await eventually('the agent to run', () => lab.lab.pid('agent'));
  process.kill(old, 'SIGKILL');
  await eventually('another agent', () => {
    const next = lab.lab.pid('agent');
    return next !== undefined && next !== old ? true : undefined;
  });
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

test('agent killed while a pod runs: the next one takes it as it is', async () => {
  await killAgent();
  const serves = async (): Promise<true | undefined> =>
    (await lab.tryKubectl(['exec', 'steady', '--', 'true'])).code === 0 ? true : undefined;
  await eventually('the agent to serve', serves);
  const now = await getPod(lab, 'steady');
  expect(container(now)).toMatchObject({ restartCount: 0, containerID: container(steady).containerID });
  let things: readonly string[] = [];
  await eventually('the same resources as before', async () => {
    things = await podResources(lab);
    return things.join('\n') === steadyThings.join('\n') ? true : undefined;
  }).catch(() => expect(things).toEqual(steadyThings));
});

test('agent killed while one pod starts and another ends, at many moments: both are brought to their end', async () => {
  const deaf = 'trap "" TERM; while :; do sleep 1; done';
  let leaving: string | undefined;
  for (const afterMs of [0, 150, 300, 500, 1_100]) {
    const name = `pod-${afterMs}`;
    await Promise.all([
      apply(lab, shellPod(name, deaf)),
      leaving === undefined ? undefined : lab.kubectl('delete', 'pod', leaving, '--wait=false'),
    ]);
    await wait(afterMs);
    await killAgent();
    const pod = await ready(lab, name);
    const { restartCount, lastState } = container(pod);
    // A start that was cut off in the middle of the runtime's work is undone by the runtime, and counts as a start.
    if (restartCount > 0) expect(lastState?.terminated, name).toMatchObject({ reason: 'StartError' });
    expect(restartCount, name).toBeLessThanOrEqual(1);
    if (leaving !== undefined) await gone(lab, leaving);
    const isOwn = (thing: string): boolean => !steadyThings.includes(thing);
    const count = async (kind: string): Promise<number> =>
      (await podResources(lab)).filter((thing) => isOwn(thing) && thing.startsWith(kind)).length;
    await eventually(`one of everything for ${name}`, async () => {
      const counts = [await count('lease '), await count('link '), await count('process ')];
      if (counts.some((each) => each !== 1)) throw new Error(`leases, links, shims: ${counts.join(', ')}`);
      return true;
    });
    leaving = name;
  }
  if (leaving !== undefined) await lab.kubectl('delete', 'pod', leaving);
  await nothingLeft(lab, steadyThings);
  const now = await getPod(lab, 'steady');
  expect(container(now)).toMatchObject({ restartCount: 0, containerID: container(steady).containerID });
});
