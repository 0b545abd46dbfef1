import { describe, expect, it } from 'vitest';
import { WorkQueue } from '../../../client/workqueue.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

function make() {
  const clock = new VirtualClock();
  return { clock, queue: new WorkQueue({ clock }) };
}

describe('WorkQueue', () => {
  it('hands out a key once however often it was added, in the order of its first adding', async () => {
    const { queue } = make();
    for (const key of ['a', 'b', 'a', 'b', 'c']) queue.add(key);
    expect([await queue.take(), await queue.take(), await queue.take(), queue.length]).toEqual(['a', 'b', 'c', 0]);
  });

  it('does not hand out a key that is being worked on; it comes back when that is done', async () => {
    const { queue } = make();
    queue.add('a');
    await queue.take();
    queue.add('a');
    queue.add('a');
    expect(queue.length).toBe(0);
    queue.done('a');
    expect([queue.length, await queue.take()]).toEqual([1, 'a']);
    queue.done('a');
    expect(queue.length).toBe(0);
  });

  it('gives a key to one who waits for it', async () => {
    const { queue } = make();
    const taken = queue.take();
    queue.add('a');
    expect(await taken).toBe('a');
  });

  it('adds later, and the earlier of two times counts', async () => {
    const { clock, queue } = make();
    queue.addAfter('a', 500);
    queue.addAfter('a', 100);
    queue.addAfter('a', 300);
    await clock.advance(99);
    expect(queue.length).toBe(0);
    await clock.advance(1);
    expect(queue.length).toBe(1);
    await clock.advance(1000);
    expect(queue.length).toBe(1);
  });

  it('doubles the delay of a key from 5 ms to 1000 s until it is forgotten', () => {
    const { queue } = make();
    const delays = Array.from({ length: 20 }, () => queue.addRateLimited('a'));
    expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40]);
    expect(delays.at(-1)).toBe(1_000_000);
    expect(queue.addRateLimited('b')).toBe(5);
    queue.forget('a');
    expect(queue.addRateLimited('a')).toBe(5);
  });

  it('lets takers go when it is shut down, and drops what waits for its time', async () => {
    const { clock, queue } = make();
    const waiting = queue.take();
    queue.addAfter('a', 10);
    queue.shutDown();
    queue.add('b');
    expect([await waiting, await queue.take(), clock.timers]).toEqual([undefined, undefined, 0]);
  });

  it('works on different keys at the same time and on one key never twice', async () => {
    const { queue } = make();
    let now = 0;
    let most = 0;
    const perKey = new Map<string, number>();
    const release: (() => void)[] = [];
    const running = queue.run(
      2,
      async (key) => {
        perKey.set(key, (perKey.get(key) ?? 0) + 1);
        most = Math.max(most, ++now);
        await new Promise<void>((resolve) => release.push(resolve));
        now--;
      },
      () => undefined,
    );
    for (const key of ['a', 'b', 'c']) queue.add(key);
    await settle();
    expect([now, perKey.size]).toEqual([2, 2]);
    queue.add('a');
    while (release.length > 0) {
      release.shift()?.();
      await settle();
    }
    expect([most, Object.fromEntries(perKey)]).toEqual([2, { a: 2, b: 1, c: 1 }]);
    queue.shutDown();
    await running;
  });

  it('brings a key back after its back-off when the work fails, and starts afresh after a success', async () => {
    const { clock, queue } = make();
    const delays: number[] = [];
    let failures = 3;
    let runs = 0;
    void queue.run(
      1,
      async () => {
        runs++;
        if (failures-- > 0) throw new Error('no');
      },
      (_key, _error, ms) => delays.push(ms),
    );
    queue.add('a');
    await clock.advance(1000);
    expect([runs, delays]).toEqual([4, [5, 10, 20]]);
    failures = 1;
    queue.add('a');
    await clock.advance(1000);
    expect(delays).toEqual([5, 10, 20, 5]);
  });
});
