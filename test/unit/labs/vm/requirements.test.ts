// What this machine lacks for a virtual one is one line that names Debian's packages.

import { expect, test } from 'vitest';
import { type MachineFacts, requirementProblem } from '../../../../labs/vm/requirements.ts';

const GOOD: MachineFacts = { architecture: 'x64', uid: 0, missing: [] };

test('nothing is missing', () => {
  expect(requirementProblem(GOOD)).toBeUndefined();
});

test.each<[string, Partial<MachineFacts>, string]>([
  ['qemu', { missing: ['qemu-system-x86_64'] }, `needs Debian's package qemu-system-x86: run`],
  [
    'two',
    { missing: ['qemu-system-x86_64', 'debootstrap'] },
    `packages qemu-system-x86 and debootstrap: run "sh scripts/setup --with-vm", or "apt-get install qemu-system-x86 debootstrap"`,
  ],
  [
    'three',
    { missing: ['qemu-system-x86_64', 'debootstrap', 'mkfs.ext4'] },
    'qemu-system-x86, debootstrap and e2fsprogs',
  ],
  ['root', { uid: 1000 }, 'needs root'],
  ['no uid', { uid: undefined }, 'needs root'],
  ['another architecture', { architecture: 'arm64', missing: ['debootstrap'] }, 'this is arm64'],
])('%s', (_, facts, words) => {
  const problem = requirementProblem({ ...GOOD, ...facts });
  expect(problem).toContain(words);
  expect(problem).not.toContain('\n');
});
