// `nodelet explain` on a real node, for pods whose image cannot be had, is still on its way, does not fit on the disk, or names a user
// that it does not have.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { execOk } from '../../../lib/exec.ts';
import { readMounts } from '../../../lib/mounts.ts';
import { apply, eventually, FOREVER, shellPod } from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import { chainText, verdictFor } from './answers.ts';
import { bare } from './broken.ts';
import { type SlowRegistry, startSlowRegistry } from './registry.ts';

/** Port 1 of the loopback address: no program listens there: connections are refused at once. */
const CLOSED_REGISTRY = '127.0.0.1:1';

let lab: TestLab;
let registry: SlowRegistry;
let host: string;

const pulls = (name: string, image: string, spec: object = {}): object => bare(name, FOREVER, spec, { image });

const pullSecret = (name: string, where: string): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  type: 'kubernetes.io/dockerconfigjson',
  stringData: {
    '.dockerconfigjson': JSON.stringify({ auths: { [where]: { username: 'puller', password: 'guessed' } } }),
  },
});

beforeAll(async () => {
  lab = await shareLab();
  registry = await startSlowRegistry();
  host = `127.0.0.1:${registry.port}`;
  // containerd speaks plain HTTP to loopback addresses, and HTTPS to all others, such as that of the bridge.
  const bridge = lab.lab.state.subnet.replace(/\.\d+\/\d+$/, '.1');
  await apply(lab, pullSecret('guess', host), pullSecret('elsewhere', 'registry.example.com'));
  await apply(
    lab,
    pulls('slow', `${host}/slow/app:1`),
    pulls('forbidden', `${host}/private/app:1`),
    pulls('credentials', `${host}/private/app:1`, { imagePullSecrets: [{ name: 'guess' }] }),
    pulls('elsewhere', `${host}/private/app:1`, { imagePullSecrets: [{ name: 'elsewhere' }, { name: 'nowhere' }] }),
    pulls('limited', `${host}/limited/app:1`),
    pulls('foreign', `${host}/foreign/app:1`),
    pulls('user', `${host}/ghost/app:1`),
    pulls('no-tag', `${host}/team/app:none`),
    // Its own sandbox brings the bridge up.
    shellPod('plain-http', FOREVER, {}, { image: `${bridge}:${registry.port}/team/app:1` }),
    pulls('no-dns', 'registry.invalid/team/app:1'),
    pulls('no-tcp', `${CLOSED_REGISTRY}/team/app:1`),
    pulls('bad-name', 'Busybox:Stable!'),
    bare('never', FOREVER, {}, { image: 'example.com/none:1', imagePullPolicy: 'Never' }),
  );
});

afterAll(async () => {
  await registry?.close();
  const ctr = ['--address', lab?.paths.containerd.socket ?? '', '-n', 'k8s.io', 'images', 'rm', '--sync'];
  if (lab !== undefined) await execOk('ctr', [...ctr, `${host}/ghost/app:1`]);
  await lab?.stop();
});

test('an image that is being pulled, with bytes and rate; the disk that it does not fit on', async () => {
  await verdictFor(lab, 'slow', 'starting', /: 1 MiB of 4 MiB in/, (answer) => {
    expect(answer.verdict).toMatch(
      /and nothing has failed: image 127\.0\.0\.1:\d+\/slow\/app:1 is being pulled: 1 MiB of 4 MiB in \d.*, \d.* a second/,
    );
    expect(answer.chain[0]?.call).toMatchObject({ name: 'PullImage', to: 'the container runtime' });
    expect(answer.chain.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/^layer-sha256:\w+: 1 MiB of 4 MiB$/),
    );
    expect(answer.notLookedAt).toEqual([]);
  });

  const disk = await fillPlaceOfLayer();
  registry.release();
  try {
    await verdictFor(lab, 'slow', 'image-pull', /the node has no room for it: its disk is full/, ({ chain }) =>
      expect(chain.find(({ call }) => call !== undefined)?.call?.answer).toMatch(/no space left on device/),
    );
  } finally {
    await disk.remove();
  }
});

