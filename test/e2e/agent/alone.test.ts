// `nodelet agent` started by hand: its one-line error for wrong flags and files, and for an API server that cannot be
// reached. Needs no lab.

import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createPlainServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { generateKeyPair, issueCertificate } from '../../../apiserver/pki/keys.ts';
import { epochMs } from '../../../lib/clock.ts';
import { type ExecResult, exec } from '../../../lib/exec.ts';
import { unmountBelow } from '../../../lib/mounts.ts';
import { eventually } from './harness.ts';

const NODELET = join(import.meta.dirname, '../../../bin/nodelet');

/** For giving up only. */
const PATIENT = { timeoutMs: 300_000 };

let root: string;
let ca: string;
const children: ChildProcess[] = [];
const servers: Server[] = [];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-e2e-'));
  await chmod(root, 0o755);
  ca = await certificate('some CA');
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
  }
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});
afterAll(async () => {
  // Where the machine's root is not shared the agent has bound its own onto itself.
  await unmountBelow([root]);
  await rm(root, { recursive: true, force: true });
});

async function certificate(commonName: string): Promise<string> {
  const life = { notBefore: epochMs(Date.now() - 60_000), notAfter: epochMs(Date.now() + 3_600_000) };
  return issueCertificate({ commonName, usage: 'ca', ...life }, generateKeyPair());
}

async function file(name: string, text: string): Promise<string> {
  const path = join(root, name);
  await writeFile(path, text);
  return path;
}

function kubeconfig(server: string): Promise<string> {
  const cluster = { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: 'token' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  return file('kubeconfig', JSON.stringify(config));
}

/** Everything of its own, so that nothing of the machine is touched. */
async function flags(config: string, settings: object = {}): Promise<readonly string[]> {
  const text = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    cgroupRoot: '/nodelet-alone',
  };
  const configuration = await file('kubelet.yaml', JSON.stringify({ ...text, ...settings }));
  return [
    ...['agent', '--kubeconfig', config, '--config', configuration, '--root-dir', join(root, 'kubelet')],
    ...['--container-runtime-endpoint', `unix://${join(root, 'none.sock')}`, '--hostname-override', 'alone'],
  ];
}

async function removeCgroups(): Promise<void> {
  await exec('find', [
    '/sys/fs/cgroup',
    '-depth',
    '-type',
    'd',
    '-path',
    '*/nodelet-alone*',
    '-exec',
    'rmdir',
    '{}',
    ';',
  ]);
}
afterAll(removeCgroups);

/** One line on standard error, nothing on standard output, exit code 1. */
function expectOneLine(result: ExecResult): string {
  expect(result).toMatchObject({ code: 1, stdout: '' });
  const lines = result.stderr.trimEnd().split('\n');
  expect(lines, result.stderr).toHaveLength(1);
  return lines[0] ?? '';
}

test('a kubeconfig that does not parse, or is not there: one line that names the file, exit code 1', async () => {
  const broken = await file('broken.kubeconfig', 'clusters: [\n  not: closed');
  const run = async (path: string): Promise<string> => expectOneLine(await exec(NODELET, await flags(path), PATIENT));
  expect(await run(broken)).toContain(broken);
  expect(await run(join(root, 'absent'))).toContain(join(root, 'absent'));
});

