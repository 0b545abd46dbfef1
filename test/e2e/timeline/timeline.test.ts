// `nodelet timeline` on a pod that starts in a lab: recorded from its creation on, read from the agent afterwards, in every format.

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildTimeline } from '../../../cli/timeline/build.ts';
import type { Timeline } from '../../../cli/timeline/model.ts';
import { readEvidence } from '../../../cli/timeline/run.ts';
import { execOk } from '../../../lib/exec.ts';
import { apply, FOREVER, ready, shellPod } from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';

const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
let lab: TestLab;
let dir = '';
let recording = '';
let timeline: Timeline;

const pod = (): string => `${lab.namespace}/watched`;
const run = (...args: string[]): Promise<string> =>
  execOk(NODELET, ['timeline', '--root', lab.root, '--pod', pod(), ...args], { timeoutMs: 60_000 });

/** Resolves to the exit code; `onWatching` runs once the command watches. */
async function follow(onWatching: () => Promise<void>): Promise<number | null> {
  const child = spawn(NODELET, ['timeline', '--root', lab.root, '--pod', pod(), '--follow', '-o', recording]);
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  let text = '';
  let begun: Promise<void> | undefined;
  child.stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    if (text.includes('recording until')) begun ??= onWatching();
  });
  const code = await ended;
  expect(begun, text).toBeDefined();
  await begun;
  return code;
}

beforeAll(async () => {
  lab = await shareLab();
  dir = await mkdtemp(join(tmpdir(), 'nodelet-timeline-'));
  recording = join(dir, 'watched.jsonl');
  const code = await follow(() => apply(lab, shellPod('watched', FOREVER)));
  expect(code).toBe(0);
  timeline = buildTimeline(await readEvidence(recording), { pod: pod() });
});
afterAll(async () => {
  if (dir !== '') await rm(dir, { recursive: true });
  await lab?.stop();
});

test('a recording leads from the creation to Ready, through every lane', () => {
  expect(timeline.critical).toMatchObject({ from: 'created', to: 'Ready' });
  const lanes = timeline.lanes.map(({ id }) => id);
  for (const lane of ['api', 'scheduler', 'worker', 'volumes', 'cgroup', 'cri', 'cni', 'kernel', 'containers'])
    expect(lanes).toContain(lane);
  const owners = new Set(timeline.critical?.segments.map(({ owner }) => owner));
  // Not the scheduler: where this process sees the pod only after the agent has, nothing of its time is on the path.
  for (const owner of ['agent', 'runtime', 'CNI', 'API server']) expect(owners).toContain(owner);
});

test('causes lead back from the write of Ready to the creation, by what the agent recorded', () => {
  const byId = new Map(timeline.bars.map((bar) => [bar.id, bar]));
  const from = new Map(timeline.arrows.map((arrow) => [arrow.to, arrow.from]));
  const ready = timeline.bars.find(({ name }) => /\bReady$/.test(name));
  const way: string[] = [];
  for (let id = ready?.id; id !== undefined && way.length < 30; id = from.get(id)) way.push(byId.get(id)?.name ?? '');
  expect(way).toEqual([
    expect.stringMatching(/^pod .*Ready$/),
    'PATCH pods/status',
    'syncPod',
    'startContainer main',
    'syncPod',
    'createSandbox',
    'syncPod',
    'SyncLoop ADD',
    'bind',
  ]);
});

test('CNI plugins run inside RunPodSandbox, and the kernel’s link comes from them', () => {
  const named = (pattern: RegExp) => timeline.bars.find(({ name }) => pattern.test(name));
  const byId = new Map(timeline.bars.map((bar) => [bar.id, bar]));
  expect(byId.get(named(/^ADD network/)?.parent ?? '')?.name).toBe('RunPodSandbox');
  expect(byId.get(named(/^NEWLINK/)?.parent ?? '')?.lane).toBe('cni');
});

test('decisions show their facts, and rounds the version of the pod', () => {
  const rounds = timeline.bars.filter(({ name }) => name === 'syncPod').map(({ facts }) => new Map(facts));
  expect(rounds[0]?.get('decided')).toBe('createSandbox');
  expect(rounds[0]?.get('resourceVersion')).toMatch(/^\d+$/);
  expect(rounds[1]?.get('observed')).toBe('sandbox 0 ready');
  expect(rounds[1]?.get('decided')).toBe('startContainer main');
  expect(rounds.find((facts) => facts.get('ready') === 'true')?.get('observed')).toContain('main 0 running');
});

test('a running agent has the pod’s start still, with its object', async () => {
  await ready(lab, 'watched');
  const text = await run();
  expect(text).toMatch(/^\S+\/watched, nodelet\ncreated in the second after /);
  expect(text).toContain('critical path, seen by the agent to Ready: ');
});

test('every format is written, for the owner alone', async () => {
  for (const [name, beginning] of [
    ['a.html', '<!doctype html>'],
    ['a.svg', '<svg '],
    ['a.json', '{"traceEvents":['],
    ['a.txt', `${pod()}, `],
  ] as const) {
    const path = join(dir, name);
    await run('--from', recording, '-o', path);
    expect((await readFile(path, 'utf8')).startsWith(beginning), name).toBe(true);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  }
  const otlp = JSON.parse(await run('--from', recording, '--format', 'otlp'));
  expect(otlp.resourceSpans[0].scopeSpans[0].spans.length).toBeGreaterThan(10);
});

test('a pod that the agent knows nothing of is refused in one line', async () => {
  await expect(execOk(NODELET, ['timeline', '--root', lab.root, '--pod', 'nowhere/nothing'])).rejects.toThrow(
    /nothing is recorded of the pod "nowhere\/nothing"/,
  );
});
