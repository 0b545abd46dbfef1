import { describe, expect, test } from 'vitest';
import { chosen } from '../../vm/groups.ts';

describe('the groups of checks', () => {
  const group = { name: 'pods', driver: 'systemd' };
  test.each([
    ['all run when none is named', [], true],
    ['are chosen by name', ['demo', 'pods'], true],
    ['are left out when others are named', ['demo'], false],
    ['are chosen by driver', ['systemd'], true],
    ['are left out when the other driver is named', ['cgroupfs'], false],
    ['are left out when the name is right and the driver is not', ['pods', 'cgroupfs'], false],
    ['are chosen when both are right', ['pods', 'systemd'], true],
  ] as const)('%s', (_sentence, only, wanted) => {
    expect(chosen(group, only)).toBe(wanted);
  });
});