test('the very first start, which compiles everything, prints no more than the next, and reads no input', async () => {
  const NODE_COMPILE_CACHE = join(root, 'cache');
  const config = await flags(join(root, 'absent'));
  for (const start of ['first', 'second']) {
    const child = spawn(NODELET, config, {
      env: { ...process.env, NODE_COMPILE_CACHE },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    children.push(child);
    let messages = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (messages += String(chunk)));
    // Its input stays open, as a terminal's does.
    await new Promise((resolve) => child.once('close', resolve));
    expect([child.exitCode, messages], start).toEqual([
      1,
      `nodelet: kubeconfig ${join(root, 'absent')}: no such file\n`,
    ]);
  }
});

test('an unknown field of KubeletConfiguration is named, exit code 1', async () => {
  const config = await kubeconfig('https://127.0.0.1:1');
  const result = await exec(NODELET, await flags(config, { maxPodz: 5 }), PATIENT);
  expect(expectOneLine(result)).toContain('maxPodz');
});

test.each<[string, object]>([
  ['cpuManagerPolicy: there is no CPU manager', { cpuManagerPolicy: 'static' }],
  ['memorySwap.swapBehavior: pods get no swap', { memorySwap: { swapBehavior: 'LimitedSwap' } }],
  ['unrecognized feature gate: NoSuchGate', { featureGates: { NoSuchGate: true } }],
])('a setting that cannot be followed ends the agent with the reason: %s', async (reason, settings) => {
  const config = await kubeconfig('https://127.0.0.1:1');
  const result = await exec(NODELET, await flags(config, settings), PATIENT);
  expect(expectOneLine(result)).toContain(reason);
});

test('an unknown flag is named, exit code 1', async () => {
  const result = await exec(NODELET, ['agent', '--no-such-flag'], PATIENT);
  expect(result.code).toBe(1);
  expect(result.stderr).toContain('--no-such-flag');
});

test('not root: one line, exit code 1', async () => {
  const config = await kubeconfig('https://127.0.0.1:1');
  const args = ['--reuid', 'nobody', '--regid', 'nogroup', '--clear-groups', NODELET, ...(await flags(config))];
  const line = expectOneLine(await exec('setpriv', args, PATIENT));
  expect(line).toMatch(/root/);
});

test('the port of the kubelet API is taken: one line that names it, exit code 1', async () => {
  const taken = createPlainServer();
  servers.push(taken);
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const address = taken.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const config = await kubeconfig('https://127.0.0.1:1');
  const settings = { port: address.port, address: '127.0.0.1' };
  const result = await exec(NODELET, await flags(config, settings), PATIENT);
  expect(result.code).toBe(1);
  expect(result.stderr.trimEnd().split('\n').at(-1)).toContain(String(address.port));
});

/** Starts the agent and waits for output; resolves with the output and whether the agent still runs. */
async function outputWhen(server: string, pattern: RegExp): Promise<{ messages: string; running: boolean }> {
  const child = spawn(NODELET, await flags(await kubeconfig(server), { enableServer: false }));
  children.push(child);
  let messages = '';
  const listen = (chunk: Buffer): void => {
    messages += String(chunk);
  };
  child.stdout.on('data', listen);
  child.stderr.on('data', listen);
  await eventually(`the agent to say ${pattern}`, () => (pattern.test(messages) ? true : undefined)).catch((error) => {
    throw new Error(`${error}; its output: ${messages}`);
  });
  return { messages, running: child.exitCode === null && child.signalCode === null };
}

test('an API server that cannot be reached is named, and tried again', async () => {
  const { messages, running } = await outputWhen('https://127.0.0.1:9', /127\.0\.0\.1:9.*(ECONNREFUSED|refused)/i);
  expect(running).toBe(true);
  expect(messages).not.toMatch(/^\s+at /m);
});

test('an API server of another CA is distinguished from one that is down, and retried', async () => {
  const pair = generateKeyPair();
  const life = { notBefore: epochMs(Date.now() - 60_000), notAfter: epochMs(Date.now() + 3_600_000) };
  const cert = await issueCertificate({ commonName: 'other', usage: 'ca', ...life }, pair);
  const server = createTlsServer({ key: pair.privateKey, cert }, (socket) => socket.destroy());
  server.on('tlsClientError', () => undefined);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const { messages, running } = await outputWhen(`https://127.0.0.1:${address.port}`, /certificate/i);
  expect(running).toBe(true);
  expect(messages).not.toMatch(/^\s+at /m);
});
