// The registry that a lab has of its own (docs/registry.md), on real containerd with stock kubectl: pulls by policy, wrong tags, private images, slow
// pulls, limits, and a registry that is away.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import { exec } from '../../../lib/exec.ts';
import {
  apply,
  container,
  eventually,
  eventWhen,
  FOREVER,
  getPod,
  podWhen,
  ready,
  shellPod,
} from '../agent/harness.ts';
import { type Answer, verdictFor } from '../explain/answers.ts';
import { type PrivateLab, startLab } from '../support/lab.ts';

const TREE = fileURLToPath(new URL('../../..', import.meta.url));

let lab: PrivateLab;
/** The answer for the slow pull: looked for from the beginning, as its time does not grow on a busy machine. */
let slow: Promise<Answer>;

const pulls = (name: string, image: string, spec: object = {}): object => shellPod(name, FOREVER, spec, { image });
const always = (name: string, image: string, command: object): object =>
  shellPod(name, FOREVER, {}, { image, imagePullPolicy: 'Always', ...command });
const withSecret = (name: string): object => ({ imagePullSecrets: [{ name }] });

beforeAll(async () => {
  lab = await startLab({
    runtime: 'containerd',
    registry: true,
    // Nothing is pulled again because a machine is slow.
    registryFlags: ['--pull-limit', '2/24h', '--slow-rate', '256Ki'],
  });
  const secret = (name: string, password: string, ...server: string[]): Promise<string> =>
    lab.kubectl(
      'create',
      'secret',
      'docker-registry',
      name,
      '--docker-username=student',
      `--docker-password=${password}`,
      ...server,
    );
  await Promise.all([
    secret('right', 'open-sesame'),
    secret('guessed', 'guessed'),
    secret('quay', 'open-sesame', '--docker-server=quay.io'),
  ]);
  await apply(lab, pulls('slow-pull', 'slow/busybox'));
  slow = verdictFor(lab, 'slow-pull', 'starting', /: [1-9][\d.]* [KM]iB of 8\.1 MiB in/, ({ verdict, notLookedAt }) => {
    expect(verdict).toMatch(/image slow\/busybox:latest is being pulled: .* MiB in \d.*, \d+.* [KM]iB a second$/);
    expect(notLookedAt).toEqual([]);
  });
  // The test of its name awaits it.
  slow.catch(() => undefined);
  await apply(
    lab,
    pulls('latest', 'busybox'),
    pulls('no-tag', 'busybox:1.99'),
    pulls('no-repository', 'registry.k8s.io/no/such:1'),
    pulls('no-hub-repository', 'no/such:1'),
    pulls('no-secret', 'private/busybox:stable'),
    pulls('wrong-password', 'private/nginx:stable', withSecret('guessed')),
    pulls('secret', 'private/busybox:latest', withSecret('right')),
    pulls('wrong-server', 'quay.io/private/busybox:stable', withSecret('right')),
    pulls('other-server', 'quay.io/private/busybox:latest', withSecret('quay')),
    always('pause', 'registry.k8s.io/pause:3.9', { command: ['/usr/bin/catatonit', '-P'] }),
  );
});

// Fails when anything of the lab is left on the machine.
afterAll(async () => lab?.stop());

const waitingFor = async (name: string, message: RegExp, main = 'main'): Promise<Pod> =>
  podWhen(lab, name, `backing off with ${message}`, (pod) => {
    const waiting = container(pod, main).state?.waiting;
    return waiting?.reason === 'ImagePullBackOff' && message.test(waiting.message ?? '');
  });
const requests = async (): Promise<readonly string[]> =>
  (await readFile(lab.paths.logFile('registry'), 'utf8')).split('\n').filter((line) => line !== '');

test('a slow pull is explained with bytes and rate', async () => {
  await slow;
});

test.each([
  ['latest', 'busybox', 'library/busybox/manifests/latest?ns=docker.io'],
  ['pause', 'registry.k8s.io/pause:3.9', 'pause/manifests/3.9?ns=registry.k8s.io'],
])('%s: an image that is there is pulled again, with its policy Always', async (name, image, path) => {
  const pod = await ready(lab, name);
  expect(pod.spec.containers[0]?.imagePullPolicy).toBe('Always');
  await eventWhen(lab, name, 'Pulled', new RegExp(`^Successfully pulled image "${image}" in `));
  const line = `"msg":"HEAD /v2/${path}"`;
  await eventually('the request in the log', async () =>
    (await requests()).some((each) => each.includes(line)) ? true : undefined,
  );
});

