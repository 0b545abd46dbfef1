// The scheduling queue in virtual time: what is active, backing off, unschedulable or gated, and what moves it.

import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../../client/types.ts';
import type { ClusterEvent } from '../../../../controlplane/scheduler/events.ts';
import { prioritySort } from '../../../../controlplane/scheduler/plugins/priority-sort.ts';
import { Heap } from '../../../../controlplane/scheduler/queue/heap.ts';
import { backoffMs, type QueuedPod, SchedulingQueue } from '../../../../controlplane/scheduler/queue/queue.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { node, pod } from './support.ts';

const NEW_NODE: ClusterEvent = { resource: 'Node', action: 'add', object: node('n') };
const FULL = new Set(['Full']);

function setUp() {
  const clock = new VirtualClock();
  const gated = new Set<string>();
  const queue = new SchedulingQueue({
    clock,
    compare: (a, b) => prioritySort.compare?.(a, b) ?? 0,
    mayEnter: ({ uid }) => !gated.has(uid),
    worthRetrying: (event) => event.resource === 'Node',
    initialBackoffMs: 1000,
    maxBackoffMs: 10_000,
  });
  const take = async (): Promise<QueuedPod> => {
    const taken = await queue.take();
    if (taken === undefined) throw new Error('the queue is closed');
    return taken;
  };
  /** Whether a pod comes without any more time. */
  const next = async (): Promise<string | undefined> =>
    queue.sizes.active + queue.sizes.backoff === 0 ? undefined : (await take()).info.name;
  return { clock, gated, queue, take, next };
}

const withPriority = (name: string, priority: number): Pod => pod(name, { priority });

describe('the active queue', () => {
  it('is sorted by priority, then by age', async () => {
    const { queue, next } = setUp();
    for (const one of [withPriority('a', 0), withPriority('b', 5), withPriority('c', 5)]) queue.set(one);
    expect([await next(), await next(), await next()]).toEqual(['b', 'c', 'a']);
  });

  it('gives a pod to the one who waits, and none once it is closed', async () => {
    const { queue } = setUp();
    const waiting = queue.take();
    queue.set(pod('a'));
    expect((await waiting)?.info.name).toBe('a');
    const idle = queue.take();
    queue.close();
    expect([await idle, await queue.take()]).toEqual([undefined, undefined]);
  });

  it('does not take up again what is in flight', async () => {
    const { queue, take } = setUp();
    queue.set(pod('a'));
    await take();
    queue.set(pod('a'));
    expect(queue.sizes.active).toBe(0);
  });
});

describe('a pod that fits nowhere', () => {
  it('waits for an event that may help, and for its back-off when others are active', async () => {
    const { clock, queue, take, next } = setUp();
    queue.set(pod('a'));
    queue.failed(await take(), FULL);
    queue.onEvent({ resource: 'Namespace', action: 'update', name: 'x' });
    expect(queue.sizes).toMatchObject({ unschedulable: 1, backoff: 0 });
    queue.onEvent(NEW_NODE);
    expect(queue.sizes).toMatchObject({ unschedulable: 0, backoff: 1 });
    queue.set(withPriority('b', -1));
    // Of lower priority, but active.
    expect(await next()).toBe('b');
    queue.set(withPriority('c', -1));
    await clock.advance(1000);
    expect(await next()).toBe('a');
  });

  it('is taken before its back-off ends when nothing else is active', async () => {
    const { queue, take, next } = setUp();
    queue.set(pod('a'));
    queue.failed(await take(), FULL);
    queue.onEvent(NEW_NODE);
    expect(await next()).toBe('a');
  });

  it('goes straight on when the event came during its cycle', async () => {
    const { queue, take, next } = setUp();
    queue.set(pod('a'));
    const taken = await take();
    queue.onEvent(NEW_NODE);
    queue.failed(taken, FULL);
    expect(await next()).toBe('a');
  });

  it('is tried again after five minutes without any event', async () => {
    const { clock, queue, take, next } = setUp();
    queue.set(pod('a'));
    queue.failed(await take(), FULL);
    await clock.advance(299_999);
    expect(await next()).toBe(undefined);
    await clock.advance(1);
    expect(await next()).toBe('a');
  });

  it('is not woken by its own status, but by a change of its spec that may help', async () => {
    const { queue, take } = setUp();
    queue.set(pod('a'));
    queue.failed(await take(), FULL);
    queue.set(pod('a', {}, {}, { status: { phase: 'Pending' } }));
    expect(queue.sizes.unschedulable).toBe(1);
  });

  it('is forgotten when it is deleted', async () => {
    const { queue, take } = setUp();
    queue.set(pod('a'));
    queue.failed(await take(), FULL);
    queue.delete('uid-a');
    queue.onEvent(NEW_NODE);
    expect(queue.sizes).toEqual({ active: 0, backoff: 0, unschedulable: 0, gated: 0 });
  });
});

describe('an error', () => {
  it('has a back-off that is not cut short, and that grows', async () => {
    const { clock, queue, take } = setUp();
    queue.set(pod('a'));
    let pending = take();
    for (const wait of [1000, 2000, 4000, 8000, 10_000]) {
      queue.failed(await pending, new Set());
      let taken = false;
      pending = take().finally(() => {
        taken = true;
      });
      await clock.advance(wait - 1);
      expect(taken).toBe(false);
      await clock.advance(1);
      expect(taken).toBe(true);
    }
  });

  it.each<[number, number]>([
    [0, 0],
    [1, 1000],
    [2, 2000],
    [4, 8000],
    [5, 10_000],
    [500, 10_000],
  ])('number %d waits %d ms', (failures, expected) => {
    expect(backoffMs(failures, 1000, 10_000)).toBe(expected);
  });
});

describe('a gated pod', () => {
  it('enters when its gates are gone, and no event moves it before', async () => {
    const { gated, queue, next } = setUp();
    gated.add('uid-a');
    queue.set(pod('a'));
    queue.onEvent(NEW_NODE);
    expect(queue.sizes).toMatchObject({ active: 0, gated: 1 });
    gated.clear();
    queue.set(pod('a'));
    expect(await next()).toBe('a');
  });

  it('is released by what kept it', async () => {
    const { gated, queue, next } = setUp();
    gated.add('uid-a');
    queue.set(pod('a'));
    gated.clear();
    queue.release('uid-a');
    expect(await next()).toBe('a');
  });
});

describe('Heap', () => {
  it('stays sorted while items come, change and go', () => {
    let seed = 1;
    const random = (): number => {
      seed = (seed * 48271) % 2147483647;
      return seed;
    };
    const heap = new Heap<{ readonly key: string; readonly value: number }>(
      ({ key }) => key,
      (a, b) => a.value - b.value,
    );
    const model = new Map<string, number>();
    for (let turn = 0; turn < 2000; turn++) {
      const key = String(random() % 50);
      if (random() % 3 === 0) expect(heap.remove(key)?.value).toBe(model.get(key) ?? undefined);
      else heap.push({ key, value: random() % 1000 });
      const found = heap.get(key);
      if (found === undefined) model.delete(key);
      else model.set(key, found.value);
    }
    const sorted = [...model.values()].toSorted((a, b) => a - b);
    expect(heap.size).toBe(sorted.length);
    expect(sorted.map(() => heap.pop()?.value)).toEqual(sorted);
  });
});
