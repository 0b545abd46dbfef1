// Pulling by `nodelet dockershim` from a registry that requires authentication: by tag and by digest, with right, wrong and no
// credentials, a tag that is not there, a registry that is away; by CRI, by crictl, and for pods.

import { expect, test } from 'vitest';
import type { CriClient } from '../../../agent/runtime/cri-client.ts';
import { Engine } from '../../../dockershim/engine.ts';
import { Tracer } from '../../../lib/trace.ts';
import { apply, container, deletePods, eventWhen, FOREVER, podWhen, ready, shellPod } from '../agent/harness.ts';
import { PASSWORD, startRegistry, type TestRegistry, USER } from '../registry/registry.ts';
import type { TestLab } from '../support/lab.ts';
import { freePort } from '../support/ports.ts';

export interface PullGround {
  readonly lab: TestLab;
  readonly cri: CriClient;
  /** `nodelet crictl` on the shim; what it printed. Rejects where it fails. */
  readonly crictl: (...words: string[]) => Promise<string>;
}

const BUSYBOX = 'docker.io/library/busybox:stable';

/** Puts the lab's busybox into the registry, and takes the name away from Docker again. The digest of its manifest. */
async function push(lab: TestLab, registry: TestRegistry, repository: string, tag: string): Promise<string> {
  const engine = new Engine(lab.paths.docker.socket, new Tracer());
  const repo = `${registry.host}/${repository}`;
  const authconfig = { username: USER, password: PASSWORD, serveraddress: registry.host };
  return engine.call('ImagePush', { image: `${repo}:${tag}` }, async (docker) => {
    await docker.getImage(BUSYBOX).tag({ repo, tag });
    const image = docker.getImage(`${repo}:${tag}`);
    let progress = '';
    for await (const chunk of await image.push({ authconfig })) progress += String(chunk);
    const digest = /"Digest":"(sha256:[0-9a-f]{64})"/.exec(progress)?.[1];
    if (digest === undefined) throw new Error(`nothing was pushed: ${progress}`);
    // Or the pull under test would find it there.
    await image.remove();
    return digest;
  });
}

const refusal = (code: string, words: RegExp) => ({ code, message: expect.stringMatching(words) });
const auth = (password: string) => ({ auth: { username: USER, password } });
/** The names that Docker has of the lab's busybox. */
async function names(cri: CriClient): Promise<readonly string[]> {
  const { image } = await cri.call('ImageStatus', { image: { image: BUSYBOX } });
  return [...(image?.repo_tags ?? []), ...(image?.repo_digests ?? [])];
}

