import { describe, expect, test, vi } from 'vitest';
import type { PV } from '../../../../agent/volumes/claims.ts';
import { VolumeGuesses } from '../../../../agent/volumes/volume-guesses.ts';

const volume = (name: string): PV => ({ metadata: { name, uid: name, resourceVersion: '1' } });

describe('the volume of a claim', () => {
  test('is not guessed before the claim was used', () => {
    const read = vi.fn();
    expect(new VolumeGuesses(read).guess('demo/data')).toBeUndefined();
    expect(read).not.toHaveBeenCalled();
  });
  test('is the one that the claim had last', async () => {
    const guesses = new VolumeGuesses(async (name) => volume(name));
    guesses.remember('demo/data', 'pv-1');
    guesses.remember('demo/data', 'pv-2');
    expect(guesses.guess('demo/data')?.name).toBe('pv-2');
    expect(await guesses.guess('demo/data')?.volume).toEqual(volume('pv-2'));
    expect(guesses.guess('other/data')).toBeUndefined();
  });
  test('that cannot be read is no failure: nobody has asked for it yet', async () => {
    const guesses = new VolumeGuesses(() => Promise.reject(new Error('away')));
    guesses.remember('demo/data', 'pv-1');
    expect(await guesses.guess('demo/data')?.volume).toBeUndefined();
  });
  test('of the claim that was used longest ago is forgotten when there are too many', () => {
    const guesses = new VolumeGuesses(async () => undefined);
    for (let i = 0; i < 256; i++) guesses.remember(`demo/${i}`, `pv-${i}`);
    guesses.remember('demo/0', 'pv-0');
    guesses.remember('demo/more', 'pv-more');
    expect(guesses.guess('demo/0')?.name).toBe('pv-0');
    expect(guesses.guess('demo/1')).toBeUndefined();
    expect(guesses.guess('demo/2')?.name).toBe('pv-2');
  });
});
