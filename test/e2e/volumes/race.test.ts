// A hostile pod that swaps a directory of its volume for a link to the machine's files, as fast as the kernel can, while
// a subPath is mounted: CVE-2017-1002101 (the link was followed) and CVE-2021-25741 (it came between check and use).
// What is mounted is never outside. The same attack catches a careless mount within a few tries: the test can fail.

import type { ChildProcess } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import { createLinuxMounter } from '../../../agent/volumes/linux-mounter.ts';
import type { VolumeManager } from '../../../agent/volumes/options.ts';
import { createPodVolumes } from '../../../agent/volumes/pod-volumes.ts';
import type { Pod } from '../../../client/types.ts';
import { systemClock } from '../../../lib/clock.ts';
import { createExecHelper } from '../../../lib/exec-helper.ts';
import { mountsUnder } from '../../../lib/mountinfo.ts';
import { Tracer } from '../../../lib/trace.ts';
import { FakeObjects, FakeRecorder, pod } from '../../unit/agent/volumes/support.ts';
import { exchangeForever } from './exchange.ts';

const tracer = new Tracer();
const ATTEMPTS = 150;
/** On a busy machine the attacker may not have its turn for a while. */
const PATIENCE_MS = 300_000;

let root = '';
let outside = '';
let volume = '';
let subject: Pod;
let volumes: VolumeManager;
let attacker: ChildProcess | undefined;
const helper = createExecHelper({ onMissing: (message) => console.log(message) });
const mounter = createLinuxMounter({ tracer, exec: helper.exec });

beforeEach(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'nodelet-volumes-race-')));
  outside = join(root, 'outside');
  mkdirSync(join(outside, 'inner'), { recursive: true });
  for (const at of [outside, join(outside, 'inner')]) writeFileSync(join(at, 'file'), 'stolen');
  const clock = systemClock;
  const [objects, recorder] = [new FakeObjects(clock), new FakeRecorder()];
  volumes = createPodVolumes({ rootDir: root, mounter, objects, tracer, clock, recorder });
  const containers = [{ name: 'c', image: 'i', volumeMounts: [{ name: 'e', mountPath: '/e' }] }];
  subject = pod({ containers, volumes: [{ name: 'e', emptyDir: {} }] });
  await volumes.mountAll(subject);
  volume = join(root, 'pods/uid-1/volumes/kubernetes.io~empty-dir/e');
});
afterEach(async () => {
  if (attacker !== undefined) {
    attacker.kill('SIGKILL');
    await new Promise((resolve) => attacker?.once('close', resolve));
    attacker = undefined;
  }
  volumes.close();
  await volumes.unmountAll({ uid: 'uid-1' as PodUID, namespace: 'demo', name: 'web' });
  expect(mountsUnder(await mounter.list(), root)).toEqual([]);
  rmSync(root, { recursive: true });
});

/** Swaps two names of the volume without end. */
async function attack(one: string, other: string): Promise<void> {
  attacker = await exchangeForever(join(volume, one), join(volume, other));
}

/** Prepares the subPath again and again; returns how often it was mounted, and how often refused with the kubelet's message. */
async function prepare(
  subPath: (attempt: number) => string,
  look: (mounted: string) => void,
  until?: 'refused',
): Promise<{ mounted: number; refused: number }> {
  const count = { mounted: 0, refused: 0 };
  const deadline = performance.now() + PATIENCE_MS;
  const goesOn = (): boolean => until !== undefined && count[until] === 0 && performance.now() < deadline;
  for (let i = 0; i < ATTEMPTS || goesOn(); i++) {
    const container = {
      name: `c${i}`,
      image: 'i',
      volumeMounts: [{ name: 'e', mountPath: '/e', subPath: subPath(i) }],
    };
    let target: string | undefined;
    try {
      const { mounts } = await volumes.containerMounts(subject, container, []);
      target = mounts[0]?.hostPath ?? '';
      count.mounted++;
    } catch (error) {
      if (
        !(error instanceof Error) ||
        !/failed to (prepare subPath|create subPath directory) for volumeMount "e"/.test(error.message)
      )
        throw error;
      count.refused++;
    }
    if (target === undefined) continue;
    look(target);
    await mounter.unmount(target);
  }
  console.log(`${count.mounted} mounted inside, ${count.refused} refused`);
  return count;
}

describe('a subPath that a pod swaps for a link to the outside', () => {
  beforeEach(() => {
    mkdirSync(join(volume, 'good/inner'), { recursive: true });
    for (const at of ['good', 'good/inner']) writeFileSync(join(volume, at, 'file'), 'own');
    symlinkSync(outside, join(volume, 'evil'));
  });
  const showsOwn = (mounted: string): void => expect(readFileSync(join(mounted, 'file'), 'utf8')).toBe('own');

  test('as its last name is mounted inside or not at all', async () => {
    await attack('good', 'evil');
    const count = await prepare(() => 'good', showsOwn, 'refused');
    expect(count.refused).toBeGreaterThan(0);
  });

  test('as a name on the way is mounted inside or not at all', async () => {
    await attack('good', 'evil');
    const count = await prepare(() => 'good/inner', showsOwn, 'refused');
    expect(count.refused).toBeGreaterThan(0);
  });

  test('is not made outside where it does not exist', async () => {
    await attack('good', 'evil');
    await prepare(
      (attempt) => `good/new-${attempt}`,
      (mounted) => expect(readdirSync(mounted)).toEqual([]),
    );
    expect(readdirSync(outside).sort()).toEqual(['file', 'inner']);
  });

  test('that is a file is that file or none', async () => {
    writeFileSync(join(volume, 'good-file'), 'own');
    symlinkSync(join(outside, 'file'), join(volume, 'evil-file'));
    await attack('good-file', 'evil-file');
    await prepare(
      () => 'good-file',
      (mounted) => expect(readFileSync(mounted, 'utf8')).toBe('own'),
    );
  });

  test('would show the outside if it were checked first and mounted by its name then', async () => {
    await attack('good', 'evil');
    const target = join(root, 'careless');
    mkdirSync(target);
    let stolen = 0;
    const deadline = performance.now() + PATIENCE_MS;
    while (stolen === 0 && performance.now() < deadline) {
      const path = join(volume, 'good');
      // The C library's, which accepts that a link becomes a directory during the call.
      if (realpathSync.native(path) !== path) {
        await systemClock.sleep(1);
        continue;
      }
      await mounter.mount({ source: path, target, options: ['bind'] });
      if (readFileSync(join(target, 'file'), 'utf8') === 'stolen') stolen++;
      await mounter.unmount(target);
    }
    expect(stolen).toBe(1);
  });
});
