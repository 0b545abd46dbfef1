// Fair queuing: who is next, who waits, who is refused.

import { describe, expect, it } from 'vitest';
import { type Entry, QueueSet, type QueueSetConfig } from '../../../../apiserver/flowcontrol/queue-set.ts';
import { type MonotonicMs, monotonicMs } from '../../../../lib/clock.ts';

const QUEUES: QueueSetConfig = { queues: 8, queueLengthLimit: 50 };

function accepted(entry: Entry<string> | string): Entry<string> {
  if (typeof entry === 'string') throw new Error(`refused: ${entry}`);
  return entry;
}

/** Dispatches and finishes one request after the other, each of which takes `ms`; returns the items in their order. */
function serve(set: QueueSet<string>, ms: (item: string) => number, most = Number.POSITIVE_INFINITY): string[] {
  const served: string[] = [];
  let now: MonotonicMs = monotonicMs(0);
  for (let entry = set.dispatch(now); entry !== undefined; entry = set.dispatch(now)) {
    served.push(entry.item);
    now = monotonicMs(now + ms(entry.item));
    set.finish(now, entry);
    if (served.length === most) break;
  }
  return served;
}

const T0 = monotonicMs(0);

describe('who is next', () => {
  it('a flow that comes late does not wait for all that another has sent before it', () => {
    const set = new QueueSet<string>(QUEUES, 1);
    for (let i = 0; i < 40; i++) accepted(set.arrive(T0, [0, 1], 1, 'flood'));
    serve(set, () => 10, 10);
    accepted(set.arrive(T0, [5, 6], 1, 'other'));
    expect(serve(set, () => 10).indexOf('other')).toBeLessThanOrEqual(2);
  });

  it('queues get the same time, not the same number of requests', () => {
    const set = new QueueSet<string>(QUEUES, 1);
    for (let i = 0; i < 40; i++) {
      accepted(set.arrive(T0, [0], 1, 'slow'));
      accepted(set.arrive(T0, [1], 1, 'fast'));
    }
    const first = serve(set, (item) => (item === 'slow' ? 20 : 5), 30);
    const slow = first.filter((item) => item === 'slow').length;
    expect([slow >= 5, slow <= 7]).toEqual([true, true]);
  });

  it('a request of many seats counts as much work', () => {
    const set = new QueueSet<string>(QUEUES, 10);
    for (let i = 0; i < 20; i++) {
      accepted(set.arrive(T0, [0], 5, 'wide'));
      accepted(set.arrive(T0, [1], 1, 'narrow'));
    }
    const first = serve(set, () => 3, 18);
    expect(first.filter((item) => item === 'wide').length).toBe(3);
  });

  it('equal ones take turns', () => {
    const set = new QueueSet<string>(QUEUES, 1);
    for (const round of ['1', '2'])
      for (const queue of [0, 1, 2]) accepted(set.arrive(T0, [queue], 1, `${queue}-${round}`));
    // Round robin begins after the queue that was served last, which at the start is taken to be the first.
    expect(serve(set, () => 3)).toEqual(['1-1', '2-1', '0-1', '1-2', '2-2', '0-2']);
  });

  it('a queue that could not use its share gains nothing by that', () => {
    const set = new QueueSet<string>(QUEUES, 1);
    for (let i = 0; i < 30; i++) accepted(set.arrive(T0, [0], 1, 'steady'));
    serve(set, () => 3, 15);
    for (let i = 0; i < 10; i++) accepted(set.arrive(T0, [1], 1, 'late'));
    expect([5, 6]).toContain(serve(set, () => 3, 10).filter((item) => item === 'late').length);
  });
});

describe('seats', () => {
  it('as many as there are, and more only for a request that is alone', () => {
    const set = new QueueSet<string>(QUEUES, 3);
    accepted(set.arrive(T0, [0], 2, 'a'));
    accepted(set.arrive(T0, [0], 2, 'b'));
    accepted(set.arrive(T0, [0], 5, 'c'));
    const first = set.dispatch(T0);
    expect([first?.item, set.seatsInUse, set.canDispatch(), set.dispatch(T0)]).toEqual(['a', 2, false, undefined]);
    if (first !== undefined) set.finish(T0, first);
    const second = set.dispatch(T0);
    expect([second?.item, set.canDispatch()]).toEqual(['b', false]);
    if (second !== undefined) set.finish(T0, second);
    expect(set.dispatch(T0)?.item).toBe('c');
  });

  it('with more of them, more are dispatched', () => {
    const set = new QueueSet<string>(QUEUES, 1);
    for (const item of ['a', 'b']) accepted(set.arrive(T0, [0], 1, item));
    set.dispatch(T0);
    expect(set.canDispatch()).toBe(false);
    set.configure(QUEUES, 2);
    expect(set.canDispatch()).toBe(true);
  });
});

describe('refusals', () => {
  it('without queues, when there is no seat', () => {
    const set = new QueueSet<string>({ queues: 0, queueLengthLimit: 0 }, 2);
    const first = accepted(set.arrive(T0, [], 1, 'a'));
    expect(first.startedAt).toBe(0);
    accepted(set.arrive(T0, [], 1, 'b'));
    expect(set.arrive(T0, [], 1, 'c')).toBe('concurrency-limit');
    set.finish(T0, first);
    accepted(set.arrive(T0, [], 1, 'c'));
  });

  it('when the queues of the flow are full, and not those of others', () => {
    const set = new QueueSet<string>({ queues: 8, queueLengthLimit: 2 }, 2);
    for (const item of ['a', 'b']) {
      accepted(set.arrive(T0, [0, 1], 1, item));
      set.dispatch(T0);
    }
    for (const item of 'cdef') accepted(set.arrive(T0, [0, 1], 1, item));
    expect(set.arrive(T0, [0, 1], 1, 'g')).toBe('queue-full');
    accepted(set.arrive(T0, [1, 2], 1, 'h'));
  });

  it('those that only wait for their turn do not fill a queue', () => {
    const set = new QueueSet<string>({ queues: 8, queueLengthLimit: 2 }, 10);
    for (let i = 0; i < 14; i++) accepted(set.arrive(T0, [0, 1], 1, 'x'));
    expect(set.arrive(T0, [0, 1], 1, 'y')).toBe('queue-full');
  });

  it('exempt: never', () => {
    const set = new QueueSet<string>({ queues: 'exempt', queueLengthLimit: 0 }, 0);
    for (let i = 0; i < 1000; i++) accepted(set.arrive(T0, [], 1, 'x'));
    expect(set.executing.size).toBe(1000);
  });

  it('one that waits can be taken out, once', () => {
    const set = new QueueSet<string>(QUEUES, 1);
    const a = accepted(set.arrive(T0, [0], 1, 'a'));
    const b = accepted(set.arrive(T0, [0], 1, 'b'));
    expect([set.cancel(a), set.cancel(a), set.dispatch(T0)?.item, set.cancel(b)]).toEqual([true, false, 'b', false]);
    set.finish(T0, b);
    expect([set.isIdle, set.queues]).toEqual([true, []]);
  });
});
