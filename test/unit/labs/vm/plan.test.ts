import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { SOURCES } from '../../../../labs/vm/image.ts';
import {
  accelArguments,
  debootstrapArguments,
  IMAGE_FILES,
  IMAGE_LINKS,
  kernelCommandLine,
  type MachineOptions,
  mkfsArguments,
  PACKAGES,
  qemuArguments,
  rootKey,
  shortHash,
} from '../../../../labs/vm/plan.ts';

const MACHINE: MachineOptions = {
  ...{ accel: 'tcg', kernel: '/c/vmlinuz', initrd: '/c/initrd', rootDisk: '/c/root', treeDisk: '/c/tree' },
  ...{ resultsSocket: '/tmp/r.sock', consoleLog: '/c/console.log', cpus: 2, memoryMiB: 3072, program: 'a/b.ts' },
};

describe('the virtual machine', () => {
  test('has every part of the project: a module that is not there ends its job before the first line', () => {
    const root = new URL('../../../../', import.meta.url);
    const parts = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const others = new Set(['docs', 'node_modules', 'test', 'coverage']);
    const names = parts.map(({ name }) => name).filter((name) => !name.startsWith('.') && !others.has(name));
    expect(SOURCES).toEqual(expect.arrayContaining(names));
  });

  test('boots the image’s own kernel from its first disk', () => {
    const words = qemuArguments(MACHINE).join(' ');
    expect(words).toContain('-kernel /c/vmlinuz -initrd /c/initrd -append root=/dev/vda rw');
    expect(words).toContain('-smp 2 -m 3072M');
    expect(words.indexOf('file=/c/root')).toBeLessThan(words.indexOf('file=/c/tree'));
  });

  test('never writes to its disks', () => {
    const drives = qemuArguments(MACHINE).filter((word) => word.startsWith('if=none'));
    expect(drives).toHaveLength(2);
    for (const drive of drives) expect(drive).toContain('snapshot=on');
  });

  test('has the disk that a run brings along as its third', () => {
    const words = qemuArguments({ ...MACHINE, inputDisk: '/c/input' }).join(' ');
    expect(words.indexOf('file=/c/tree')).toBeLessThan(words.indexOf('file=/c/input'));
    expect(words.match(/snapshot=on/g)).toHaveLength(3);
  });

  test('has an interface that leads nowhere', () => {
    expect(qemuArguments(MACHINE).join(' ')).toContain('-netdev user,id=net,restrict=on');
  });

  test('has cgroup v2 alone', () => {
    expect(kernelCommandLine(MACHINE)).toContain('systemd.unified_cgroup_hierarchy=1');
  });

  test('runs the job when its console goes to a file, and waits for a person when it does not', () => {
    expect(kernelCommandLine(MACHINE)).toContain('nodelet.job=run');
    expect(qemuArguments(MACHINE).join(' ')).toContain('-serial file:/c/console.log');
    const shell = { ...MACHINE, consoleLog: undefined };
    expect(kernelCommandLine(shell)).toContain('nodelet.job=none');
    expect(qemuArguments(shell).join(' ')).toContain('-serial mon:stdio');
  });

  test('gets the program of the job and a word for it', () => {
    expect(kernelCommandLine({ ...MACHINE, only: 'demo' })).toMatch(/ nodelet\.program=a\/b\.ts nodelet\.only=demo$/);
    expect(kernelCommandLine(MACHINE)).not.toContain('nodelet.only');
  });

  test.each([
    ['kvm', '-accel kvm -cpu host'],
    ['tcg', '-accel tcg,thread=multi,tb-size=512 -cpu max,la57=off'],
  ] as const)('under %s has the processor that it gives', (accel, wanted) => {
    expect(accelArguments(accel).join(' ')).toBe(wanted);
  });
});

describe('its disks', () => {
  test('have every package installed from the start', () => {
    expect(debootstrapArguments('/d').join(' ')).toContain(`--include=${PACKAGES.join(',')} bookworm /d http`);
    for (const name of ['linux-image-cloud-amd64', 'systemd', 'dbus', 'containerd', 'runc', 'iproute2']) {
      expect(PACKAGES).toContain(name);
    }
  });

  test('are made from a directory without mounting it', () => {
    expect(mkfsArguments('/d', '/i', 'x', '2G').join(' ')).toBe('-q -F -t ext4 -L x -m 0 -d /d /i 2G');
  });

  test('have the job as a unit that multi-user.target wants and whose end is the machine’s', () => {
    const unit = IMAGE_FILES.find((file) => file.path === '/etc/systemd/system/nodelet-job.service');
    expect(unit?.text).toContain('ExecStopPost=/bin/systemctl --no-block poweroff');
    const wants = '/etc/systemd/system/multi-user.target.wants/nodelet-job.service';
    expect(IMAGE_LINKS).toContainEqual({ path: wants, target: unit?.path });
  });

  test('leave the system’s own containerd alone', () => {
    expect(IMAGE_LINKS).toContainEqual({ path: '/etc/systemd/system/containerd.service', target: '/dev/null' });
  });

  test('are named by what they are made of, each part for itself', () => {
    expect(rootKey()).toMatch(/^[0-9a-f]{16}$/);
    expect(rootKey()).toBe(rootKey());
    expect(shortHash(['ab', 'c'])).not.toBe(shortHash(['a', 'bc']));
  });
});
