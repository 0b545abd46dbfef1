import { describe, expect, it } from 'vitest';
import { deleteObject } from '../../../../apiserver/registry/delete.ts';
import { listObjects } from '../../../../apiserver/registry/list.ts';
import { patchObject } from '../../../../apiserver/registry/patch.ts';
import { parseSelection } from '../../../../apiserver/registry/selectors.ts';
import {
  startWatch,
  type WatchEvent,
  type WatchOptions,
  type WatchSink,
} from '../../../../apiserver/registry/watch.ts';
import { ADMIN, createPod, type Fixture, failureOf, fixture, pods } from '../support.ts';

const EVERYTHING = parseSelection(pods, '', '');

function watch(f: Fixture, options: Partial<WatchOptions>): { seen: string[]; stop: () => void } {
  const seen: string[] = [];
  const running = startWatch(
    f.registry,
    pods,
    {
      namespace: 'ns',
      selection: EVERYTHING,
      resourceVersion: '',
      resourceVersionMatch: '',
      allowBookmarks: false,
      ...options,
    },
    {
      event: ({ type, view, revision }) => {
        const { metadata } = view().object;
        if (type !== 'ADDED') expect(metadata.resourceVersion).toBe(String(revision));
        seen.push(`${type} ${metadata.name}`);
      },
      bookmark: (_revision, end) => seen.push(end ? 'END OF START' : 'BOOKMARK'),
      isFull: () => false,
      whenDrained: () => undefined,
      failed: (error) => seen.push(`FAILED ${String(error)}`),
    },
  );
  return { seen, stop: () => running.stop() };
}

function label(f: Fixture, name: string, labels: Record<string, string | null>): void {
  patchObject(f.registry, pods, 'ns', name, { metadata: { labels } }, 'application/merge-patch+json', ADMIN);
}

