import { expect, test } from 'vitest';
import { checkMachine } from '../../../../agent/node/requirements.ts';
import { UserError } from '../../../../lib/errors.ts';

const GOOD = { swapBytes: 0, cgroupVersion: 2 } as const;
const STRICT = { failSwapOn: true, failCgroupV1: true };

test('a machine with swap, or with cgroup v1, is refused where the configuration says so, and only there', () => {
  expect(() => checkMachine(STRICT, GOOD)).not.toThrow();
  expect(() => checkMachine(STRICT, { ...GOOD, swapBytes: 1024 })).toThrow(UserError);
  expect(() => checkMachine(STRICT, { ...GOOD, swapBytes: 1024 })).toThrow('running with swap on is not supported');
  expect(() => checkMachine(STRICT, { ...GOOD, cgroupVersion: 1 })).toThrow('failCgroupV1 is true');
  const lenient = { failSwapOn: false, failCgroupV1: false };
  expect(() => checkMachine(lenient, { swapBytes: 1024, cgroupVersion: 1 })).not.toThrow();
});
