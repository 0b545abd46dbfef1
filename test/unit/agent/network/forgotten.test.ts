import { expect, it } from 'vitest';
import { isForgotten, SANDBOX_CREATION_MS } from '../../../../agent/network/forgotten.ts';
import { monotonicMs } from '../../../../lib/clock.ts';

const LISTED_AT = 1_000_000;

it.each<[string, { listed?: boolean; since: number; hasNamespace: boolean }, boolean]>([
  ['listed, old, with its namespace', { listed: true, since: 0, hasNamespace: true }, false],
  ['listed, its namespace gone (a reboot)', { listed: true, since: 0, hasNamespace: false }, false],
  ['attached after the list was requested', { since: LISTED_AT + 1, hasNamespace: true }, false],
  ['attached with the request', { since: LISTED_AT, hasNamespace: true }, false],
  ['as old as RunPodSandbox may become', { since: LISTED_AT - SANDBOX_CREATION_MS, hasNamespace: true }, false],
  ['older than that', { since: LISTED_AT - SANDBOX_CREATION_MS - 1, hasNamespace: true }, true],
  ['young, its namespace gone', { since: LISTED_AT - 1, hasNamespace: false }, true],
  ['attached after the list, its namespace gone already', { since: LISTED_AT + 1, hasNamespace: false }, true],
])('an attachment that is %s', (_, { listed = false, since, hasNamespace }, forgotten) => {
  const ids = new Set(listed ? ['a', 'other'] : ['other']);
  const facts = { sandboxId: 'a', since: monotonicMs(since), hasNamespace };
  expect(isForgotten(facts, { ids, requestedAt: monotonicMs(LISTED_AT) })).toBe(forgotten);
});
