// Image names, credentials, pull policy, back-off and sharing of pulls.

import { describe, expect, it } from 'vitest';
import { parseImageName, pullPolicyOf, withDefaultTag } from '../../../../agent/model/image-name.ts';
import { credentialsFor, parsePullSecret } from '../../../../agent/pods/image-credentials.ts';
import { ImageManager } from '../../../../agent/pods/image-manager.ts';
import { DEFAULT_PODS_CONFIG } from '../../../../agent/pods/options.ts';
import { PullQueue } from '../../../../agent/pods/pull-queue.ts';
import type { PullCredentials } from '../../../../agent/ports/pull-credentials.ts';
import type { Secret } from '../../../../client/types.ts';
import { settle, VirtualClock } from '../../../sim/clock.ts';
import { FakeRuntime } from '../../../sim/fake-runtime.ts';
import { FakeObjects, FakeRecorder, makePod } from '../../../sim/fakes.ts';

const digest = `sha256:${'a'.repeat(64)}`;

function parsed(image: string) {
  const name = parseImageName(image);
  if ('error' in name) throw new Error(name.error);
  return name;
}

describe('an image name', () => {
  it.each([
    ['nginx', 'docker.io', 'library/nginx', 'nginx:latest'],
    ['nginx:stable', 'docker.io', 'library/nginx', 'nginx:stable'],
    ['team/app', 'docker.io', 'team/app', 'team/app:latest'],
    ['localhost/app', 'localhost', 'app', 'localhost/app:latest'],
    ['registry.example:5000/a/b:1', 'registry.example:5000', 'a/b', 'registry.example:5000/a/b:1'],
    [`nginx@${digest}`, 'docker.io', 'library/nginx', `nginx@${digest}`],
    [`nginx:1@${digest}`, 'docker.io', 'library/nginx', `nginx:1@${digest}`],
    ['index.docker.io/nginx', 'docker.io', 'library/nginx', 'index.docker.io/nginx:latest'],
  ])('%s is %s / %s, asked for as %s', (image, registry, repository, requested) => {
    expect(parsed(image)).toMatchObject({ registry, repository });
    expect(withDefaultTag(image, parsed(image))).toBe(requested);
  });
  it.each(['', ' ', 'a b', 'http://x/y', 'nginx:', 'nginx:a b', 'UPPER', 'a//b', 'nginx@sha256:1', 'a'.repeat(64)])(
    '%j is none',
    (image) =>
      expect(parseImageName(image)).toHaveProperty('error', expect.stringContaining('invalid reference format')),
  );
  it.each([
    [undefined, 'nginx', 'Always'],
    [undefined, 'nginx:latest', 'Always'],
    [undefined, 'nginx:1', 'IfNotPresent'],
    [undefined, `nginx@${digest}`, 'IfNotPresent'],
    ['Never', 'nginx', 'Never'],
  ])('with policy %s on %s is pulled %s', (policy, image, expected) => {
    expect(pullPolicyOf(policy, parsed(image))).toBe(expected);
  });
});

function pullSecret(auths: object, name = 'pull'): Secret {
  const encoded = Buffer.from(JSON.stringify({ auths })).toString('base64');
  return {
    metadata: { name, namespace: 'demo', uid: name, resourceVersion: '1' },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': encoded },
  };
}
const user = (name: string) => ({ auth: Buffer.from(`${name}:pw:d`).toString('base64') });

describe('credentials', () => {
  const usersFor = (image: string, auths: object) =>
    credentialsFor(parsed(image), parsePullSecret(pullSecret(auths))).map(({ username }) => username);
  it.each([
    ['nginx', { 'https://index.docker.io/v1/': user('hub') }, ['hub']],
    ['nginx', { 'docker.io': user('hub') }, ['hub']],
    ['reg.example/a/b', { 'reg.example': user('r') }, ['r']],
    ['reg.example/a/b', { 'https://reg.example/v2/': user('r') }, ['r']],
    ['reg.example:5000/a', { 'reg.example': user('r') }, []],
    ['reg.example:5000/a', { 'reg.example:5000': user('r') }, ['r']],
    ['eu.reg.example/a', { '*.reg.example': user('wild') }, ['wild']],
    ['a.b.reg.example/a', { '*.reg.example': user('wild') }, []],
    ['reg.example/a/b', { 'reg.example': user('all'), 'reg.example/a': user('team') }, ['team', 'all']],
    ['reg.example/c/b', { 'reg.example/a': user('team') }, []],
    ['other.example/a', { 'reg.example': user('r') }, []],
  ])('for %s among %j are %j', (image, auths, expected) => expect(usersFor(image, auths)).toEqual(expected));
  it('keep a colon in the password', () => {
    expect(parsePullSecret(pullSecret({ r: user('me') }))[0]?.auth).toEqual({ username: 'me', password: 'pw:d' });
  });
  it('that are no JSON are an error that names the secret', () => {
    const broken = { ...pullSecret({}), data: { '.dockerconfigjson': Buffer.from('{').toString('base64') } };
    expect(() => parsePullSecret(broken)).toThrow('secret demo/pull: .dockerconfigjson is not JSON');
  });
});

