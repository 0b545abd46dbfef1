import { describe, expect, test } from 'vitest';
import {
  byReference,
  containerState,
  filterImages,
  fromLabel,
  newestFirst,
  pattern,
  repoDigest,
  repoTags,
  sandboxState,
  shortId,
} from '../../../../cli/crictl/filters.ts';
import { imagesToRemove, parseCreds } from '../../../../cli/crictl/images.ts';

const ALL = { latest: false, last: 0 };

test.each([
  ['', 'anything', true],
  ['^we', 'web', true],
  ['(?i)WEB', 'web', true],
  ['WEB', 'web', false],
])('the pattern %j and %j', (source, text, matches) => {
  expect(pattern('name', source).test(text)).toBe(matches);
});

test('a pattern that is none is refused', () => {
  expect(() => pattern('name', '(')).toThrow('--name "(" is no regular expression');
});

test('the newest come first, as many as are wanted', () => {
  // Two numbers that are equal as doubles.
  const items = ['1795365580284978180', '1795365580284978181', '5'].map((created_at) => ({ created_at }));
  const times = (limit: { latest: boolean; last: number }) => newestFirst(items, limit).map((item) => item.created_at);
  expect(times(ALL)).toEqual(['1795365580284978181', '1795365580284978180', '5']);
  expect(times({ latest: true, last: 0 })).toEqual(['1795365580284978181']);
  expect(times({ latest: true, last: 2 })).toHaveLength(2);
  expect(times({ latest: false, last: 9 })).toHaveLength(3);
});

test.each([
  ['', false, ALL, 'CONTAINER_RUNNING'],
  ['', true, ALL, undefined],
  ['Exited', false, ALL, 'CONTAINER_EXITED'],
  ['created', true, ALL, 'CONTAINER_CREATED'],
  ['exited', false, { latest: true, last: 0 }, undefined],
  ['', false, { latest: false, last: 1 }, undefined],
])('state %j, all %j, %j asks for %j', (state, all, limit, wanted) => {
  expect(containerState(state, all, limit)).toBe(wanted);
});

test('states that are none are refused', () => {
  expect(() => containerState('up', true, ALL)).toThrow('--state should be one of created, running, exited or unknown');
  expect(() => sandboxState('up')).toThrow('--state should be ready or notready');
  expect([sandboxState(''), sandboxState('Ready'), sandboxState('NOTREADY')]).toEqual([
    undefined,
    'SANDBOX_READY',
    'SANDBOX_NOTREADY',
  ]);
});

test('labels are looked up by own names only', () => {
  expect([fromLabel({ a: 'b' }, 'a'), fromLabel({}, 'constructor')]).toEqual(['b', 'unknown']);
});

test.each([
  ['sha256:0123456789abcdef', 'sha256:', '0123456789abc'],
  ['0123456789abcdef', '', '0123456789abc'],
  ['<none>', 'sha256:', '<none>'],
])('%s is short as %s', (id, prefix, short) => {
  expect(shortId(id, prefix)).toBe(short);
});

describe('images', () => {
  const image = (id: string, tags: readonly string[], digests: readonly string[] = []) => ({
    id: `sha256:${id}`,
    repo_tags: tags,
    repo_digests: digests,
  });
  const images = [
    image('aa', ['r/a:1', 'r/a:2'], ['r/a@sha256:01']),
    image('bb', ['r/b:1'], ['r/b@sha256:02']),
    image('cc', [], ['r/c@sha256:03']),
    image('dd', []),
  ];
  const ids = (list: readonly { id: string }[]): string => list.map(({ id }) => id.slice(-2)).join(' ');

  test('names come from tags, else from digests', () => {
    expect(images.map(repoTags)).toEqual([
      [
        ['r/a', '1'],
        ['r/a', '2'],
      ],
      [['r/b', '1']],
      [['r/c', '<none>']],
      [['<none>', '<none>']],
    ]);
    expect(repoTags(image('x', ['localhost:5000/a:1', 'bad', '<none>:2'], ['r/x@sha256:1']))).toEqual([
      ['localhost:5000/a', '1'],
      ['errorRepoTag', 'errorRepoTag'],
      ['r/x', '2'],
    ]);
    expect(repoDigest(image('x', [], ['bad']))).toEqual(['errorName', 'errorRepoDigest']);
  });

  test('are sorted by tag, digest, id', () => {
    expect(ids(images.toReversed().sort(byReference))).toBe('aa bb cc dd');
  });

  test.each([
    [['dangling=true'], 'cc dd'],
    [['dangling=false'], 'aa bb'],
    [['reference=^r/[ab]$'], 'aa bb'],
    [['since=r/b:1'], 'aa'],
    [['before=r/b:1'], 'cc dd'],
    [['before=bb'], 'cc dd'],
    [['since=r/c@sha256:03'], 'aa bb'],
    [['since=r/none:1'], 'aa bb cc dd'],
    [['dangling=false', 'reference=b'], 'bb'],
  ])('%j leaves %j', (conditions, left) => {
    expect(ids(filterImages(images, conditions))).toBe(left);
  });

  test.each(['foo=bar', 'dangling=maybe', 'reference'])('%j is refused', (condition) => {
    expect(() => filterImages(images, [condition])).toThrow(`unknown filter flag: ${condition}`);
  });

  test.each([
    [['x'], [], false, [], ['x']],
    [[], ['a', 'p'], false, [], ['a', 'p']],
    [[], ['a', 'p', 'u'], true, ['u'], ['a']],
    [['a'], ['a'], false, [], ['a']],
  ])('rmi %j of %j, prune %j, used %j: %j', (named, there, prune, used, removed) => {
    const found = there.map((id) => ({ id, pinned: id === 'p' }));
    expect(imagesToRemove(named, found, prune, new Set(used))).toEqual(removed);
  });

  test.each([
    ['user:pass:word', { username: 'user', password: 'pass:word' }],
    ['user', { username: 'user', password: '' }],
  ])('credentials %j', (creds, parsed) => {
    expect(parseCreds(creds)).toEqual(parsed);
  });

  test('credentials without a user are refused', () => {
    expect(() => parseCreds(':x')).toThrow("username can't be empty");
  });
});
