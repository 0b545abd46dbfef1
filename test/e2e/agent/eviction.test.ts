// Limits on local storage on a real node: what a pod has written is measured on disk and by the runtime, the pod that
// wrote too much is ended, and the one beside it is not.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCriClient } from '../../../agent/runtime/grpc-cri-client.ts';
import { createRuntimeUsage } from '../../../agent/runtime/usage.ts';
import { Tracer } from '../../../lib/trace.ts';
import { verdictFor } from '../explain/answers.ts';
import { criEndpoint, type TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';
import { apply, eventsOf, eventually, getPod } from './harness.ts';

let lab: TestLab;

function writer(name: string, command: string, more: Record<string, unknown>, container: Record<string, unknown>) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      ...more,
      containers: [
        { name: 'c', image: 'busybox:stable', command: ['sh', '-c', `${command}; sleep 3600`], ...container },
      ],
    },
  };
}

const VOLUME = {
  volumes: [{ name: 'x', emptyDir: { sizeLimit: '1Mi' } }],
};
const MOUNT = { volumeMounts: [{ name: 'x', mountPath: '/x' }] };
const LIMIT = { resources: { limits: { 'ephemeral-storage': '1Mi' } } };

beforeAll(async () => {
  lab = await shareLab();
  await apply(lab, writer('full-volume', 'dd if=/dev/zero of=/x/f bs=1M count=5', VOLUME, MOUNT));
  await apply(lab, writer('full-layer', 'dd if=/dev/zero of=/f bs=1M count=5', {}, LIMIT));
  await apply(lab, writer('modest', 'echo hello > /x/f', VOLUME, { ...MOUNT, ...LIMIT }));
});

afterAll(async () => {
  await lab?.stop();
});

test.each([
  [
    'full-volume',
    'Usage of EmptyDir volume "x" exceeds the limit "1Mi". ',
    /volume x grew beyond its sizeLimit of 1Mi/,
  ],
  [
    'full-layer',
    'Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ',
    /more local storage than its limit/,
  ],
])('%s is evicted with the kubelet’s words', async (name, message, explained) => {
  const pod = await eventually(
    `${name} to fail`,
    async () => {
      const found = await getPod(lab, name);
      return found.status?.phase === 'Failed' ? found : undefined;
    },
    180_000,
  );
  expect(pod.status).toMatchObject({ reason: 'Evicted', message });
  expect(pod.status?.conditions?.map(({ type }) => type)).not.toContain('DisruptionTarget');
  await eventually(`the event of ${name}`, async () =>
    (await eventsOf(lab, name)).find((event) => event.reason === 'Evicted' && event.message === message),
  );
  expect((await verdictFor(lab, name, 'evicted', explained)).state).toBe('ended');
});

test('a pod that keeps to its limits goes on running', async () => {
  const pod = await eventually('modest to have started', async () => {
    const found = await getPod(lab, 'modest');
    return found.status?.phase === 'Pending' ? undefined : found;
  });
  expect(pod.status?.phase).toBe('Running');
});

test('the runtime names the images that must stay: those of containers, and the sandboxes’', async () => {
  const endpoint = criEndpoint(lab);
  const client = createCriClient(endpoint, endpoint, new Tracer());
  try {
    const usage = createRuntimeUsage(client, 60_000);
    const inUse = await usage.imagesInUse();
    const { images } = await client.call('ListImages', {}, { deadlineMs: 60_000 });
    const used = images.filter(({ id, repo_tags }) => [id, ...repo_tags].some((name) => inUse.includes(name)));
    const tags = used.flatMap(({ repo_tags }) => repo_tags);
    expect(tags.some((tag) => tag.includes('busybox'))).toBe(true);
    expect(tags.some((tag) => tag.includes('pause'))).toBe(true);
    expect(tags.some((tag) => tag.includes('nginx'))).toBe(false);
    expect((await usage.imageFsPaths()).image).toMatch(/snapshotter/);
    const { uid } = (await getPod(lab, 'modest')).metadata;
    // The runtime collects them now and then.
    const own = await eventually('figures of the container', async () =>
      (await usage.containerStats()).find(({ podUID }) => podUID === uid),
    );
    expect(own).toMatchObject({ name: 'c', restartCount: 0 });
  } finally {
    client.close();
  }
});