test.each([
  [
    'no-tag',
    /^Back-off .*: ErrImagePull: rpc error: code = NotFound desc = .*docker\.io\/library\/busybox:1\.99: not found$/,
  ],
  ['no-repository', /ErrImagePull: rpc error: code = NotFound desc = .*registry\.k8s\.io\/no\/such:1: not found$/],
  ['no-hub-repository', /pull access denied, repository does not exist or may require authorization/],
  ['no-secret', /pull access denied, .*: server message: insufficient_scope: authorization failed$/],
  ['wrong-password', /failed to authorize: failed to fetch oauth token: unexpected status.*: 401 Unauthorized$/],
  ['wrong-server', /insufficient_scope: authorization failed$/],
])('%s is refused as by a real registry', async (name, message) => void (await waitingFor(name, message)));

test.each([
  ['no-tag', /registry registry-1\.docker\.io has no such image or tag/, undefined],
  ['no-secret', /refused it/, 'kubectl -n default create secret docker-registry pull --docker-username=USER'],
  ['wrong-server', /refused it/, 'create secret docker-registry pull --docker-server=quay.io --docker-username=USER'],
])('%s is explained', async (name, verdict, command) => {
  await verdictFor(lab, name, 'image-pull', verdict, ({ chain, commands }) => {
    expect(chain.map(({ text }) => text).join('\n')).toMatch(/a registry or a mirror of it answered/);
    if (command !== undefined) expect(commands.map((each) => each.command).join('\n')).toContain(command);
  });
});

test('private images are pulled with a secret for their registry', async () => {
  await Promise.all(['secret', 'other-server'].map((name) => ready(lab, name)));
  await eventWhen(lab, 'secret', 'Pulled', /^Successfully pulled image "private\/busybox:latest"/);
  await eventWhen(lab, 'other-server', 'Pulled', /^Successfully pulled image "quay\.io\/private\/busybox:latest"/);
});

test('of limited images the third is one too many, and an account has more', async () => {
  await apply(lab, pulls('limited-1', 'limited/busybox:1'), pulls('limited-2', 'limited/busybox:2'));
  await Promise.all(['limited-1', 'limited-2'].map((name) => ready(lab, name)));
  await apply(lab, pulls('limited-3', 'limited/busybox:3'), pulls('account', 'limited/busybox:4', withSecret('right')));
  await waitingFor(
    'limited-3',
    /429 Too Many Requests - Server message: toomanyrequests: You have reached your unauthenticated pull rate limit/,
  );
  await ready(lab, 'account');
  await verdictFor(lab, 'limited-3', 'image-pull', /refuses more pulls for now: its rate limit is used up/);
});

test('the commands of docs/registry.md work as they are written', async () => {
  const page = await readFile(join(TREE, 'docs/registry.md'), 'utf8');
  const blocks = [...page.matchAll(/^```sh registry\n([\s\S]*?)^```$/gm)].map(([, script = '']) => script);
  expect(blocks).toHaveLength(4);
  for (const block of blocks) {
    const script = block
      .replaceAll('/var/lib/nodelet', lab.root)
      .replaceAll('bin/nodelet explain', `bin/nodelet explain --root ${lab.root}`);
    const { code, stdout, stderr } = await exec('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: TREE,
      timeoutMs: 500_000,
    });
    expect(code, `${stdout}\n${stderr}`).toBe(0);
  }
  // kubectl run calls a container as its pod.
  await waitingFor('refused', /insufficient_scope/, 'refused');
  expect((await getPod(lab, 'allowed')).spec.imagePullSecrets).toEqual([{ name: 'hub' }]);
});

test('a slow pull comes to its end', async () => {
  await ready(lab, 'slow-pull', 300_000);
  await eventWhen(lab, 'slow-pull', 'Pulled', /^Successfully pulled image "slow\/busybox"/);
});

test('while the registry is away pulls fail, and work when it is back', async () => {
  await lab.lab.halt('registry');
  await apply(lab, pulls('away', 'busybox:latest'));
  await waitingFor('away', /connection refused/);
  const verdict = /registry 127\.0\.0\.1:\d+ refuses connections \(TCP\)/;
  await verdictFor(lab, 'away', 'image-pull', verdict, ({ commands }) =>
    expect(commands.map(({ command }) => command)).toEqual([
      expect.stringMatching(/^curl -v http:\/\/127\.0\.0\.1:\d+\/v2\/$/),
    ]),
  );
  await lab.lab.resume('registry');
  // The first one waits for the end of its pause.
  await apply(lab, pulls('back', 'busybox:latest'));
  await ready(lab, 'back');
});
