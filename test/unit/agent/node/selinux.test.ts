import { expect, test } from 'vitest';
import { isSELinuxOn } from '../../../../agent/node/selinux.ts';

const MAGIC = 0xf97cff8c;

test.each<[string, number | undefined, string, boolean]>([
  ['a policy is loaded', MAGIC, 'system_u:system_r:unconfined_service_t:s0\0', true],
  ['the kernel tells the magic as a negative number', MAGIC | 0, 'system_u:system_r:init_t:s0', true],
  ['no policy is loaded', MAGIC, 'kernel\0', false],
  ['the directory is an empty one of sysfs', 0x62656572, 'unconfined', false],
  ['there is no directory', undefined, '', false],
])('SELinux where %s: %s, %s → %s', (_what, type, label, on) => {
  expect(isSELinuxOn(type, label)).toBe(on);
});
