import { afterEach, expect, test } from 'vitest';
import { askCgroupDriver } from '../../../../agent/runtime/cgroup-driver.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { FakeCri } from './fake-cri.ts';

let fake: FakeCri | undefined;
afterEach(async () => fake?.stop());

test.each([
  ['SYSTEMD', 'systemd'],
  ['CGROUPFS', 'cgroupfs'],
  [undefined, undefined],
] as const)('a runtime that says %s uses %s', async (output, driver) => {
  fake = await FakeCri.start();
  fake.cgroupDriver = output;
  expect(await askCgroupDriver(`unix://${fake.socket}`, new Tracer())).toBe(driver);
});

test('a runtime that is not up says nothing, and is not waited for', async () => {
  fake = await FakeCri.start();
  await fake.crash();
  expect(await askCgroupDriver(`unix://${fake.socket}`, new Tracer())).toBeUndefined();
});