async function byCri({ lab, cri, crictl }: PullGround, registry: TestRegistry): Promise<void> {
  const digest = await push(lab, registry, 'team/a', 'v1');
  const byTag = `${registry.host}/team/a:v1`;
  const byDigest = `${registry.host}/team/a@${digest}`;
  const { image: busybox } = await cri.call('ImageStatus', { image: { image: BUSYBOX } });
  expect(await names(cri)).not.toContain(byDigest);

  const pull = (image: string, credentials: object = {}) => cri.call('PullImage', { image: { image }, ...credentials });
  await expect(pull(byTag)).rejects.toMatchObject(refusal('UNKNOWN', /no basic auth credentials/));
  await expect(pull(byTag, auth('guessed'))).rejects.toMatchObject(refusal('UNKNOWN', /unauthorized/));
  await expect(pull(`${registry.host}/team/a:v2`, auth(PASSWORD))).rejects.toMatchObject(
    refusal('NOT_FOUND', /manifest unknown/),
  );
  const away = `127.0.0.1:${await freePort()}`;
  await expect(pull(`${away}/team/a:v1`)).rejects.toMatchObject(refusal('UNKNOWN', /connection refused/));
  await expect(pull('no.such.registry.invalid/a:v1')).rejects.toMatchObject({ code: 'UNKNOWN' });
  await expect(pull('UPPER/case')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(await names(cri)).not.toContain(byTag);

  expect(await pull(byDigest, auth(PASSWORD))).toEqual({ image_ref: busybox?.id });
  expect(await names(cri)).toContain(byDigest);
  expect(await names(cri)).not.toContain(byTag);
  expect(await pull(byTag, auth(PASSWORD))).toEqual({ image_ref: busybox?.id });
  expect(await names(cri)).toEqual(expect.arrayContaining([byTag, byDigest]));
  const { images } = await cri.call('ListImages', { filter: { image: { image: byDigest } } });
  expect(images.map(({ id }) => id)).toEqual([busybox?.id]);
  const words = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
  expect(await crictl('pull', '--auth', words, byTag)).toBe(`Image is up to date for ${busybox?.id}`);
  expect(await crictl('images', '--digests', byTag)).toContain(digest.slice('sha256:'.length, 'sha256:'.length + 12));
}

async function byPods({ lab }: PullGround, registry: TestRegistry): Promise<void> {
  const digest = await push(lab, registry, 'pods/a', 'v1');
  const away = `127.0.0.1:${await freePort()}`;
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'pull', namespace: 'default' },
    type: 'kubernetes.io/dockerconfigjson',
    stringData: {
      '.dockerconfigjson': JSON.stringify({ auths: { [registry.host]: { username: USER, password: PASSWORD } } }),
    },
  };
  const withSecret = { imagePullSecrets: [{ name: 'pull' }] };
  const pod = (name: string, image: string, spec: object = {}): object => shellPod(name, FOREVER, spec, { image });
  await apply(
    lab,
    secret,
    pod('pulled', `${registry.host}/pods/a:v1`, withSecret),
    pod('no-secret', `${registry.host}/pods/b:v1`),
    pod('no-tag', `${registry.host}/pods/a:v2`, withSecret),
    pod('away', `${away}/pods/a:v1`),
  );
  const runs = await ready(lab, 'pulled');
  expect(container(runs).imageID).toMatch(new RegExp(`@${digest}$`));
  await eventWhen(lab, 'pulled', 'Pulled', /^Successfully pulled image ".*pods\/a:v1" in .* \(.* including waiting\)/);
  const refused: readonly (readonly [string, RegExp])[] = [
    ['no-secret', /ErrImagePull: .*no basic auth credentials/],
    ['no-tag', /ErrImagePull: rpc error: code = NotFound desc = .*manifest unknown/],
    ['away', /ErrImagePull: .*connection refused/],
  ];
  for (const [name, message] of refused) {
    const waits = await podWhen(
      lab,
      name,
      'backing off',
      (each) => container(each).state?.waiting?.reason === 'ImagePullBackOff',
    );
    expect(container(waits).state?.waiting?.message).toMatch(message);
  }
  await deletePods(lab, ['pulled', 'no-secret', 'no-tag', 'away']);
  await lab.kubectl('delete', 'secret', 'pull');
}

export function pullTests(ground: () => PullGround): void {
  test('Docker Hub’s names lead to the lab’s registry, with a token for each pull', async () => {
    const { lab } = ground();
    const credentials = ['--docker-username=student', '--docker-password=open-sesame'];
    await lab.kubectl('create', 'secret', 'docker-registry', 'hub', ...credentials);
    const withSecret = { imagePullSecrets: [{ name: 'hub' }] };
    await apply(
      lab,
      shellPod('public', FOREVER, {}, { image: 'busybox' }),
      shellPod('private', FOREVER, withSecret, { image: 'private/busybox' }),
    );
    await Promise.all(['public', 'private'].map((name) => ready(lab, name)));
    await eventWhen(lab, 'public', 'Pulled', /^Successfully pulled image "busybox"/);
    await eventWhen(lab, 'private', 'Pulled', /^Successfully pulled image "private\/busybox"/);
    await deletePods(lab, ['public', 'private']);
    await lab.kubectl('delete', 'secret', 'hub');
  });

  test('pulls from a registry: tag, digest, credentials, what is not there, and a registry that is away', async () => {
    const registry = await startRegistry();
    try {
      await byCri(ground(), registry);
      await byPods(ground(), registry);
    } finally {
      await registry.stop();
    }
  });
}
