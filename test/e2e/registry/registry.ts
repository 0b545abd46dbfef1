// A private registry for tests: Debian's docker-registry, unpacked and never installed, with one user, behind a small
// proxy that can hold answers back and counts who pulls what at once. Images under library/ anyone may read there.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { aptCacheDirectory } from '../../../labs/images/build.ts';
import { DebianPackages } from '../../../labs/images/packages.ts';
import { systemClock } from '../../../lib/clock.ts';
import { execOk } from '../../../lib/exec.ts';
import { eventually } from '../agent/harness.ts';
import { freePort } from '../support/ports.ts';

export const USER = 'puller';
export const PASSWORD = 'secret-of-the-test';

const CREDENTIALS = `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString('base64')}`;

export interface TestRegistry {
  /** "127.0.0.1:41234" */
  readonly host: string;
  /** How long each request for a manifest is held back, ms. */
  delayMs: number;
  /** Requests for manifests are held back until so many repositories are requested at once; from then on by the delay alone. */
  together: number;
  /** The most repositories with concurrent requests for manifests, since this was last set to 0. */
  most: number;
  /** "GET /v2/team/app/manifests/v1", with its user. */
  readonly requests: { readonly what: string; readonly user: string | undefined; readonly status: number }[];
  /** Puts an image that a containerd has under `repository:tag`; the digest of its manifest. */
  push(containerd: string, image: string, repository: string, tag: string): Promise<string>;
  stop(): Promise<void>;
}

function userOf({ headers }: IncomingMessage): string | undefined {
  const [scheme, packed] = (headers.authorization ?? '').split(' ');
  if (scheme !== 'Basic' || packed === undefined) return undefined;
  return Buffer.from(packed, 'base64').toString().split(':')[0];
}

async function startProgram(root: string, port: number): Promise<ChildProcess> {
  const { directory } = await new DebianPackages(join(root, 'packages'), await aptCacheDirectory()).get(
    'docker-registry',
  );
  // A bcrypt hash with a fixed salt: the password is no secret to anyone but the pods of the test.
  const hash = await execOk('perl', ['-e', 'print crypt($ARGV[0], q($2b$05$abcdefghijklmnopqrstuv))', PASSWORD]);
  await writeFile(join(root, 'htpasswd'), `${USER}:${hash}\n`);
  const config = {
    version: 0.1,
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: join(root, 'data') } },
    http: { addr: `127.0.0.1:${port}` },
    auth: { htpasswd: { realm: 'nodelet', path: join(root, 'htpasswd') } },
  };
  await writeFile(join(root, 'config.yml'), JSON.stringify(config));
  await mkdir(join(root, 'data'), { recursive: true });
  const child = spawn(join(directory, 'usr/bin/docker-registry'), ['serve', join(root, 'config.yml')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => {
    output = `${output}${chunk}`.slice(-2000);
  });
  await eventually('the registry to answer', async () => {
    if (child.exitCode !== null) throw new Error(`docker-registry ended: ${output}`);
    return (await fetch(`http://127.0.0.1:${port}/v2/`)).status === 401 ? true : undefined;
  });
  return child;
}

export async function startRegistry(): Promise<TestRegistry> {
  const root = await mkdtemp(join(tmpdir(), 'nodelet-registry-'));
  const behind = await freePort();
  const child = await startProgram(root, behind);
  const requested = new Map<string, number>();

  const forward = async (incoming: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const { method = '', url = '', headers } = incoming;
    const repository = /^\/v2\/(.+)\/manifests\//.exec(url)?.[1];
    const counted = repository !== undefined && (method === 'GET' || method === 'HEAD');
    if (counted) {
      requested.set(repository, (requested.get(repository) ?? 0) + 1);
      registry.most = Math.max(registry.most, requested.size);
      while (registry.most < registry.together) await systemClock.sleep(20);
      await systemClock.sleep(registry.delayMs);
    }
    const isOpen = url.startsWith('/v2/library/') && (method === 'GET' || method === 'HEAD');
    const passed = isOpen ? { ...headers, authorization: CREDENTIALS } : headers;
    const onward = request({ host: '127.0.0.1', port: behind, method, path: url, headers: passed }, (response) => {
      const status = response.statusCode ?? 0;
      registry.requests.push({ what: `${method} ${url}`, user: userOf(incoming), status });
      answer.writeHead(status, response.headers);
      response.pipe(answer);
    });
    const done = (): void => {
      if (!counted) return;
      const left = (requested.get(repository) ?? 0) - 1;
      if (left > 0) requested.set(repository, left);
      else requested.delete(repository);
    };
    answer.once('close', done);
    onward.once('error', () => answer.destroy());
    incoming.pipe(onward);
  };

  const server = createServer((incoming, answer) => void forward(incoming, answer));
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  const host = `127.0.0.1:${port}`;
  const registry: TestRegistry = {
    host,
    delayMs: 0,
    together: 0,
    most: 0,
    requests: [],
    async push(containerd, image, repository, tag) {
      const name = `${host}/${repository}:${tag}`;
      const ctr = (...args: string[]): Promise<string> =>
        execOk('ctr', ['--address', containerd, '--namespace', 'k8s.io', ...args], { timeoutMs: 120_000 });
      await ctr('images', 'tag', '--force', image, name);
      try {
        await ctr('images', 'push', '--plain-http', '--user', `${USER}:${PASSWORD}`, name);
        const line = (await ctr('images', 'list', `name==${name}`)).split('\n')[1] ?? '';
        return /sha256:[0-9a-f]{64}/.exec(line)?.[0] ?? '';
      } finally {
        // Or the pull under test would find it there.
        await ctr('images', 'remove', '--sync', name);
      }
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
      await rm(root, { recursive: true, force: true });
    },
  };
  return registry;
}