describe('a watch', () => {
  for (const resourceVersion of ['', '0']) {
    it(`from "${resourceVersion}" starts with what there is`, () => {
      const f = fixture();
      createPod(f, 'a');
      const { seen } = watch(f, { resourceVersion });
      createPod(f, 'b');
      label(f, 'a', { x: 'y' });
      deleteObject(f.registry, pods, 'ns', 'a', { dryRun: false });
      expect(seen).toEqual(['ADDED a', 'ADDED b', 'MODIFIED a', 'DELETED a']);
    });
  }

  it('from a revision replays what came after it, then goes on without a gap', () => {
    const f = fixture();
    const { resourceVersion = '' } = createPod(f, 'a').object.metadata;
    createPod(f, 'b');
    label(f, 'b', { x: 'y' });
    const { seen } = watch(f, { resourceVersion });
    createPod(f, 'c');
    expect(seen).toEqual(['ADDED b', 'MODIFIED b', 'ADDED c']);
  });

  it('from a revision that is compacted is 410 Expired', () => {
    const f = fixture();
    const { resourceVersion = '' } = createPod(f, 'a').object.metadata;
    createPod(f, 'b');
    f.store.compact(f.store.revision);
    expect(failureOf(() => watch(f, { resourceVersion }))).toMatchObject({ code: 410, reason: 'Expired' });
  });

  it('from the newest revision is fine after a compaction', () => {
    const f = fixture();
    createPod(f, 'a');
    f.store.compact(f.store.revision);
    const { seen } = watch(f, { resourceVersion: String(f.store.revision) });
    createPod(f, 'b');
    expect(seen).toEqual(['ADDED b']);
  });

  it('from the future says nothing until the store has got there', () => {
    const f = fixture();
    const { seen } = watch(f, { resourceVersion: String(f.store.revision + 1) });
    createPod(f, 'a');
    createPod(f, 'b');
    expect(seen).toEqual(['ADDED b']);
  });

  it('with a selector sees objects come and go as they match', () => {
    const f = fixture();
    const { seen } = watch(f, { selection: parseSelection(pods, 'x=y', '') });
    createPod(f, 'a');
    label(f, 'a', { x: 'y' });
    label(f, 'a', { z: 'w' });
    label(f, 'a', { x: 'no' });
    label(f, 'a', { z: 'v' });
    createPod(f, 'b', { labels: { x: 'y' } });
    deleteObject(f.registry, pods, 'ns', 'b', { dryRun: false });
    deleteObject(f.registry, pods, 'ns', 'a', { dryRun: false });
    expect(seen).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED b', 'DELETED b']);
  });

  it('replays those comings and goings too', () => {
    const f = fixture();
    const from = String(f.store.revision);
    createPod(f, 'a', { labels: { x: 'y' } });
    label(f, 'a', { x: null });
    expect(watch(f, { selection: parseSelection(pods, 'x', ''), resourceVersion: from }).seen).toEqual([
      'ADDED a',
      'DELETED a',
    ]);
  });

  it('of one node sees a pod when it is bound there', () => {
    const f = fixture();
    const { seen } = watch(f, { selection: parseSelection(pods, '', 'spec.nodeName=n1') });
    createPod(f, 'a');
    patchObject(f.registry, pods, 'ns', 'a', { spec: { nodeName: 'n1' } }, 'application/merge-patch+json', ADMIN);
    expect(seen).toEqual(['ADDED a']);
  });

  it('sees its own namespace only, and nothing once it has stopped', () => {
    const f = fixture();
    const { seen, stop } = watch(f, { namespace: 'other' });
    createPod(f, 'a');
    const all = watch(f, {});
    all.stop();
    stop();
    createPod(f, 'b');
    expect([seen, all.seen]).toEqual([[], ['ADDED a']]);
  });

  it('that streams the initial list marks its end', () => {
    const f = fixture();
    createPod(f, 'a');
    const options = { sendInitialEvents: true, allowBookmarks: true, resourceVersionMatch: 'NotOlderThan' };
    expect(watch(f, options).seen).toEqual(['ADDED a', 'END OF START']);
    expect(watch(f, { ...options, allowBookmarks: false }).seen).toEqual(['ADDED a']);
    expect(failureOf(() => watch(f, { ...options, resourceVersionMatch: '' })).message).toBe(
      'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    );
    const both = { allowBookmarks: true, resourceVersionMatch: 'Exact' };
    expect(failureOf(() => watch(f, both))).toMatchObject({ code: 422, message: expect.stringContaining(']') });
  });
});

describe('a list', () => {
  const list = (f: Fixture, more: object = {}) =>
    listObjects(f.registry, pods, {
      namespace: 'ns',
      selection: EVERYTHING,
      limit: 0,
      continueToken: '',
      resourceVersion: '',
      resourceVersionMatch: '',
      ...more,
    });
  const names = (page: ReturnType<typeof list>) => page.items.map((view) => view.object.metadata.name);

  it('in pages shows one moment, whatever happens in between', () => {
    const f = fixture();
    for (const name of ['a', 'c', 'd']) createPod(f, name);
    const first = list(f, { limit: 2 });
    expect([names(first), first.remaining]).toEqual([['a', 'c'], 1]);
    createPod(f, 'b');
    createPod(f, 'e');
    deleteObject(f.registry, pods, 'ns', 'd', { dryRun: false });
    const second = list(f, { limit: 2, continueToken: first.continueToken });
    expect([names(second), second.revision, second.continueToken]).toEqual([['d'], first.revision, undefined]);
  });

  it('whose moment is compacted is 410 with a token that goes on from now', () => {
    const f = fixture();
    for (const name of ['a', 'b', 'c']) createPod(f, name);
    const { continueToken } = list(f, { limit: 1 });
    createPod(f, 'd');
    f.store.compact(f.store.revision);
    let token = '';
    try {
      list(f, { continueToken });
    } catch (error) {
      if (!(error instanceof Error) || !('status' in error)) throw error;
      const { status } = error as Error & { status: { code: number; metadata?: { continue?: string } } };
      expect(status.code).toBe(410);
      token = status.metadata?.continue ?? '';
    }
    expect(names(list(f, { continueToken: token }))).toEqual(['b', 'c', 'd']);
  });

  it('goes on only from a token that the server made for this list', () => {
    const f = fixture();
    for (const name of ['a', 'b', 'c']) createPod(f, name);
    const { continueToken = '' } = list(f, { limit: 1 });
    const [content = '', signature = ''] = continueToken.split('.');
    const forge = (fields: object): string => Buffer.from(JSON.stringify(fields)).toString('base64url');
    const contents = [
      forge({ v: 'meta.k8s.io/v1', rv: 1, start: 'secret-marker/a' }),
      forge({ v: 'meta.k8s.io/v1', rv: -1, start: 'secret-marker/a' }),
      forge({ v: 'meta.k8s.io/v1', rv: 1e300, start: 'secret-marker/a' }),
      forge({ v: 'meta.k8s.io/v1', rv: null, start: 'secret-marker/a' }),
      forge({ v: 'meta.k8s.io/v1', rv: 99_999, start: 'secret-marker/' }),
      forge({ rv: 'NaN', start: '/' }),
    ];
    const tokens = contents.flatMap((each) => [each, `${each}.`, `${each}.${signature}`]);
    for (const token of [
      ...tokens,
      content,
      `.${signature}`,
      `${content}.${signature.slice(1)}`,
      '.',
      'secret-marker',
    ]) {
      const failure = failureOf(() => list(f, { continueToken: token }));
      expect([400, 410], token).toContain(failure.code);
      expect(JSON.stringify(failure)).not.toContain('secret-marker');
    }
    // A token of one namespace is none of all, nor of another.
    expect(failureOf(() => list(f, { continueToken, namespace: undefined })).code).toBe(400);
    expect(failureOf(() => list(f, { continueToken, namespace: 'other' })).code).toBe(400);
    expect(names(list(f, { continueToken }))).toEqual(['b', 'c']);
  });

  it('of a store that was put back to an earlier state is 410', () => {
    const f = fixture();
    const token = f.registry.continueTokens.encode('/pods ns', {
      revision: 9999,
      after: { namespace: 'ns', name: 'a' },
    });
    expect(failureOf(() => list(f, { continueToken: token })).code).toBe(410);
  });

  it('with selectors pages over what matches', () => {
    const f = fixture();
    for (const name of ['a', 'b', 'c', 'd']) createPod(f, name, name === 'b' ? {} : { labels: { x: 'y' } });
    const selection = parseSelection(pods, 'x=y', '');
    const first = list(f, { selection, limit: 2 });
    expect([names(first), first.remaining]).toEqual([['a', 'c'], undefined]);
    expect(names(list(f, { selection, limit: 2, continueToken: first.continueToken }))).toEqual(['d']);
  });

  it('at an exact revision shows that one', () => {
    const f = fixture();
    const { resourceVersion } = createPod(f, 'a').object.metadata;
    createPod(f, 'b');
    expect(names(list(f, { resourceVersion, resourceVersionMatch: 'Exact' }))).toEqual(['a']);
    expect(names(list(f, { resourceVersion, resourceVersionMatch: 'NotOlderThan' }))).toEqual(['a', 'b']);
  });

  const refusals: readonly [string, object, number][] = [
    ['a revision from the future', { resourceVersion: '999' }, 504],
    ['a revision that is no number', { resourceVersion: 'x' }, 400],
    ['a match without a revision', { resourceVersionMatch: 'Exact' }, 422],
    ['an unknown match', { resourceVersion: '1', resourceVersionMatch: 'Near' }, 422],
    ['an exact match with any revision', { resourceVersion: '0', resourceVersionMatch: 'Exact' }, 422],
    ['a match with a token', { continueToken: 'a', resourceVersion: '1', resourceVersionMatch: 'Exact' }, 422],
    ['a token that is garbage', { continueToken: 'garbage' }, 400],
    ['a token together with a revision', { continueToken: 'any', resourceVersion: '1' }, 400],
    ['a revision beyond 64 bits', { resourceVersion: '99999999999999999999' }, 400],
  ];
  for (const [what, options, code] of refusals) {
    it(`refuses ${what} with ${code}`, () => expect(failureOf(() => list(fixture(), options)).code).toBe(code));
  }
});

/** A sink that takes events until it is full, and takes more each time it is drained. */
class SlowSink implements WatchSink {
  readonly seen: string[] = [];
  /** Events that it takes before it is full again. */
  room: number;
  #resume: (() => void) | undefined;
  constructor(room: number) {
    this.room = room;
  }
  event({ type, view, revision }: WatchEvent): void {
    this.seen.push(`${type} ${view().object.metadata.name} ${revision}`);
    this.room--;
  }
  bookmark(): void {
    this.seen.push('BOOKMARK');
  }
  isFull(): boolean {
    return this.room <= 0;
  }
  whenDrained(resume: () => void): void {
    this.#resume = resume;
  }
  failed(error: unknown): void {
    this.seen.push(`FAILED ${String(error)}`);
  }
  get waits(): boolean {
    return this.#resume !== undefined;
  }
  drain(room: number): void {
    const resume = this.#resume;
    this.#resume = undefined;
    this.room = room;
    resume?.();
  }
}

describe('a watch that is read slowly', () => {
  const LARGE = 'x'.repeat(100_000);
  const options = { namespace: 'ns', selection: EVERYTHING, resourceVersionMatch: '', allowBookmarks: true };
  const change = (f: Fixture, name: string, value: number): void =>
    void patchObject(
      f.registry,
      pods,
      'ns',
      name,
      { metadata: { annotations: { value: String(value), LARGE } } },
      'application/merge-patch+json',
      ADMIN,
    );
  const numbers = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);

  it('gets history in parts, with what is written meanwhile behind it: in order, nothing lost, nothing twice', async () => {
    const f = fixture();
    createPod(f, 'a');
    const from = f.store.revision;
    for (let i = 0; i < 20; i++) change(f, 'a', i);
    const sink = new SlowSink(1);
    const watch = startWatch(f.registry, pods, { ...options, resourceVersion: String(from) }, sink);
    // One part of history, not all of it.
    expect(sink.seen.length).toBeLessThan(4);
    for (let i = 20; sink.seen.length < 60 && i < 400; i++) {
      if (f.store.revision < from + 60) change(f, 'a', i);
      await expect.poll(() => sink.waits || sink.seen.length === 60).toBe(true);
      const before = sink.seen.length;
      expect(watch.position()).toBeLessThanOrEqual(from + before);
      sink.drain(1);
      expect(sink.seen.length - before).toBeLessThan(4);
    }
    expect(sink.seen).toEqual(numbers(from + 1, 60).map((revision) => `MODIFIED a ${revision}`));
    sink.drain(1000);
    change(f, 'a', 1000);
    await expect.poll(() => sink.seen.length).toBe(61);
    expect(watch.position()).toBe(f.store.revision);
    watch.stop();
  });

  it('that falls behind the writes reads them from history, and then follows again', async () => {
    const f = fixture();
    createPod(f, 'a');
    const from = f.store.revision;
    const sink = new SlowSink(3);
    startWatch(f.registry, pods, { ...options, resourceVersion: String(from) }, sink);
    for (let i = 0; i < 50; i++) change(f, 'a', i);
    expect(sink.seen).toHaveLength(3);
    sink.drain(1000);
    await expect.poll(() => sink.seen.length).toBe(50);
    change(f, 'a', 50);
    expect(sink.seen).toEqual(numbers(from + 1, 51).map((revision) => `MODIFIED a ${revision}`));
  });

  it('gets the objects there are in parts, all of one revision, then what came after', async () => {
    const f = fixture();
    for (let i = 10; i < 30; i++) createPod(f, `pod-${i}`, { spec: { LARGE } });
    const { revision } = f.store;
    const sink = new SlowSink(1);
    const watch = startWatch(
      f.registry,
      pods,
      { ...options, resourceVersion: '', resourceVersionMatch: 'NotOlderThan', sendInitialEvents: true },
      sink,
    );
    expect(sink.seen.length).toBeLessThan(5);
    expect(watch.position()).toBeUndefined();
    deleteObject(f.registry, pods, 'ns', 'pod-29', { dryRun: false, gracePeriodSeconds: 0 });
    createPod(f, 'pod-05');
    createPod(f, 'pod-40');
    while (sink.seen.length < 24) {
      await expect.poll(() => sink.waits || sink.seen.length === 24).toBe(true);
      sink.drain(1);
    }
    expect(sink.seen).toEqual([
      ...numbers(10, 20).map((i) => `ADDED pod-${i} ${revision}`),
      'BOOKMARK',
      `DELETED pod-29 ${revision + 1}`,
      `ADDED pod-05 ${revision + 2}`,
      `ADDED pod-40 ${revision + 3}`,
    ]);
  });

  it('whose history is forgotten meanwhile ends with 410, and one from where it stopped gets 410 too', async () => {
    const f = fixture();
    createPod(f, 'a');
    const from = f.store.revision;
    for (let i = 0; i < 20; i++) change(f, 'a', i);
    const sink = new SlowSink(1);
    const watch = startWatch(f.registry, pods, { ...options, resourceVersion: String(from) }, sink);
    f.store.compact(f.store.revision);
    sink.drain(1000);
    await expect.poll(() => sink.seen.at(-1)).toMatch(/^FAILED StatusError: too old resource version: /);
    const position = watch.position() ?? 0;
    const again = { ...options, resourceVersion: String(position) };
    expect(failureOf(() => startWatch(f.registry, pods, again, sink))).toMatchObject({ code: 410, reason: 'Expired' });
  });

  it('that is stopped while it waits gets no more', async () => {
    const f = fixture();
    createPod(f, 'a');
    const from = f.store.revision;
    for (let i = 0; i < 20; i++) change(f, 'a', i);
    const sink = new SlowSink(1);
    const watch = startWatch(f.registry, pods, { ...options, resourceVersion: String(from) }, sink);
    const { length } = sink.seen;
    watch.stop();
    sink.drain(1000);
    change(f, 'a', 1000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(sink.seen).toHaveLength(length);
  });
});
