// `nodelet timeline` on a pod that starts in a lab: recorded from its creation on, read from the agent afterwards, in every format.

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { buildTimeline } from '../../../cli/timeline/build.ts';
import type { Timeline } from '../../../cli/timeline/model.ts';
import type { PageData } from '../../../cli/timeline/page/data.ts';
import { readEvidence } from '../../../cli/timeline/run.ts';
import { execOk } from '../../../lib/exec.ts';
import type { Span } from '../../../lib/trace.ts';
import { apply, deletePods, FOREVER, ready, shellPod } from '../agent/harness.ts';
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
  expect(text).toMatch(/^\S+\/watched, nodelet\ncreated between \S+ m?s and /);
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

test('nodelet ui serves the pod’s timeline to a caller with the token, and ends on a signal', async () => {
  const child = spawn(NODELET, ['ui', '--root', lab.root]);
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  try {
    const address = new URL(await firstLine(child.stdout));
    const entered = await fetch(address, { redirect: 'manual' });
    const headers = { cookie: entered.headers.get('set-cookie')?.split(';')[0] ?? '' };
    const read = async (path: string): Promise<Response> => await fetch(new URL(path, address), { headers });
    await vi.waitUntil(async () => (await (await read('/pods')).text()).includes(`"name":"${pod()}"`), {
      timeout: 60_000,
    });
    // The pods are those of the API server; what the agent did comes from its socket, in its own time.
    const bars = async (): Promise<readonly string[]> => {
      const response = await read(`/data?pod=${encodeURIComponent(pod())}`);
      const text = await response.text();
      if (!response.ok) return [text];
      const data: PageData = JSON.parse(text);
      return data.timelines[0]?.bars.map(({ name }) => name) ?? [];
    };
    await expect.poll(bars).toContain('RunPodSandbox');
    expect((await fetch(new URL('/pods', address))).status).toBe(401);
  } finally {
    child.kill('SIGTERM');
  }
  expect(await ended).toBe(0);
});

test('nodelet trace --detail has what was sent to the runtime and to CNI plugins, and what came back', async () => {
  const child = spawn(NODELET, [
    'trace',
    '--root',
    lab.root,
    '--json',
    '--detail',
    '--pod',
    `${lab.namespace}/detailed`,
  ]);
  const spans: Span[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => spans.push(JSON.parse(line)));
  const detailOf = (name: string): Span['detail'] => spans.find((span) => span.name === name)?.detail;
  // Until the agent has read the request, spans come without: pods are made until one has them.
  await vi.waitUntil(
    async () => {
      await apply(lab, shellPod('detailed', FOREVER));
      await ready(lab, 'detailed');
      await vi.waitUntil(() => spans.some(({ name }) => name === 'StartContainer'), { timeout: 60_000 });
      await deletePods(lab, ['detailed']);
      // The plugin's call has ended before that of the runtime around it.
      const all = [detailOf('ADD bridge')?.['stdin'], detailOf('RunPodSandbox')?.['request']];
      if (all.every((text) => text !== undefined)) return true;
      spans.length = 0;
      return false;
    },
    { timeout: 240_000 },
  );
  child.kill('SIGTERM');
  expect(JSON.parse(detailOf('RunPodSandbox')?.['request'] ?? '{}')).toMatchObject({
    config: { metadata: { name: 'detailed', namespace: lab.namespace } },
  });
  expect(detailOf('RunPodSandbox')?.['response']).toContain('pod_sandbox_id');
  const bridge = detailOf('ADD bridge');
  expect(JSON.parse(bridge?.['stdin'] ?? '{}')).toMatchObject({ type: 'bridge' });
  expect(JSON.parse(bridge?.['stdout'] ?? '{}')).toMatchObject({ ips: [{ address: expect.any(String) }] });
  expect(JSON.parse(bridge?.['environment'] ?? '{}')).toMatchObject({ CNI_COMMAND: 'ADD' });
});

function firstLine(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => createInterface({ input: stream }).once('line', resolve));
}
