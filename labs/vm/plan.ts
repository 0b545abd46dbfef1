// What a virtual machine is made of and how it is started: package lists, files, command lines, cache keys. Pure; image.ts and
// machine.ts carry it out.

import { createHash } from 'node:crypto';

export const SUITE = 'bookworm';
export const MIRROR = 'http://deb.debian.org/debian';

/** What a node needs and what makes a Debian bootable. Nothing is installed in the machine later: it has no network. */
export const PACKAGES: readonly string[] = [
  'linux-image-cloud-amd64',
  'initramfs-tools',
  'systemd',
  'systemd-sysv',
  'udev',
  'dbus',
  'kmod',
  'procps',
  'containerd',
  'docker.io',
  'runc',
  'containernetworking-plugins',
  'iptables',
  'nftables',
  'iproute2',
  'busybox-static',
  'util-linux',
  'mount',
  'e2fsprogs',
  'xfsprogs',
  'curl',
];

/** Units that would change the machine while it is being compared with itself, or are of no use here. */
const MASKED = [
  'containerd.service',
  'docker.service',
  'docker.socket',
  'apt-daily.timer',
  'apt-daily-upgrade.timer',
  'dpkg-db-backup.timer',
  'e2scrub_all.timer',
  'e2scrub_reap.service',
  'fstrim.timer',
  'systemd-tmpfiles-clean.timer',
];

export const ROOT_LABEL = 'vm-root';
export const TREE_LABEL = 'nodelet';
/** Where the machine sees the project. */
export const TREE_MOUNT = '/opt/nodelet';
/** A disk that a run brings along, where there is one, and where the machine sees it. */
export const INPUT_LABEL = 'nodelet-input';
export const INPUT_MOUNT = '/run/nodelet-input';
export const RESULTS_PORT = 'nodelet.results';

const JOB_UNIT = `[Unit]
Description=nodelet's job
ConditionKernelCommandLine=nodelet.job=run
After=basic.target dbus.service systemd-logind.service getty.target

[Service]
Type=exec
ExecStart=/usr/local/sbin/nodelet-job
# However the job ends, the machine does too: the host waits for that.
ExecStopPost=/bin/systemctl --no-block poweroff
StandardOutput=journal+console
StandardError=journal+console
TimeoutStartSec=infinity

[Install]
WantedBy=multi-user.target
`;

const JOB = `#!/bin/sh
set -eu
mkdir -p ${TREE_MOUNT}
mountpoint -q ${TREE_MOUNT} || mount LABEL=${TREE_LABEL} ${TREE_MOUNT}
exec sh ${TREE_MOUNT}/labs/vm/job.sh
`;

const AUTOLOGIN = `[Service]
ExecStart=
ExecStart=-/sbin/agetty --autologin root --noclear %I $TERM
`;

export interface ImageFile {
  /** Absolute in the image. */
  readonly path: string;
  readonly mode: number;
  readonly text: string;
}

export interface ImageLink {
  readonly path: string;
  readonly target: string;
}

/** What is put over Debian's own files. */
export const IMAGE_FILES: readonly ImageFile[] = [
  { path: '/etc/hostname', mode: 0o644, text: 'nodelet-vm\n' },
  { path: '/etc/hosts', mode: 0o644, text: '127.0.0.1 localhost\n::1 localhost\n10.0.2.15 nodelet-vm\n' },
  { path: '/etc/fstab', mode: 0o644, text: `LABEL=${ROOT_LABEL} / ext4 defaults 0 1\n` },
  { path: '/etc/resolv.conf', mode: 0o644, text: 'nameserver 10.0.2.3\n' },
  { path: '/etc/systemd/system/nodelet-job.service', mode: 0o644, text: JOB_UNIT },
  { path: '/etc/systemd/system/serial-getty@ttyS0.service.d/autologin.conf', mode: 0o644, text: AUTOLOGIN },
  { path: '/usr/local/sbin/nodelet-job', mode: 0o755, text: JOB },
];

export const IMAGE_LINKS: readonly ImageLink[] = [
  ...MASKED.map((unit) => ({ path: `/etc/systemd/system/${unit}`, target: '/dev/null' })),
  {
    path: '/etc/systemd/system/multi-user.target.wants/nodelet-job.service',
    target: '/etc/systemd/system/nodelet-job.service',
  },
];

export function debootstrapArguments(directory: string): readonly string[] {
  return ['--variant=minbase', '--merged-usr', `--include=${PACKAGES.join(',')}`, SUITE, directory, MIRROR];
}

