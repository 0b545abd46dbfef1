import { execFileSync } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { podUID } from '../../../../agent/model/pod-uid.ts';
import { PodFiles } from '../../../../agent/runtime/files.ts';
import { readFileEnd, terminationMessage } from '../../../../agent/runtime/termination-message.ts';
import { freeBlock, userNamespace } from '../../../../agent/runtime/userns.ts';
import type { ContainerStatus__Output } from '../../../../proto/gen/runtime/v1/ContainerStatus.ts';
import { pod } from './fixtures.ts';

/** The runtime has written the log to its end. */
const DEAD = { logIsComplete: true };
let root: string;
let files: PodFiles;
const REF = { uid: podUID('1234-abcd'), namespace: 'demo', name: 'web' };
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'nodelet-files-'));
  writeFileSync(join(root, 'hosts'), '10.9.9.9 node1\n');
  files = new PodFiles(
    {
      rootDir: join(root, 'kubelet'),
      podLogsDir: join(root, 'pods'),
      containerLogsDir: join(root, 'containers'),
      clusterDomain: 'cluster.local',
      resolvConf: '',
    },
    join(root, 'hosts'),
  );
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

describe('files of a pod', () => {
  test('the hosts file keeps its inode when it is written again, because containers have it mounted', () => {
    const path = files.writeHosts(pod(), ['10.0.0.5']) ?? '';
    const { ino } = statSync(path);
    expect(files.writeHosts(pod(), ['10.0.0.6'])).toBe(path);
    expect(statSync(path).ino).toBe(ino);
    expect(readFileSync(path, 'utf8')).toContain('10.0.0.6\tweb\n');
  });

  test('a pod without an address has none, a host-network pod has the node’s', () => {
    expect(files.writeHosts(pod(), [])).toBeUndefined();
    expect(readFileSync(files.writeHosts(pod({ hostNetwork: true }), []) ?? '', 'utf8')).toContain('10.9.9.9 node1');
  });

  test('a termination log is empty and writable by anyone, and each instance has its own', () => {
    const path = files.makeTerminationLog('1234-abcd', 'main');
    expect(statSync(path).mode & 0o777).toBe(0o666);
    expect(files.makeTerminationLog('1234-abcd', 'main')).not.toBe(path);
  });

  test('removing a container takes its log, rotated ones, link and termination log, and no one else’s', () => {
    files.makeContainerLogDirectory(REF, 'main');
    const log = files.logPath(REF, 'main', 1);
    for (const name of [log, `${log}.20240102-000000.gz`, files.logPath(REF, 'main', 10)]) writeFileSync(name, 'x');
    files.linkLog(REF, 'main', 'c1', 1);
    files.linkLog(REF, 'main', 'c1', 1);
    const terminationLog = files.makeTerminationLog(REF.uid, 'main');
    const volume = join(root, 'volume-file');
    writeFileSync(volume, 'the user’s');
    files.removeContainer(REF, { name: 'main', id: 'c1', logPath: log, terminationLog });
    files.removeContainer(REF, { name: 'main', id: 'c1', logPath: log, terminationLog: volume });
    expect(readdirSync(join(root, 'containers'))).toEqual([]);
    expect(readdirSync(join(log, '..'))).toEqual(['10.log']);
    expect(readdirSync(join(terminationLog, '..'))).toEqual([]);
    expect(readFileSync(volume, 'utf8')).toBe('the user’s');
  });

  test('a container without known instances continues the count of its logs', () => {
    expect(files.makeContainerLogDirectory(REF, 'main')).toBe(0);
    expect(files.makeContainerLogDirectory(REF, 'main')).toBe(0);
    for (const count of [0, 2, 10]) writeFileSync(files.logPath(REF, 'main', count), 'x');
    writeFileSync(`${files.logPath(REF, 'main', 11)}.20240102-000000.gz`, 'x');
    for (const other of ['99.txt', 'x12.log', 'core.13.log']) {
      writeFileSync(join(files.logPath(REF, 'main', 0), '..', other), 'x');
    }
    expect(files.makeContainerLogDirectory(REF, 'main')).toBe(12);
    expect(files.makeContainerLogDirectory(REF, 'other')).toBe(0);
  });

  test('a log directory goes with a sandbox that was never made, unless it holds logs', () => {
    files.makeLogDirectory(REF);
    files.removeEmptyLogDirectory(REF);
    expect(readdirSync(join(root, 'pods'))).toEqual([]);
    files.removeEmptyLogDirectory(REF);
    files.makeContainerLogDirectory(REF, 'main');
    files.removeEmptyLogDirectory(REF);
    expect(readdirSync(files.logDirectory(REF))).toEqual(['main']);
  });

  test('removing a pod takes all of it, leaves other pods’ links, and the pod directory while volumes are in it', async () => {
    const other = { ...REF, uid: podUID('other') };
    for (const ref of [REF, other]) {
      files.makeContainerLogDirectory(ref, 'main');
      files.linkLog(ref, 'main', `c-${ref.uid}`, 0);
    }
    files.writeHosts(pod(), ['10.0.0.5']);
    files.makeTerminationLog(REF.uid, 'main');
    const directory = join(root, 'kubelet', 'pods', REF.uid);
    mkdirSync(join(directory, 'volumes'));
    await files.removePod(REF);
    expect(readdirSync(directory)).toEqual(['volumes']);
    expect(readdirSync(join(root, 'pods'))).toEqual(['demo_web_other']);
    expect(readdirSync(join(root, 'containers'))).toEqual(['web_demo_main-c-other.log']);
    rmSync(join(directory, 'volumes'), { recursive: true });
    await files.removePod(REF);
    expect(readdirSync(join(root, 'kubelet', 'pods'))).toEqual([]);
    await files.removePod(REF);
  });
});

