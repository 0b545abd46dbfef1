// Commands that need root, run by another user: one clear line and exit 1, before anything is read.

import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { exec } from '../../../lib/exec.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));

it.each([
  ['demo', 'must be root: the demo runs a real pod on this machine'],
  ['up', 'must be root: a lab makes namespaces, mounts and network links'],
  ['down', 'must be root to take a lab down'],
  ['agent', 'must be root: the agent makes mounts, cgroups and namespaces'],
])('nodelet %s without root', async (command, words) => {
  const { code, stdout, stderr } = await exec('setpriv', [
    '--reuid=65534',
    '--regid=65534',
    '--clear-groups',
    NODELET,
    command,
  ]);
  expect([code, stdout, stderr]).toEqual([1, '', `nodelet: ${words}\n`]);
});
