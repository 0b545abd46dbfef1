import { closeSync, openSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createDescriptorCheck, descriptorProblem } from '../../../../agent/node/descriptors.ts';
import { type DescriptorUse, readDescriptorUse } from '../../../../lib/descriptors.ts';

const use = (open: number, limit: number, systemFree = Number.MAX_SAFE_INTEGER): DescriptorUse => ({
  open,
  limit,
  systemFree,
});
const SHORT = 'kubelet has insufficient file descriptors available';

describe('a node with', () => {
  const cases: readonly [string, DescriptorUse | 'exhausted', boolean, string | undefined][] = [
    ['plenty', use(60, 1024), false, undefined],
    ['no limit', use(60, Number.POSITIVE_INFINITY), false, undefined],
    ['just enough', use(992, 1024), false, undefined],
    ['one too few', use(993, 1024), false, `${SHORT}: 993 of 1024 are open (RLIMIT_NOFILE)`],
    [
      'more open than it may, since the limit was lowered',
      use(300, 256),
      false,
      `${SHORT}: 300 of 256 are open (RLIMIT_NOFILE)`,
    ],
    ['none to look with', 'exhausted', false, `${SHORT}: none is left`],
    [
      'some free again, but not enough to go on',
      use(992, 1024),
      true,
      `${SHORT}: 992 of 1024 are open (RLIMIT_NOFILE)`,
    ],
    ['enough free again', use(960, 1024), true, undefined],
    ['a machine that has none', use(60, 1024, 5), false, `${SHORT}: the machine can open 5 more files (fs.file-max)`],
  ];
  test.each(cases)('%s', (_name, given, wasShort, expected) => {
    expect(descriptorProblem(given, wasShort)).toBe(expected);
  });
});

test('the check remembers that there were too few', () => {
  const looks = [use(60, 256), use(240, 256), use(200, 256), use(190, 256), use(200, 256)];
  const check = createDescriptorCheck(() => looks.shift() ?? 'exhausted');
  expect([check(), check(), check(), check(), check()].map((problem) => problem !== undefined)).toEqual([
    false,
    true,
    true,
    false,
    false,
  ]);
});

test('this process’s own descriptors are counted', () => {
  const before = readDescriptorUse();
  const opened = Array.from({ length: 50 }, () => openSync('/dev/null', 'r'));
  const after = readDescriptorUse();
  for (const fd of opened) closeSync(fd);
  if (before === 'exhausted' || after === 'exhausted') throw new Error('this machine has no descriptor left');
  expect(after.open - before.open).toBeGreaterThanOrEqual(45);
  expect(after.limit).toBeGreaterThan(after.open);
  expect(after.systemFree).toBeGreaterThan(0);
});
