// Pods' volumes below a root directory that is reached through a link: the mount table shows the mounts by another path.
// What is mounted there is on the same file system as the root, as a hostPath or a local PersistentVolume mostly is.
// Needs root, and no lab.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openRootDirectory } from '../../../agent/node/root-directory.ts';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import { createLinuxMounter } from '../../../agent/volumes/linux-mounter.ts';
import { localVolume } from '../../../agent/volumes/local.ts';
import { createPodVolumes } from '../../../agent/volumes/pod-volumes.ts';
import { TokenCache } from '../../../agent/volumes/tokens.ts';
import { systemClock as clock } from '../../../lib/clock.ts';
import { Gate } from '../../../lib/gate.ts';
import { mountsUnder } from '../../../lib/mountinfo.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { Tracer } from '../../../lib/trace.ts';
import { FakeObjects, FakeRecorder, pod } from '../../unit/agent/volumes/support.ts';

const tracer = new Tracer();
const mounter = createLinuxMounter({ tracer });
const ref = { uid: 'uid-1' as PodUID, namespace: 'demo', name: 'web' };
let base: string;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'nodelet-linked-')));
  mkdirSync(join(base, 'real', 'kubelet'), { recursive: true });
  symlinkSync('real', join(base, 'link'));
  mkdirSync(join(base, 'data', 'part'), { recursive: true });
  writeFileSync(join(base, 'data', 'part', 'file'), 'kept');
});
afterEach(async () => {
  for (const { path } of mountsUnder(await mounter.list(), base)) await mounter.unmount(path);
  await removeTree(base);
});

const mounts = async () => mountsUnder(await mounter.list(), join(base, 'real')).map(({ path }) => path);

describe.each([
  ['resolved at start, as the agent has it', () => openRootDirectory(join(base, 'link', 'kubelet'))],
  ['with the link in it', async () => join(base, 'link', 'kubelet')],
])('a root %s', (_what, rootOf) => {
  test('the data of a hostPath subPath, of a local volume and the memory volume of a deleted pod', async () => {
    const rootDir = await rootOf();
    const host = { mounter, objects: new FakeObjects(clock), recorder: new FakeRecorder(), clock };
    const volumes = createPodVolumes({ rootDir, tracer, ...host });
    const container = {
      name: 'c',
      volumeMounts: [
        { name: 'data', mountPath: '/part', subPath: 'part' },
        { name: 'memory', mountPath: '/memory' },
      ],
    };
    const list = [
      { name: 'data', hostPath: { path: join(base, 'data') } },
      { name: 'memory', emptyDir: { medium: 'Memory' } },
    ];
    const subject = pod({ volumes: list, containers: [container] }, { uid: ref.uid });
    await volumes.mountAll(subject);
    await volumes.containerMounts(subject, container, []);
    const podDir = join(rootDir, 'pods', ref.uid);
    const local = localVolume.plan({
      pod: subject,
      volume: { name: 'pv', local: { path: join(base, 'data') } },
      podDir,
      allocatable: {},
    });
    await localVolume.mount(local, subject, {
      ...host,
      tokens: new TokenCache(host.objects, clock),
      tracer: new Tracer(),
      bigContents: new Gate(1),
    });
    expect((await mounts()).map((path) => path.replace(/.*kubernetes.io~|.*volume-/, ''))).toEqual(
      expect.arrayContaining(['local-volume/pv', 'empty-dir/memory', 'subpaths/data/c/0']),
    );
    const failure = await volumes.unmountAll(ref).catch((error: unknown) => error);
    expect(readdirSync(join(base, 'data', 'part'))).toEqual(['file']);
    expect(readFileSync(join(base, 'data', 'part', 'file'), 'utf8')).toBe('kept');
    expect(failure).toBeUndefined();
    expect(await mounts()).toEqual([]);
    expect(existsSync(podDir)).toBe(false);
    volumes.close();
  });
});
