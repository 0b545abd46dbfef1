import { expect, test } from 'vitest';
import { type Span, SpanRing, Tracer } from '../../../lib/trace.ts';

function recorded(): { tracer: Tracer; spans: Span[] } {
  const tracer = new Tracer();
  const spans: Span[] = [];
  tracer.subscribe((span) => spans.push(span));
  return { tracer, spans };
}

const pod = { namespace: 'demo', name: 'hello-pod', uid: 'u-1' };

test('a span inside a span names its parent, and both carry the pod and the cause', async () => {
  const { tracer, spans } = recorded();
  await tracer.within({ pod, cause: 'pod added' }, () =>
    tracer.span('worker', 'syncPod', {}, () => tracer.span('cri', 'RunPodSandbox', { attempt: 0 }, async () => 'id')),
  );
  const [inner, outer] = spans;
  expect(inner).toMatchObject({ name: 'RunPodSandbox', parent: outer?.id, pod, cause: 'pod added', outcome: 'ok' });
  expect(outer).toMatchObject({ name: 'syncPod', pod, outcome: 'ok' });
  expect(outer).not.toHaveProperty('parent');
});

test('what the body throws is recorded and thrown on', async () => {
  const { tracer, spans } = recorded();
  await expect(
    tracer.span('cni', 'ADD bridge', {}, () => {
      throw new Error('no such bridge');
    }),
  ).rejects.toThrow('no such bridge');
  expect(spans).toMatchObject([{ outcome: 'error', error: 'no such bridge' }]);
});

test('attributes that are learnt on the way are added', async () => {
  const { tracer, spans } = recorded();
  await tracer.span('cri', 'CreateContainer', { container: 'web' }, (span) => span.set({ id: 'c1' }));
  expect(spans[0]?.attributes).toEqual({ container: 'web', id: 'c1' });
});

test('contexts of call chains that run side by side do not mix', async () => {
  const { tracer, spans } = recorded();
  const run = (name: string): Promise<void> =>
    tracer.within({ pod: { ...pod, name } }, async () => {
      await Promise.resolve();
      await tracer.span('api', name, {}, async () => undefined);
    });
  await Promise.all([run('a'), run('b')]);
  expect(spans.map((span) => [span.name, span.pod?.name])).toEqual([
    ['a', 'a'],
    ['b', 'b'],
  ]);
});

test('a sink that was removed receives nothing more', async () => {
  const tracer = new Tracer();
  const heard: string[] = [];
  const stop = tracer.subscribe((span) => heard.push(span.name));
  await tracer.span('api', 'one', {}, () => undefined);
  stop();
  await tracer.span('api', 'two', {}, () => undefined);
  expect(heard).toEqual(['one']);
});

test('the ring keeps the newest spans', async () => {
  const tracer = new Tracer();
  const ring = new SpanRing(3);
  tracer.subscribe(ring.push);
  for (let n = 0; n < 10; n++) await tracer.span('api', String(n), {}, () => undefined);
  expect(ring.list().map((span) => span.name)).toEqual(['7', '8', '9']);
});

test('a chain that was caused by spans is inside none; its first spans link to them, those below do not', async () => {
  const { tracer, spans } = recorded();
  await tracer.span('worker', 'first', {}, async (first) => {
    expect(tracer.origin()).toEqual([first.id]);
    await tracer.causedBy([7, 8], { pod }, async () => {
      expect(tracer.origin()).toEqual([7, 8]);
      await tracer.span('worker', 'second', {}, () => tracer.span('cri', 'inner', {}, () => undefined));
    });
  });
  const [inner, second, first] = spans;
  expect(second).toMatchObject({ links: [7, 8], pod });
  expect(second).not.toHaveProperty('parent');
  expect(inner).toMatchObject({ parent: second?.id });
  expect(inner).not.toHaveProperty('links');
  expect(first).not.toHaveProperty('pod');
});

test('an event is a span without a duration, and the origin of what is done because of it', async () => {
  const { tracer, spans } = recorded();
  expect(tracer.origin()).toEqual([]);
  const id = tracer.event('api', 'SyncLoop ADD', { pod }, { resourceVersion: '7' });
  await tracer.causedBy([id], { pod }, () => tracer.event('cri', 'PLEG containerDied', { pod }, {}));
  expect(spans).toMatchObject([
    { id, durationMs: 0, pod, attributes: { resourceVersion: '7' } },
    { links: [id], name: 'PLEG containerDied' },
  ]);
});

test('a span has its detail where a subscriber wants it, and makes none otherwise', async () => {
  const { tracer, spans } = recorded();
  let made = 0;
  const call = (): Promise<void> =>
    tracer.span('cri', 'Version', {}, (span) => {
      span.detail(() => ({ request: String(++made) }));
      span.detail(() => ({ response: String(++made) }));
    });
  await call();
  const unwanted = tracer.wantDetail();
  await call();
  unwanted();
  unwanted();
  const again = tracer.wantDetail();
  await call();
  again();
  await call();
  expect(spans.map(({ detail }) => detail)).toEqual([
    undefined,
    { request: '1', response: '2' },
    { request: '3', response: '4' },
    undefined,
  ]);
});

test('calls that have not ended are listed, with what is known about them so far', async () => {
  const { tracer } = recorded();
  const pod = { namespace: 'demo', name: 'web', uid: 'u1' };
  const gate = Promise.withResolvers<void>();
  const working = tracer.within({ pod }, () =>
    tracer.span('volume', 'applyFSGroup', { files: 0 }, async (span) => {
      span.set({ files: 256 });
      await tracer.span('mount', 'format ext4', {}, () => gate.promise);
    }),
  );
  const [outer, inner] = tracer.openCalls();
  expect(outer).toMatchObject({ kind: 'volume', name: 'applyFSGroup', pod, attributes: { files: 256 } });
  expect(inner).toMatchObject({ kind: 'mount', name: 'format ext4', pod, parent: outer?.id });
  gate.resolve();
  await working;
  expect(tracer.openCalls()).toEqual([]);
  const failing = tracer.span('cri', 'StopContainer', {}, () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  expect(tracer.openCalls()).toEqual([]);
});
