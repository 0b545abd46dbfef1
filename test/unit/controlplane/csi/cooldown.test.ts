import { describe, expect, it } from 'vitest';
import { Cooldown } from '../../../../controlplane/csi/shared/cooldown.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

describe('Cooldown', () => {
  it('doubles the wait for the same question, lets another through at once, and forgets', async () => {
    const clock = new VirtualClock();
    const cooldown = new Cooldown(clock);
    expect(cooldown.remaining('k', 'grow to 2')).toBe(0);
    cooldown.failed('k', 'grow to 2');
    expect(cooldown.remaining('k', 'grow to 2')).toBe(250);
    expect(cooldown.remaining('k', 'grow to 3')).toBe(0);
    await clock.advance(250);
    expect(cooldown.remaining('k', 'grow to 2')).toBe(0);
    cooldown.failed('k', 'grow to 2');
    expect(cooldown.remaining('k', 'grow to 2')).toBe(500);
    for (let i = 0; i < 20; i++) cooldown.failed('k', 'grow to 2');
    expect(cooldown.remaining('k', 'grow to 2')).toBe(300_000);
    cooldown.forget('k');
    cooldown.failed('k', 'grow to 2');
    expect(cooldown.remaining('k', 'grow to 2')).toBe(250);
  });
});
