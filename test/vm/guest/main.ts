// The job inside the virtual machine: every group of checks, one after the other; what one of them throws is one failed
// check. `nodelet.only=` on the kernel's command line chooses groups.

import { readFileSync } from 'node:fs';
import { errorMessage } from '../../../lib/errors.ts';
import { execOk } from '../../../lib/exec.ts';
import { checkHierarchy } from './hierarchy.ts';
import { checkDemo, checkPods } from './pods.ts';
import { check, end, note } from './report.ts';

const DRIVERS = ['cgroupfs', 'systemd'] as const;

const GROUPS: readonly { readonly name: string; readonly run: () => Promise<void> }[] = [
  ...DRIVERS.map((driver) => ({ name: 'hierarchy', run: () => checkHierarchy(driver) })),
  ...DRIVERS.map((driver) => ({ name: 'pods', run: () => checkPods(driver) })),
  ...DRIVERS.map((driver) => ({ name: 'demo', run: () => checkDemo(driver) })),
];

const only = /(?:^|\s)nodelet\.only=(\S+)/.exec(readFileSync('/proc/cmdline', 'utf8'))?.[1]?.split(',');
const kernel = (await execOk('uname', ['-srv'])).trim();
const systemd = (await execOk('systemctl', ['--version'])).split('\n')[0] ?? '';
const boot = readFileSync('/proc/uptime', 'utf8').split(' ')[0] ?? '';
note(
  `${kernel}; ${systemd}; ${(await execOk('containerd', ['--version'])).trim()}; the job began ${boot} s after boot`,
);
await check('PID 1 is systemd', () => {
  const comm = readFileSync('/proc/1/comm', 'utf8').trim();
  return { held: comm === 'systemd', saw: comm };
});
for (const group of GROUPS) {
  if (only !== undefined && !only.includes(group.name)) continue;
  try {
    await group.run();
  } catch (error) {
    await check(`${group.name}: the checks go to their end`, () => ({ held: false, saw: errorMessage(error) }));
  }
}
end();
