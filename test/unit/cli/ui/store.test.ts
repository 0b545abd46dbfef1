import { describe, expect, test } from 'vitest';
import { UiStore } from '../../../../cli/ui/store.ts';
import { span, T0, version } from '../timeline/support.ts';

function ids(store: UiStore): number[] {
  return store.evidence().spans.map(({ id }) => id);
}

describe('spans', () => {
  const first = span(1, 'cri', 'RunPodSandbox', 0, 10);
  const second = span(2, 'cri', 'CreateContainer', 10, 20, { parent: 1, links: [1] });

  test('that a new connection sends again are known', () => {
    const store = new UiStore();
    store.beginConnection();
    for (const each of [first, second]) store.addSpan(each);
    store.beginConnection();
    for (const each of [first, second, span(3, 'cri', 'StartContainer', 20, 30)]) store.addSpan(each);
    expect(ids(store)).toEqual([1, 2, 3]);
  });

  test('of an agent that was started again go on with the numbers', () => {
    const store = new UiStore();
    store.beginConnection();
    for (const each of [first, second]) store.addSpan(each);
    store.beginConnection();
    store.addSpan(span(1, 'cri', 'ListContainers', 1_000, 1_010));
    store.addSpan(span(2, 'cri', 'RemoveContainer', 1_010, 1_020, { parent: 1, root: 1, links: [1] }));
    expect(ids(store)).toEqual([1, 2, 3, 4]);
    expect(store.evidence().spans[3]).toMatchObject({ parent: 3, root: 3, links: [3] });
  });

  test('that end late have a lower number, and are of the same agent', () => {
    const store = new UiStore();
    store.beginConnection();
    for (const each of [second, first]) store.addSpan(each);
    expect(ids(store)).toEqual([2, 1]);
  });

  test('are as many as fit', () => {
    const store = new UiStore();
    store.beginConnection();
    for (let id = 1; id <= 60_000; id++) store.addSpan(span(id, 'probe', 'http', id, id + 1));
    const kept = ids(store);
    expect(kept.length).toBeGreaterThanOrEqual(20_000);
    expect(kept.length).toBeLessThanOrEqual(25_000);
    expect(kept.at(-1)).toBe(60_000);
  });
});

describe('rows', () => {
  test('a pod has its state, its time to Ready, and the calls that failed', () => {
    const store = new UiStore();
    store.addSpan(span(1, 'cri', 'RunPodSandbox', 0, 10, { outcome: 'error', error: 'no address' }));
    for (const [resourceVersion, at, fields] of [
      ['1', 5, {}],
      ['2', 10, { node: 'n1' }],
      ['3', 255, { node: 'n1', phase: 'Running', ready: true }],
    ] as const) {
      const { object } = version(resourceVersion, at, fields);
      store.addVersion(object, version(resourceVersion, at).at);
    }
    expect(store.rows()).toEqual([
      {
        name: 'demo/web',
        uid: 'u-1',
        phase: 'Running',
        ready: true,
        deleted: false,
        restarts: 0,
        startMs: 250,
        uncertainMs: 0,
        failed: 1,
        last: new Date(T0 + 10).toISOString().slice(11, 19),
      },
    ]);
  });

  test('a pod that no API server has is known by its spans; a deleted one stays', () => {
    const store = new UiStore();
    store.addSpan(span(1, 'cri', 'RunPodSandbox', 0, 10));
    expect(store.rows()).toMatchObject([{ name: 'demo/web', phase: '', startMs: undefined }]);
    const { object } = version('1', undefined, { node: 'n1', phase: 'Running', ready: true });
    store.addVersion(object, undefined);
    store.removePod(object);
    expect(store.rows()).toMatchObject([{ name: 'demo/web', deleted: true }]);
  });

  test('of a pod in a crash loop the first versions and the newest are kept', () => {
    const store = new UiStore();
    for (let n = 1; n <= 2_000; n++) store.addVersion(version(String(n), n).object, version(String(n), n).at);
    const { objects } = store.evidence();
    expect(objects.length).toBeLessThanOrEqual(300);
    expect(objects[0]?.object.metadata.resourceVersion).toBe('1');
    expect(objects.at(-1)?.object.metadata.resourceVersion).toBe('2000');
  });

  test('a problem is there until it is over', () => {
    const store = new UiStore();
    let changes = 0;
    store.changed.subscribe(() => changes++);
    store.setProblem('agent', 'no agent');
    store.setProblem('agent', 'no agent');
    expect(store.evidence().problems).toEqual(['no agent']);
    store.setProblem('agent', undefined);
    expect(store.problems).toEqual([]);
    expect(changes).toBe(2);
  });
});
