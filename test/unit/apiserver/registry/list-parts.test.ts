import { expect, it } from 'vitest';
import { deleteObject } from '../../../../apiserver/registry/delete.ts';
import { type ListOptions, listInParts, listObjects } from '../../../../apiserver/registry/list.ts';
import { patchObject } from '../../../../apiserver/registry/patch.ts';
import type { View } from '../../../../apiserver/registry/registry.ts';
import { parseSelection } from '../../../../apiserver/registry/selectors.ts';
import { Dice } from '../../../../labs/sim/dice.ts';
import { ADMIN, createPod, type Fixture, failureOf, fixture, pods } from '../support.ts';

const PODS = 30;
const SELECTORS = ['', 'half=a'];

function options(labels: string, limit = 0): ListOptions {
  const selection = parseSelection(pods, labels, '');
  return { namespace: 'ns', selection, limit, continueToken: '', resourceVersion: '', resourceVersionMatch: '' };
}

function filled(): Fixture {
  const f = fixture();
  for (let index = 0; index < PODS; index++) createPod(f, `pod-${index}`, { labels: { half: index % 2 ? 'a' : 'b' } });
  return f;
}

const textsOf = (views: readonly View[]): string[] => views.map(({ text }) => text);

function write(f: Fixture, dice: Dice): void {
  const name = `pod-${dice.below(PODS * 2)}`;
  if (f.registry.find(pods, 'ns', name) === undefined) createPod(f, name, { labels: { half: 'a' } });
  else if (dice.below(2) === 0) deleteObject(f.registry, pods, 'ns', name, { dryRun: false });
  else
    patchObject(
      f.registry,
      pods,
      'ns',
      name,
      { metadata: { labels: { half: 'a' } } },
      'application/merge-patch+json',
      ADMIN,
    );
}

it('a list in parts is what it was when it began, whatever is written between them', () => {
  const dice = new Dice(3);
  for (let run = 0; run < 60; run++) {
    const f = filled();
    const of = options(SELECTORS[run % 2] ?? '', [0, 1, 7, 100][run % 4]);
    const expected = listObjects(f.registry, pods, of);
    const reading = listInParts(f.registry, pods, of, dice.below(3000));
    const found: string[] = [];
    for (let step = reading.next(); ; step = reading.next()) {
      found.push(...textsOf(step.done === true ? step.value.items : step.value));
      if (step.done === true) {
        const { items: _items, ...end } = step.value;
        const { items, ...expectedEnd } = expected;
        expect([found, end]).toEqual([textsOf(items), expectedEnd]);
        break;
      }
      for (let count = dice.below(4); count > 0; count--) write(f, dice);
    }
  }
});

it('a part is about as large as it may be', () => {
  const f = filled();
  const largest = Math.max(...listObjects(f.registry, pods, options('')).items.map(({ text }) => text.length));
  const parts: number[] = [];
  const reading = listInParts(f.registry, pods, options(''), 2000);
  for (let step = reading.next(); step.done !== true; step = reading.next()) {
    parts.push(textsOf(step.value).join('').length);
  }
  expect(parts.length).toBeGreaterThan(2);
  expect(Math.max(...parts)).toBeLessThanOrEqual(2000 + largest);
});

it('is 410 when the history that it needs is gone meanwhile', () => {
  const f = filled();
  const reading = listInParts(f.registry, pods, options(''), 1);
  reading.next();
  createPod(f, 'late');
  f.store.compact(f.store.revision);
  expect(failureOf(() => reading.next())).toMatchObject({ code: 410, reason: 'Expired' });
});