/** Empties and makes a file system of `size` from a directory, without mounting anything. Sizes are mke2fs's: "2G". */
export function mkfsArguments(directory: string, image: string, label: string, size: string): readonly string[] {
  return ['-q', '-F', '-t', 'ext4', '-L', label, '-m', '0', '-d', directory, image, size];
}

/** Same key, same root disk: packages, Debian's release and our own files. Not the archive's state: see docs/vm.md. */
export function rootKey(): string {
  const parts = [SUITE, MIRROR, ...PACKAGES, JSON.stringify(IMAGE_FILES), JSON.stringify(IMAGE_LINKS)];
  return shortHash(parts);
}

export function shortHash(parts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex').slice(0, 16);
}

export type Accel = 'kvm' | 'tcg';

export interface MachineOptions {
  readonly accel: Accel;
  readonly kernel: string;
  readonly initrd: string;
  readonly rootDisk: string;
  readonly treeDisk: string;
  readonly inputDisk?: string;
  /** Unix socket with a listener: receives the job's output. */
  readonly resultsSocket: string;
  /** A file for the serial console, or undefined for a person at this terminal. */
  readonly consoleLog: string | undefined;
  readonly cpus: number;
  readonly memoryMiB: number;
  /** What the job runs: a TypeScript file below the checkout. On the kernel's command line, as nodelet.program=. */
  readonly program: string;
  /** A word for the program, without spaces, as nodelet.only=. */
  readonly only?: string;
}

/** How the processor is had: the machine's own under KVM; otherwise everything that the emulator knows. */
export function accelArguments(accel: Accel): readonly string[] {
  if (accel === 'kvm') return ['-accel', 'kvm', '-cpu', 'host'];
  // Five-level page tables make every emulated TLB miss dearer.
  return ['-accel', 'tcg,thread=multi,tb-size=512', '-cpu', 'max,la57=off'];
}

/** The disks are never written to: what the machine writes is gone with it. */
function disk(id: string, file: string): readonly string[] {
  return [
    ...['-drive', `if=none,id=${id},file=${file},format=raw,snapshot=on,cache=unsafe`],
    ...['-device', `virtio-blk-pci,drive=${id}`],
  ];
}

/** Units that take an emulated processor many seconds and do nothing for a node. */
const NOT_STARTED = ['systemd-logind', 'modprobe@drm', 'modprobe@efi_pstore', 'modprobe@fuse', 'modprobe@configfs'];

export function kernelCommandLine(options: Pick<MachineOptions, 'consoleLog' | 'program' | 'only'>): string {
  const words = ['root=/dev/vda', 'rw', 'console=ttyS0', 'panic=-1', 'systemd.unified_cgroup_hierarchy=1'];
  // Nothing foreign runs in it, and an emulated processor pays dearly for what they guard against.
  words.push('mitigations=off', 'cryptomgr.notests', 'nowatchdog');
  words.push(...NOT_STARTED.map((unit) => `systemd.mask=${unit}.service`));
  words.push(`nodelet.job=${options.consoleLog === undefined ? 'none' : 'run'}`, `nodelet.program=${options.program}`);
  if (options.only !== undefined) words.push(`nodelet.only=${options.only}`);
  return words.join(' ');
}

export function qemuArguments(options: MachineOptions): readonly string[] {
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
    ...accelArguments(options.accel),
    ...['-smp', String(options.cpus), '-m', `${options.memoryMiB}M`],
    ...['-kernel', options.kernel, '-initrd', options.initrd, '-append', kernelCommandLine(options)],
    ...disk('root', options.rootDisk),
    ...disk('tree', options.treeDisk),
    ...(options.inputDisk === undefined ? [] : disk('input', options.inputDisk)),
    ...['-device', 'virtio-rng-pci'],
    // An interface, so that the node has an address, with nothing behind it.
    ...['-netdev', 'user,id=net,restrict=on', '-device', 'virtio-net-pci,netdev=net,romfile='],
    ...['-device', 'virtio-serial-pci', '-chardev', `socket,id=results,path=${options.resultsSocket}`],
    ...['-device', `virtserialport,chardev=results,name=${RESULTS_PORT}`],
    ...['-serial', options.consoleLog === undefined ? 'mon:stdio' : `file:${options.consoleLog}`],
  ];
}

/** A boot of the kernel alone: it greets, finds no root and stops. Shows whether the accelerator runs guests at all. */
export function probeArguments(accel: Accel, kernel: string): readonly string[] {
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-m', '256M'],
    ...accelArguments(accel),
    ...['-kernel', kernel, '-append', 'console=ttyS0 panic=-1', '-serial', 'stdio'],
  ];
}