describe('the termination message', () => {
  const status = (overrides: Partial<ContainerStatus__Output>, policy = 'File'): ContainerStatus__Output => ({
    id: 'c1',
    metadata: null,
    state: 'CONTAINER_EXITED',
    created_at: '0',
    started_at: '0',
    finished_at: '0',
    exit_code: 1,
    image: null,
    image_ref: '',
    reason: 'Error',
    message: '',
    labels: {},
    annotations: {
      'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
      'io.kubernetes.container.terminationMessagePolicy': policy,
    },
    mounts: [
      {
        container_path: '/dev/termination-log',
        host_path: join(root, 'termination'),
        readonly: false,
        selinux_relabel: false,
        propagation: 'PROPAGATION_PRIVATE',
        uidMappings: [],
        gidMappings: [],
        recursive_read_only: false,
        image: null,
        image_sub_path: '',
      },
    ],
    log_path: join(root, '0.log'),
    resources: null,
    image_id: '',
    user: null,
    stop_signal: 'RUNTIME_DEFAULT',
    ...overrides,
  });
  const write = (text: string): void => writeFileSync(join(root, 'termination'), text);
  const log = (text: string): void => writeFileSync(join(root, '0.log'), `2024-01-02T03:04:05Z stderr F ${text}\n`);

  test.each<[string, string | undefined, string | undefined, Partial<ContainerStatus__Output>, string, string]>([
    ['is what the file says', 'bye', 'logged', {}, 'FallbackToLogsOnError', 'bye'],
    ['is empty with an empty file', '', 'logged', {}, 'File', ''],
    ['falls back to the log when it failed', '', 'logged', {}, 'FallbackToLogsOnError', 'logged\n'],
    ['does not when it succeeded', '', 'logged', { exit_code: 0 }, 'FallbackToLogsOnError', ''],
    ['comes after the runtime’s own words', 'bye', undefined, { message: 'runtime' }, 'File', 'runtime: bye'],
    ['is empty when there are no files at all', undefined, undefined, {}, 'FallbackToLogsOnError', ''],
  ])('%s', (_rule, file, logged, overrides, policy, expected) => {
    if (file !== undefined) write(file);
    if (logged !== undefined) log(logged);
    expect(terminationMessage(status(overrides, policy), DEAD)).toBe(expected);
  });

  test('is the last 4096 bytes of the file, and the last 2048 of the log', () => {
    write(`${'a'.repeat(5000)}end`);
    expect(terminationMessage(status({}), DEAD)).toBe(`${'a'.repeat(4093)}end`);
    write('');
    log(`${'b'.repeat(5000)}`);
    expect(terminationMessage(status({}, 'FallbackToLogsOnError'), DEAD)).toBe(`${'b'.repeat(2047)}\n`);
  });

  test('is not known yet where it would be the end of a log that is still being written', () => {
    write('');
    log('half of');
    expect(terminationMessage(status({}, 'FallbackToLogsOnError'), { logIsComplete: false })).toBeUndefined();
    expect(terminationMessage(status({ exit_code: 0 }, 'FallbackToLogsOnError'), { logIsComplete: false })).toBe('');
    write('bye');
    expect(terminationMessage(status({}, 'FallbackToLogsOnError'), { logIsComplete: false })).toBe('bye');
  });

  test('does not follow a link that the container left, nor wait on a pipe', () => {
    writeFileSync(join(root, 'secret'), 'secret');
    symlinkSync(join(root, 'secret'), join(root, 'termination'));
    expect(lstatSync(join(root, 'termination')).isSymbolicLink()).toBe(true);
    expect(terminationMessage(status({}), DEAD)).toMatch(/^Error on reading termination log .*ELOOP/);
    execFileSync('mkfifo', [join(root, 'fifo')]);
    expect(() => readFileEnd(join(root, 'fifo'), 10)).toThrow('is not a regular file');
  });
});

