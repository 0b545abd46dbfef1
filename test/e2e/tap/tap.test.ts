// The tap between an agent and containerd: pods run through it, what it records can be shown, compared and replayed. The
// agent is pointed at the tap in its configuration, and started again: the lab is this file's own.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { type ExecResult, exec } from '../../../lib/exec.ts';
import { removeTree } from '../../../lib/remove-tree.ts';
import { loadProto } from '../../../proto/load.ts';
import { apply, deletePods, eventually, FOREVER, gone, ready, shellPod } from '../agent/harness.ts';
import { criEndpoint, type PrivateLab, startLab } from '../support/lab.ts';

const NODELET = join(import.meta.dirname, '../../../bin/nodelet');
let lab: PrivateLab;
let directory: string;
const running = new Set<ChildProcess>();

interface Running {
  readonly stderr: () => string;
  stop(): Promise<void>;
}

/** A `nodelet tap …` that serves on a socket until it is stopped. */
async function serve(args: readonly string[], ready: string): Promise<Running> {
  const child = spawn(NODELET, ['tap', ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  running.add(child);
  let text = '';
  child.stderr?.on('data', (part: Buffer) => {
    text += part.toString();
  });
  // Not `exit`: its last lines may not have been read by then.
  const ended = new Promise<void>((resolve) =>
    child.once('close', () => {
      running.delete(child);
      resolve();
    }),
  );
  await eventually(`"${ready}" of nodelet tap ${args.join(' ')}`, () => {
    if (child.exitCode !== null) throw new Error(text);
    return text.includes(ready) ? true : undefined;
  });
  return {
    stderr: () => text,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

const at = (name: string): string => join(directory, name);
const record = (name: string, ...more: string[]): Promise<Running> =>
  serve(['--listen', `unix://${at('tap.sock')}`, '--to', criEndpoint(lab), '--record', at(name), ...more], 'passes on');
const tap = (...args: string[]): Promise<ExecResult> => exec(NODELET, ['tap', ...args], { timeoutMs: 120_000 });

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-tap-'));
  lab = await startLab({ kills: true });
  const config: object = parse(await readFile(lab.paths.kubeletConfig, 'utf8'));
  await writeFile(
    lab.paths.kubeletConfig,
    stringify({ ...config, containerRuntimeEndpoint: `unix://${at('tap.sock')}` }),
  );
  const old = await eventually('the agent', () => lab.lab.pid('agent'));
  process.kill(old, 'SIGKILL');
});
afterAll(async () => {
  // Only those of a test that failed are left.
  for (const child of running) {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
  }
  await lab?.stop();
  await removeTree(directory);
});

/** The same pod from its creation until nothing of it is left at the runtime: that comes after it is gone from the API. */
async function podLife(recording: string): Promise<void> {
  await apply(lab, shellPod('web', FOREVER, {}, { env: [{ name: 'A', value: '1' }] }));
  await ready(lab, 'web');
  await deletePods(lab, ['web'], { graceSeconds: 1, wait: false });
  await gone(lab, 'web');
  await eventually('the sandbox to be removed', async () => {
    const { stdout } = await tap('show', at(recording), '--pod', 'default/web', '--call', 'RemovePodSandbox');
    return stdout.includes('  OK  ') ? true : undefined;
  });
}

test('a pod runs through the tap, exec too; its calls are shown; the same pod again is equal', async () => {
  const first = await record('a.crirec');
  await apply(lab, shellPod('execed', FOREVER));
  await ready(lab, 'execed');
  expect(await lab.kubectl('exec', 'execed', '--', 'sh', '-c', 'echo through the tap')).toBe('through the tap\n');
  await podLife('a.crirec');
  await first.stop();
  expect((await stat(at('a.crirec'))).mode & 0o777).toBe(0o600);
  expect(first.stderr()).toMatch(/\d+ calls are recorded in \S+a\.crirec\n$/);

  const shown = await tap('show', at('a.crirec'), '--pod', 'default/web', '-o', 'json');
  expect(shown.stderr).toBe('');
  const calls = shown.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const acts = calls
    .map(({ method }) => String(method).split('/').at(-1))
    .filter((method) => /Run|Create|Start|Stop|Remove/.test(method ?? ''));
  expect(acts.slice(0, 3)).toEqual(['RunPodSandbox', 'CreateContainer', 'StartContainer']);
  expect(acts).toEqual(expect.arrayContaining(['StopContainer', 'StopPodSandbox', 'RemovePodSandbox']));
  const created = calls.find(({ method }) => method.endsWith('/CreateContainer'));
  expect(created).toMatchObject({ pod: 'default/web', container: 'main', status: 'OK' });
  expect(created.requests[0].message.config.envs).toContainEqual({ key: 'A', value: '1' });
  expect((await tap('show', at('a.crirec'), '--call', 'Exec')).stdout).toMatch(/default\/execed main {2}Exec {2}OK/);

  // The agent's client connects again, as it does when containerd restarts.
  const second = await record('b.crirec');
  await podLife('b.crirec');
  await second.stop();
  expect((await tap('diff', at('a.crirec'), at('b.crirec'), '--ignore', at('nothing'))).code).toBe(2);
  // How often the agent lists depends on when its stream of events is back after the tap's restart.
  // And some calls are made by the clock: how many depends on how long each recording took.
  const methods = ['ListContainers', 'ListPodSandbox', 'ListImages', 'ImageFsInfo', 'Status', 'GetContainerEvents'];
  const ignored = ['pod: default/execed', 'pod: (node)', ...methods.map((method) => `method: ${method}`)];
  await writeFile(at('other-pods'), `ignore: [${ignored.map((each) => `{${each}}`).join(', ')}]\n`);
  const diff = await tap('diff', at('a.crirec'), at('b.crirec'), '--ignore', at('other-pods'));
  expect(diff.stdout).toMatch(/^default\/web: equal, \d+ calls$/m);
  expect(diff, diff.stdout).toMatchObject({ code: 0 });
  const different = await tap('diff', at('a.crirec'), at('b.crirec'));
  expect(different.stdout).toMatch(/^default\/execed: only in A/m);
  expect(different.code).toBe(1);
});

test('a rule fails a container’s start; the agent starts it again', async () => {
  await writeFile(
    at('rules.yaml'),
    'rules: [{name: no start, method: StartContainer, pod: unlucky, nth: 1, fail: {code: UNKNOWN, message: not today}}]\n',
  );
  const faults = await serve(
    ['fault', at('rules.yaml'), '--listen', at('tap.sock'), '--to', criEndpoint(lab), '--record', at('fault.crirec')],
    'passes on',
  );
  await apply(lab, shellPod('unlucky', FOREVER));
  await ready(lab, 'unlucky');
  await deletePods(lab, ['unlucky'], { graceSeconds: 1, wait: false });
  await gone(lab, 'unlucky');
  await faults.stop();
  expect(faults.stderr()).toContain('StartContainer default/unlucky main: fail (no start)');
  const { stdout } = await tap('show', at('fault.crirec'), '--call', 'StartContainer', '--pod', 'unlucky');
  expect(stdout).toMatch(/UNKNOWN .* not today\n.*StartContainer {2}OK/);
});

test('a recording answers a client without containers', async () => {
  const replay = await serve(['replay', at('a.crirec'), '--listen', at('replay.sock')], 'are replayed');
  const { RuntimeService } = loadProto('cri').runtime.v1;
  const client = new RuntimeService(`unix:${at('replay.sock')}`, credentials.createInsecure());
  const version = await new Promise<string | undefined>((resolve, reject) =>
    client.Version({}, (error, answer) => (error === null ? resolve(answer?.runtime_name) : reject(error))),
  );
  expect(version).toBe('containerd');
  const refused = await new Promise<string>((resolve) =>
    client.ReopenContainerLog({ container_id: 'x' }, (error) => resolve(error?.details ?? '')),
  );
  expect(refused).toBe('ReopenContainerLog is not in the recording');
  client.close();
  await replay.stop();
  expect(replay.stderr()).toContain('refused: ReopenContainerLog is not in the recording');
});
