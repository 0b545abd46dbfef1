// The job inside the virtual machine: every group of checks, one after the other; what one of them throws is one failed
// check. `nodelet.only=` on the kernel's command line chooses groups.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CgroupDriver } from '../../../agent/model/cgroup-names.ts';
import { labPaths } from '../../../cli/lab/paths.ts';
import { errorMessage, isErrno } from '../../../lib/errors.ts';
import { execOk } from '../../../lib/exec.ts';
import { chosen, DRIVERS, type GroupName } from '../groups.ts';
import { checkDocker } from './docker.ts';
import { checkHierarchy } from './hierarchy.ts';
import { checkDemo, checkPods } from './pods.ts';
import { check, end, note } from './report.ts';
import { checkVolumes } from './volumes.ts';

/** Of each log, when a group breaks off. */
const LOG_LINES = 40;

interface Group extends GroupName {
  readonly driver: CgroupDriver;
  readonly run: (driver: CgroupDriver) => Promise<void>;
}

const GROUPS: readonly Group[] = [
  ...DRIVERS.map((driver) => ({ name: 'hierarchy', driver, run: checkHierarchy })),
  ...DRIVERS.map((driver) => ({ name: 'pods', driver, run: checkPods })),
  ...DRIVERS.map((driver) => ({ name: 'docker', driver, run: checkDocker })),
  ...DRIVERS.map((driver) => ({ name: 'demo', driver, run: checkDemo })),
  // Volumes have nothing to do with cgroups: once is enough.
  { name: 'volumes', driver: 'cgroupfs', run: checkVolumes },
];

/** The logs of a lab are gone with the machine: their ends are all that can be seen of why it failed. */
function noteLogs(): void {
  const { logDir } = labPaths();
  try {
    for (const name of readdirSync(logDir)) {
      const lines = readFileSync(join(logDir, name), 'utf8').trimEnd().split('\n').slice(-LOG_LINES);
      note(`${name}:\n${lines.join('\n')}`);
    }
  } catch (error) {
    // Not every group has a lab, and a lab that was stopped is gone.
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}

const only = /(?:^|\s)nodelet\.only=(\S+)/.exec(readFileSync('/proc/cmdline', 'utf8'))?.[1]?.split(',') ?? [];
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
  if (!chosen(group, only)) continue;
  try {
    await group.run(group.driver);
  } catch (error) {
    noteLogs();
    await check(`${group.name}, ${group.driver}: the checks go to their end`, () => ({
      held: false,
      saw: errorMessage(error),
    }));
  }
}
end();
