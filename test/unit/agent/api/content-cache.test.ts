import { describe, expect, test } from 'vitest';
import { ContentCache, contentBytes } from '../../../../agent/api/content-cache.ts';
import { ManualClock } from '../volumes/support.ts';

function fixture() {
  const clock = new ManualClock();
  return { clock, cache: new ContentCache<string>({ clock, totalBytes: 100, bigBytes: 50, bigStaysMs: 1000 }) };
}

describe('the cache of contents', () => {
  test('keeps what fits; the least recently used goes first', () => {
    const { cache } = fixture();
    for (const key of ['a', 'b', 'c']) cache.set(key, key, 33);
    expect(cache.get('a')).toBe('a');
    cache.set('d', 'd', 33);
    expect(['a', 'b', 'c', 'd'].map((key) => cache.get(key))).toEqual(['a', undefined, 'c', 'd']);
    expect(cache.bytes).toBe(99);
  });

  test('counts a key once, and never keeps what is larger than all of it', () => {
    const { cache, clock } = fixture();
    cache.set('a', 'old', 30);
    cache.set('a', 'new', 40);
    expect([cache.bytes, cache.get('a')]).toEqual([40, 'new']);
    cache.set('huge', 'huge', 101);
    expect([cache.get('huge'), cache.bytes, clock.pending]).toEqual([undefined, 0, 0]);
  });

  test('a big one goes a while after its last reader; a small one stays', () => {
    const { cache, clock } = fixture();
    cache.set('big', 'B', 50);
    cache.set('small', 's', 49);
    clock.advance(999);
    expect(cache.get('big')).toBe('B');
    clock.advance(999);
    expect(cache.get('big')).toBe('B');
    clock.advance(1000);
    expect([cache.get('big'), cache.get('small'), cache.bytes]).toEqual([undefined, 's', 49]);
  });
});

test('the size of an object is that of its texts', () => {
  expect(contentBytes({ data: { a: 'bcd' }, binaryData: { e: 'Zg==' } })).toBe(9);
  expect(contentBytes({})).toBe(0);
});