/**
 * A disk of a few KiB where the runtime has made a place for the files of the layer that it is fetching. The runtime moves
 * the place aside when it fails.
 */
async function fillPlaceOfLayer(): Promise<{ remove(): Promise<void> }> {
  const ctr = ['--address', lab.paths.containerd.socket, '-n', 'k8s.io', 'snapshots'];
  const place = await eventually('the place of the layer', async () => {
    const keys = (await execOk('ctr', [...ctr, 'ls'])).split('\n');
    const key = keys
      .map((line) => /^extract-\S+ \S+/.exec(line)?.[0] ?? '')
      .find((each) => each.includes(registry.slowLayer));
    if (key === undefined) return undefined;
    return /^mount -t bind (\S+) /.exec(await execOk('ctr', [...ctr, 'mounts', '/mnt', key]))?.[1];
  });
  const source = `nodelet-full-${process.pid}`;
  await execOk('mount', ['-t', 'tmpfs', '-o', 'size=64k', source, place]);
  return {
    async remove() {
      for (const mount of await readMounts()) if (mount.source === source) await execOk('umount', [mount.path]);
    },
  };
}

const cases = [
  { pod: 'bad-name', rule: 'image-name', verdict: /"Busybox:Stable!" – / },
  { pod: 'never', rule: 'image-never', verdict: /example\.com\/none:1 .* imagePullPolicy Never forbids to pull it/ },
  {
    pod: 'no-dns',
    rule: 'image-pull',
    verdict: /name of its registry registry\.invalid cannot be resolved \(DNS\)/,
    text: /PullImage → the container runtime: .*registry\.invalid/,
  },
  { pod: 'no-tcp', rule: 'image-pull', verdict: /registry 127\.0\.0\.1:1 refuses connections \(TCP\)/ },
  {
    pod: 'plain-http',
    rule: 'image-pull',
    verdict: /fails in TLS: it speaks plain HTTP where HTTPS is expected/,
  },
  { pod: 'no-tag', rule: 'image-pull', verdict: /registry 127\.0\.0\.1:\d+ has no such image or tag/ },
  {
    pod: 'forbidden',
    rule: 'image-pull',
    verdict: /registry 127\.0\.0\.1:\d+ refused it/,
    text: /the pod has no imagePullSecrets/,
  },
  {
    pod: 'credentials',
    rule: 'image-pull',
    verdict: /registry 127\.0\.0\.1:\d+ refused it/,
    text: /the credentials of Secret guess were used: user puller for 127\.0\.0\.1:\d+/,
  },
  {
    pod: 'elsewhere',
    rule: 'image-pull',
    verdict: /registry 127\.0\.0\.1:\d+ refused it/,
    text: /Secret elsewhere has credentials for registry\.example\.com, and none for this registry; Secret nowhere .* does not exist/,
  },
  { pod: 'limited', rule: 'image-pull', verdict: /refuses more pulls for now: its rate limit is used up/, text: /429/ },
  {
    pod: 'foreign',
    rule: 'image-pull',
    verdict: /has it, but not for this node’s processor/,
    text: /no match for platform/,
  },
  { pod: 'user', rule: 'container-start', verdict: /its user is not in the image/ },
] as const;

test.each(cases)('$pod is explained by $rule', async ({ pod, rule, verdict, ...more }) => {
  await verdictFor(lab, pod, rule, verdict, (answer) => {
    if ('text' in more) expect(chainText(answer)).toMatch(more.text);
    expect(answer.notLookedAt).toEqual([]);
  });
});

test('a failed pull comes with the time of its next try', async () => {
  const link = await eventually('a link with a next try', async () => {
    const answer = await verdictFor(lab, 'no-dns', 'image-pull');
    return answer.chain.find(({ call, nextTry }) => call?.name === 'PullImage' && nextTry !== undefined);
  });
  expect(link.nextTry).toMatch(/^\d{4}-/);
  expect(link.at ?? link.since).toMatch(/^\d{4}-/);
});
