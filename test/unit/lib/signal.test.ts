import { expect, test } from 'vitest';
import { Signal } from '../../../lib/signal.ts';

test('every listener gets every value, in the order of subscription', () => {
  const signal = new Signal<number>();
  const seen: string[] = [];
  signal.subscribe((value) => seen.push(`first ${value}`));
  signal.subscribe((value) => seen.push(`second ${value}`));
  signal.emit(1);
  signal.emit(2);
  expect(seen).toEqual(['first 1', 'second 1', 'first 2', 'second 2']);
});

test('the same function can be subscribed twice, and each subscription ends by itself', () => {
  const signal = new Signal();
  let calls = 0;
  const listener = (): void => void calls++;
  const end = signal.subscribe(listener);
  signal.subscribe(listener);
  signal.emit();
  expect(calls).toBe(2);
  end();
  end();
  signal.emit();
  expect(calls).toBe(3);
});

test('one that ends its subscription while it is called does not keep the next from being called', () => {
  const signal = new Signal();
  const seen: string[] = [];
  const end = signal.subscribe(() => {
    seen.push('once');
    end();
  });
  signal.subscribe(() => seen.push('always'));
  signal.emit();
  signal.emit();
  expect(seen).toEqual(['once', 'always', 'always']);
});