describe('user namespaces', () => {
  test('blocks are the lowest free ones, and never the host’s', () => {
    expect(freeBlock([])).toEqual({ hostId: 65_536, length: 65_536 });
    expect(freeBlock([{ hostId: 65_536, length: 65_536 }])).toEqual({ hostId: 131_072, length: 65_536 });
    const all = Array.from({ length: 65_535 }, (_, index) => ({ hostId: (index + 1) * 65_536, length: 65_536 }));
    expect(freeBlock(all)).toBeUndefined();
  });

  test('a pod keeps its block, two pods differ, and a removed pod’s block is free again', async () => {
    const rootDir = join(root, 'kubelet');
    const first = userNamespace(rootDir, '1234-abcd');
    expect(userNamespace(rootDir, 'b').hostId).not.toBe(first.hostId);
    expect(userNamespace(rootDir, '1234-abcd')).toEqual(first);
    await files.removePod(REF);
    expect(userNamespace(rootDir, 'c')).toEqual(first);
  });

  test('a pod’s block is in the kubelet’s file, in its format and in the one that agents had before', () => {
    const rootDir = join(root, 'kubelet');
    const file = (uid: string): string => join(rootDir, 'pods', uid, 'userns');
    userNamespace(rootDir, 'ours');
    // As a kubelet 1.34 writes it.
    const written =
      '{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],' +
      '"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}';
    expect(readFileSync(file('ours'), 'utf8')).toBe(written);
    for (const [uid, text] of [
      ['kubelets', written.replaceAll(':65536,"c', ':196608,"c')],
      ['former', '131072 65536\n'],
    ] as const) {
      mkdirSync(join(rootDir, 'pods', uid), { recursive: true });
      writeFileSync(file(uid), text);
    }
    expect(userNamespace(rootDir, 'kubelets')).toEqual({ hostId: 196_608, length: 65_536 });
    expect(userNamespace(rootDir, 'former')).toEqual({ hostId: 131_072, length: 65_536 });
    expect(userNamespace(rootDir, 'next')).toEqual({ hostId: 262_144, length: 65_536 });
  });
});
