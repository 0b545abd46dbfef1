// What conversion webhooks have answered is kept within a limit.

import { describe, expect, it } from 'vitest';
import { ConvertedObjects } from '../../../../apiserver/crd/conversion.ts';

describe('converted objects', () => {
  it('are forgotten when they are too many, the least recently used first', () => {
    const cache = new ConvertedObjects(10);
    cache.set('a', '1234');
    cache.set('b', '1234');
    cache.get('a');
    cache.set('c', '1234');
    expect(['a', 'b', 'c'].map((key) => cache.get(key))).toEqual(['1234', undefined, '1234']);
  });
});