function manager(config = {}, credentials?: PullCredentials) {
  const clock = new VirtualClock();
  const runtime = new FakeRuntime(clock);
  const objects = new FakeObjects();
  const recorder = new FakeRecorder();
  const whole = { ...DEFAULT_PODS_CONFIG, ...config };
  const images = new ImageManager({ runtime, objects, credentials, recorder, clock, config: whole });
  const never = new AbortController().signal;
  const ensure = (image: string, policy?: string, pod = makePod('p'), signal = never) =>
    images.ensure(pod, { name: 'web', image, ...(policy === undefined ? {} : { imagePullPolicy: policy }) }, signal);
  return { clock, runtime, objects, recorder, images, ensure };
}

describe('pulling', () => {
  it('is spared when the image is there and the policy lets it', async () => {
    const { runtime, recorder, ensure } = manager();
    runtime.addImage('nginx:1');
    await ensure('nginx:1');
    expect(runtime.count('pullImage')).toBe(0);
    expect(recorder.events.map(({ message, fieldPath }) => [message, fieldPath])).toEqual([
      ['Container image "nginx:1" already present on machine', 'spec.containers{web}'],
    ]);
  });
  it('says how long it took and how large the image is', async () => {
    const { clock, runtime, recorder, ensure } = manager();
    runtime.registry.add('nginx:latest');
    runtime.latency.set('pullImage', 1_200);
    const pulling = ensure('nginx');
    await clock.advance(1_200);
    await pulling;
    expect(recorder.events.map(({ message }) => message)).toEqual([
      'Pulling image "nginx"',
      'Successfully pulled image "nginx" in 1.2s (1.2s including waiting). Image size: 1234 bytes.',
    ]);
  });
  it('is not done under Never', async () => {
    const { runtime, ensure } = manager();
    await expect(ensure('nginx:1', 'Never')).rejects.toMatchObject({
      reason: 'ErrImageNeverPull',
      message: 'Container image "nginx:1" is not present with pull policy of Never',
    });
    expect(runtime.count('pullImage')).toBe(0);
  });
  it('that fails waits 10 s, 20 s, … 5 min before it is done again', async () => {
    const { clock, runtime, ensure } = manager();
    const waits: number[] = [];
    for (let i = 0; i < 7; i++) {
      await expect(ensure('no:1')).rejects.toMatchObject({ reason: 'ErrImagePull' });
      const refused = await ensure('no:1').catch((error) => error);
      expect(refused).toMatchObject({ reason: 'ImagePullBackOff' });
      waits.push(refused.retryAt - clock.now());
      await clock.advance(refused.retryAt - clock.now());
    }
    expect(waits).toEqual([10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
    expect(runtime.count('pullImage')).toBe(7);
  });
  it.each([
    ['UNKNOWN', 'no such host', 'ErrImagePull', 'no such host', 'no such host'],
    ['NOT_FOUND', 'a:1: not found', 'ErrImagePull', 'rpc error: code = NotFound desc = a:1: not found', undefined],
    [
      'UNKNOWN',
      'RegistryUnavailable: 503',
      'RegistryUnavailable',
      'image pull failed for a:1 because the registry is unavailable: 503',
      'RegistryUnavailable: 503',
    ],
    [
      'UNKNOWN',
      'SignatureValidationFailed: no signature',
      'SignatureValidationFailed',
      'image pull failed for a:1 because the signature validation failed: no signature',
      'SignatureValidationFailed: no signature',
    ],
  ])('that fails with %s "%s" is %s: %s, and backs off with that', async (code, words, reason, message, event) => {
    const { runtime, recorder, ensure } = manager();
    runtime.failNext('pullImage', words, code);
    await expect(ensure('a:1')).rejects.toMatchObject({ reason, message });
    expect(recorder.of('Failed')).toEqual([`Failed to pull image "a:1": ${event ?? message}`]);
    await expect(ensure('a:1')).rejects.toMatchObject({
      reason: 'ImagePullBackOff',
      message: `Back-off pulling image "a:1": ${reason}: ${message}`,
    });
  });
  it('that every credential is refused for reports each refusal, once', async () => {
    const { runtime, objects, ensure } = manager();
    objects.secrets.set('demo/one', pullSecret({ 'reg.example/a': user('a'), 'reg.example': user('b') }, 'one'));
    const pod = makePod('p', { imagePullSecrets: [{ name: 'one' }] });
    runtime.failNext('pullImage', 'a is unknown', 'UNKNOWN');
    runtime.failNext('pullImage', 'b is locked', 'UNKNOWN');
    await expect(ensure('reg.example/a:1', undefined, pod)).rejects.toThrow('[a is unknown, b is locked]');
    const other = makePod('q', { imagePullSecrets: [{ name: 'one' }] });
    for (let i = 0; i < 2; i++) runtime.failNext('pullImage', 'go away', 'UNKNOWN');
    await expect(ensure('reg.example/a:1', undefined, other)).rejects.toThrow(/^go away$/);
  });
  it('an inspection that fails is ImageInspectError', async () => {
    const { runtime, ensure } = manager();
    runtime.failNext('imageStatus', 'disk broken');
    await expect(ensure('nginx:1')).rejects.toMatchObject({ reason: 'ImageInspectError' });
  });
  it('of one image for two pods at once happens once', async () => {
    const { clock, runtime, ensure } = manager();
    runtime.registry.add('nginx:1');
    runtime.latency.set('pullImage', 1_000);
    const both = Promise.all([ensure('nginx:1'), ensure('nginx:1', undefined, makePod('q'))]);
    await clock.advance(1_000);
    await both;
    expect(runtime.count('pullImage')).toBe(1);
  });
  it.each([
    [{ serializeImagePulls: true }, 3_000],
    [{ serializeImagePulls: false }, 1_000],
    [{ serializeImagePulls: false, maxParallelImagePulls: 2 }, 2_000],
  ])('of three images with %j takes %i ms', async (config, expected) => {
    const { clock, runtime, ensure } = manager(config);
    runtime.latency.set('pullImage', 1_000);
    const images = ['a:1', 'b:1', 'c:1'];
    for (const image of images) runtime.registry.add(image);
    let done = false;
    void Promise.all(images.map((image) => ensure(image))).then(() => {
      done = true;
    });
    await clock.advance(expected - 1);
    expect(done).toBe(false);
    await clock.advance(1);
    expect(done).toBe(true);
  });
  it('uses the secrets of the pod, and says which are missing', async () => {
    const { runtime, objects, recorder, ensure } = manager();
    runtime.registry.add('reg.example/a:1');
    runtime.requiredAuth.set('reg.example/a:1', 'second');
    objects.secrets.set('demo/one', pullSecret({ 'reg.example/a': user('first') }, 'one'));
    objects.secrets.set('demo/two', pullSecret({ 'reg.example': user('second') }, 'two'));
    const imagePullSecrets = [{ name: 'one' }, { name: 'two' }, { name: 'gone' }];
    await ensure('reg.example/a:1', undefined, makePod('p', { imagePullSecrets }));
    expect(runtime.count('pullImage')).toBe(2);
    expect(recorder.of('FailedToRetrieveImagePullSecret')).toEqual([
      'Unable to retrieve some image pull secrets (gone); attempting to pull the image may not succeed.',
    ]);
  });
});

describe('what the node itself knows of a registry', () => {
  it('is asked for by the whole name without its tag, and tried after the pod’s own', async () => {
    const requested: string[] = [];
    const credentials: PullCredentials = {
      find: (_, image) => {
        requested.push(image);
        return Promise.resolve([
          { location: 'reg.example', auth: { username: 'node', password: 'p' } },
          { location: 'other.example', auth: { username: 'other', password: 'p' } },
        ]);
      },
    };
    const { runtime, objects, ensure } = manager({}, credentials);
    runtime.registry.add('reg.example/a:1');
    runtime.requiredAuth.set('reg.example/a:1', 'node');
    objects.secrets.set('demo/one', pullSecret({ 'reg.example': user('pod') }, 'one'));
    await ensure('reg.example/a:1', undefined, makePod('p', { imagePullSecrets: [{ name: 'one' }] }));
    expect(requested).toEqual(['reg.example/a']);
    const users = runtime.calls.filter(({ call }) => call === 'pullImage').map(({ detail }) => Object(detail).username);
    expect(users).toEqual(['pod', 'node']);
    runtime.registry.add('nginx:1');
    await ensure('nginx:1');
    expect(requested.at(-1)).toBe('docker.io/library/nginx');
  });
});

describe('a pull that is shared', () => {
  it('goes on while a caller waits, and is cancelled when none does', async () => {
    const queue = new PullQueue<string>(1);
    const [one, two] = [new AbortController(), new AbortController()];
    let cancelled = false;
    const run = (signal: AbortSignal) =>
      new Promise<string>((_, reject) =>
        signal.addEventListener('abort', () => {
          cancelled = true;
          reject(signal.reason);
        }),
      );
    const first = queue.pull('k', run, one.signal).catch((error) => error.message);
    const second = queue.pull('k', run, two.signal).catch((error) => error.message);
    one.abort(new Error('one left'));
    await settle();
    expect(cancelled).toBe(false);
    two.abort(new Error('two left'));
    await settle();
    expect(cancelled).toBe(true);
    expect([await first, await second]).toEqual(['one left', 'two left']);
    // The place it held is free again.
    await expect(queue.pull('k', () => Promise.resolve('done'), new AbortController().signal)).resolves.toBe('done');
  });
});
