// How volumes end in a lab: with their pod's work, after an agent that was killed, and of orphaned pods;
// never through a mount that is in use.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { execOk } from '../../../lib/exec.ts';
import { mountsUnder, parseMountInfo } from '../../../lib/mountinfo.ts';
import {
  agentLog,
  apply,
  deletePods,
  eventually,
  FOREVER,
  getPod,
  gone,
  mainProcess,
  nothingLeft,
  podResources,
  podWhen,
  prints,
  ready,
  shellPod,
} from '../agent/harness.ts';
import { startLab, type TestLab } from '../support/lab.ts';

let lab: TestLab;
let before: readonly string[] = [];
let sitter: ChildProcess | undefined;

const map = (name: string, data: object) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data,
});
const VOLUMES = [
  { name: 'disk', emptyDir: {} },
  { name: 'memory', emptyDir: { medium: 'Memory' } },
  { name: 'settings', configMap: { name: 'settings' } },
  { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
];
const volumeMounts = [
  ...VOLUMES.map(({ name }) => ({ name, mountPath: `/${name}` })),
  { name: 'memory', mountPath: '/sub', subPath: 'inner' },
];

const podDir = (uid: string): string => join(lab.paths.kubeletDir, 'pods', uid);
const mountsOf = async (uid: string) =>
  mountsUnder(parseMountInfo(await readFile('/proc/self/mountinfo', 'utf8')), podDir(uid)).map(({ path }) => path);

/** A process that has its working directory there. */
async function sitIn(directory: string): Promise<void> {
  const child = spawn('sleep', ['3600'], { cwd: directory, stdio: 'ignore' });
  sitter = child;
  await new Promise((resolve) => child.once('spawn', resolve));
}

async function getUp(): Promise<void> {
  const child = sitter;
  sitter = undefined;
  if (child === undefined) return;
  child.kill('SIGKILL');
  await new Promise((resolve) => child.once('close', resolve));
}

beforeAll(async () => {
  // How often the agent searches orphaned pods.
  lab = await startLab({ kills: true, kubeletConfiguration: { syncFrequency: '5s' } });
  before = await podResources(lab);
  await apply(lab, map('settings', { color: 'red' }));
});
afterEach(getUp);
afterAll(async () => {
  try {
    if (lab !== undefined) await nothingLeft(lab, before);
  } finally {
    await lab?.stop();
  }
});

test('the volumes of a pod that has done its work are unmounted, though the pod is still shown', async () => {
  const script = 'echo x > /disk/f && echo x > /memory/f && cat /settings/color; echo';
  const manifest = shellPod('done', script, { volumes: VOLUMES, restartPolicy: 'Never' }, { volumeMounts });
  await apply(lab, manifest);
  const pod = await podWhen(lab, 'done', 'Succeeded', ({ status }) => status?.phase === 'Succeeded');
  const { uid } = pod.metadata;
  await eventually('its mounts to go', async () => ((await mountsOf(uid)).length === 0 ? true : undefined));
  await eventually('its volumes to go', () => (existsSync(join(podDir(uid), 'volumes')) ? undefined : true));
  expect((await getPod(lab, 'done')).metadata.uid).toBe(uid);
  await prints(lab, 'red\n', 'logs', 'done');
  await deletePods(lab, ['done']);
  await gone(lab, 'done');
});

test('an agent that begins anew finds the volumes of its pods, keeps them current, and unmounts them in the end', async () => {
  await apply(
    lab,
    shellPod('kept', `echo x > /disk/f && echo y > /sub/f; ${FOREVER}`, { volumes: VOLUMES }, { volumeMounts }),
  );
  const pod = await ready(lab, 'kept');
  const { uid } = pod.metadata;
  const root = `/proc/${await mainProcess(lab, pod)}/root`;
  const text = (path: string) => readFile(join(root, path), 'utf8');
  await eventually('what the pod wrote', async () => ((await text('memory/inner/f')) === 'y\n' ? true : undefined));
  const mounts = await mountsOf(uid);
  // The emptyDir and two tokens, one of them the usual one, in memory; and the bind mount of the subPath.
  expect(mounts).toHaveLength(4);

  const old = lab.lab.pid('agent');
  if (old === undefined) throw new Error('no agent runs');
  process.kill(old, 'SIGKILL');
  await eventually('another agent', () => (lab.lab.pid('agent') ?? old) !== old || undefined);
  await lab.kubectl('patch', 'configmap', 'settings', '--type=merge', '-p', '{"data":{"color":"blue"}}');
  await eventually('the new colour', async () => ((await text('settings/color')) === 'blue' ? true : undefined));
  expect((await mountsOf(uid)).toSorted()).toEqual(mounts.toSorted());
  expect([await text('disk/f'), await text('memory/inner/f')]).toEqual(['x\n', 'y\n']);
  expect((await getPod(lab, 'kept')).status?.containerStatuses?.[0]?.restartCount).toBe(0);
  await deletePods(lab, ['kept'], { wait: false });
  await gone(lab, 'kept');
  expect(await mountsOf(uid)).toEqual([]);
});

test('the directory of an orphaned pod is removed, though not through a mount that is in use', async () => {
  const uid = randomUUID();
  const volumes = join(podDir(uid), 'volumes/kubernetes.io~empty-dir');
  const outside = join(lab.root, 'outside');
  await mkdir(outside);
  await writeFile(join(outside, 'kept'), 'x');
  const [busy, plain] = [join(volumes, 'busy'), join(volumes, 'plain')];
  // Complete before the agent can see it under its name.
  const draft = join(lab.paths.kubeletDir, 'draft');
  await mkdir(join(draft, 'volumes/kubernetes.io~empty-dir/plain'), { recursive: true });
  await mkdir(join(draft, 'volumes/kubernetes.io~empty-dir/busy'));
  await writeFile(join(draft, 'volumes/kubernetes.io~empty-dir/plain/f'), 'x');
  await symlink(outside, join(draft, 'volumes/kubernetes.io~empty-dir/plain/link'));
  await execOk('mount', ['-t', 'tmpfs', 'tmpfs', join(draft, 'volumes/kubernetes.io~empty-dir/busy')]);
  await writeFile(join(draft, 'volumes/kubernetes.io~empty-dir/busy/precious'), 'x');
  await sitIn(join(draft, 'volumes/kubernetes.io~empty-dir/busy'));
  // A mount moves with the directory above it.
  await execOk('mv', ['-T', draft, podDir(uid)]);

  await eventually(
    'the agent to have tried',
    async () =>
      (await agentLog(lab)).split('\n').some((line) => line.includes(uid) && line.includes('target is busy')) ||
      undefined,
  );
  expect(await readdir(busy)).toEqual(['precious']);
  expect(existsSync(join(plain, 'f'))).toBe(true);
  await getUp();
  await eventually('the directory to go', () => (existsSync(podDir(uid)) ? undefined : true));
  expect(await mountsOf(uid)).toEqual([]);
  expect(await readdir(outside)).toEqual(['kept']);
  await rm(outside, { recursive: true });
});
