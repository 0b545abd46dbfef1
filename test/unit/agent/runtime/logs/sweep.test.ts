import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PodUID } from '../../../../../agent/ports/runtime.ts';
import { hasLogs, sweepLogs, uidOfLogDirectory } from '../../../../../agent/runtime/logs/sweep.ts';

describe('the logs of deleted pods', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'nodelet-sweep-'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  const directories = () => ({ podLogsDir: join(root, 'pods'), containerLogsDir: join(root, 'containers') });
  function logOf(pod: string, link: string): void {
    const directory = join(root, 'pods', pod, 'web');
    mkdirSync(directory, { recursive: true });
    mkdirSync(join(root, 'containers'), { recursive: true });
    writeFileSync(join(directory, '0.log'), 'said\n');
    symlinkSync(join(directory, '0.log'), join(root, 'containers', link));
  }

  it('are found by the pod, and by its uid where no more is known of it', () => {
    logOf('demo_here_uid-1', 'here.log');
    const has = (name: string, uid: string) =>
      hasLogs(directories().podLogsDir, { namespace: name === '' ? '' : 'demo', name, uid: uid as PodUID });
    expect([has('here', 'uid-1'), has('', 'uid-1'), has('here', 'uid-2'), has('', 'uid-2')]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('go with the links to them; those of pods that are known stay', async () => {
    logOf('demo_here_uid-1', 'here.log');
    logOf('demo_gone_uid-2', 'gone.log');
    expect([...(await sweepLogs(directories(), (uid) => uid === 'uid-1'))].sort()).toEqual([
      'demo_gone_uid-2',
      'gone.log',
    ]);
    expect(readdirSync(join(root, 'pods'))).toEqual(['demo_here_uid-1']);
    expect(readdirSync(join(root, 'containers'))).toEqual(['here.log']);
  });

  it('do not include the link of a container of a known pod that has no log yet', async () => {
    logOf('demo_here_uid-1', 'here.log');
    symlinkSync(join(root, 'pods/demo_here_uid-1/web/1.log'), join(root, 'containers/starting.log'));
    symlinkSync(join(root, 'pods/demo_gone_uid-2/web/1.log'), join(root, 'containers/gone.log'));
    expect(await sweepLogs(directories(), (uid) => uid === 'uid-1')).toEqual(['gone.log']);
    expect([...readdirSync(join(root, 'containers'))].sort()).toEqual(['here.log', 'starting.log']);
  });

  it('are nothing that has another name, and no link that leads elsewhere', async () => {
    mkdirSync(join(root, 'pods', 'README'), { recursive: true });
    mkdirSync(join(root, 'containers'));
    writeFileSync(join(root, 'pods', 'a_b_c'), '');
    symlinkSync(join(root, 'nowhere'), join(root, 'containers', 'foreign.log'));
    expect(await sweepLogs(directories(), () => false)).toEqual([]);
  });

  it('are none where there is no directory of logs', async () => {
    expect(await sweepLogs(directories(), () => false)).toEqual([]);
    expect(existsSync(join(root, 'pods'))).toBe(false);
  });

  it.each([
    ['demo_web-1.a_5f0c2a', '5f0c2a'],
    ['kube-system_etcd-node_0123-abc', '0123-abc'],
    ['demo_web', undefined],
    ['Demo_web_1', undefined],
    ['lost+found', undefined],
  ])('%s is of pod %s', (name, uid) => expect(uidOfLogDirectory(name)).toBe(uid));
});
