// What a lab may remove, given its marker and what stands under its root.

import { describe, expect, it, test } from 'vitest';
import {
  decodeMarker,
  encodeMarker,
  type LabMarker,
  type MarkerEntry,
  type MarkerReading,
  type RootIdentity,
  sameRoot,
} from '../../../../cli/lab/marker.ts';
import {
  classifyRoot,
  type ExistingFile,
  inArea,
  isTemporaryOf,
  planRemoval,
  type RootFacts,
  unprovenMessage,
} from '../../../../cli/lab/ownership.ts';

const identity: RootIdentity = { device: '1', inode: '2', born: '3', bootId: 'boot' };
const dir = (inode: string, empty = false): ExistingFile => ({
  kind: 'directory',
  identity: { inode, born: '1' },
  empty,
});
const made = (path: string, inode?: string): MarkerEntry => ({
  kind: 'directory',
  path,
  ...(inode === undefined ? {} : { identity: { inode, born: '1' } }),
});
const marker = (...entries: readonly MarkerEntry[]): LabMarker => ({
  program: 'nodelet',
  format: 1,
  purpose: 'lab',
  id: 'id',
  root: '/lab',
  identity,
  made: entries,
});
const facts = (more: Partial<RootFacts>): RootFacts => ({
  root: '/lab',
  identity,
  marker: { kind: 'none' },
  existing: new Map(),
  mounts: [],
  ...more,
});
const valid = (written: LabMarker): MarkerReading => ({ kind: 'valid', marker: written });

describe('a marker on disk', () => {
  const whole = encodeMarker(marker(made('/lab/pki', '7'), { kind: 'cgroup', path: '/nodelet-1' }));

  it('is read as it was written', () => {
    expect(decodeMarker(whole)).toEqual(valid(marker(made('/lab/pki', '7'), { kind: 'cgroup', path: '/nodelet-1' })));
  });

  it('is not valid with any one character changed, or cut off anywhere', () => {
    for (let at = 0; at < whole.length; at++) {
      // White space between JSON's tokens says nothing.
      if (/\s/.test(whole[at] ?? '')) continue;
      const changed = `${whole.slice(0, at)}${whole[at] === '0' ? '1' : '0'}${whole.slice(at + 1)}`;
      expect(decodeMarker(changed).kind, changed).toBe('damaged');
      expect(decodeMarker(whole.slice(0, at)).kind).toBe('damaged');
    }
  });

  it.each([
    ['', 'it is not JSON'],
    ['[]', 'it has no marker'],
    ['{"marker":[]}', 'it has no marker'],
    ['{"marker":{"program":"other"}}', 'another program wrote it'],
    ['{"marker":{"program":"nodelet","format":2}}', 'its format is 2, this nodelet writes 1'],
    ['{"marker":{"program":"nodelet","format":1},"checksum":"sha256:0"}', 'its checksum does not match'],
  ])('%s is damaged: %s', (text, why) => expect(decodeMarker(text)).toEqual({ kind: 'damaged', why }));
});

test.each<[string, Partial<RootIdentity>, boolean]>([
  ['the same directory', {}, true],
  ['another inode', { inode: '9' }, false],
  ['the inode used again', { born: '9' }, false],
  ['another device', { device: '9' }, false],
  ['another device after a boot, which numbers devices anew', { device: '9', bootId: 'later' }, true],
  ['another inode after a boot', { inode: '9', bootId: 'later' }, false],
])('a marker for the root %s', (_, change, same) => expect(sameRoot(identity, { ...identity, ...change })).toBe(same));

describe('whose a root is', () => {
  const kubelet = new Map([['/lab/kubelet', dir('7')]]);
  test.each<[string, Partial<RootFacts>, string, string | undefined]>([
    ['nothing and no marker', {}, 'nothing', undefined],
    ['no directory at all', { identity: undefined }, 'nothing', undefined],
    ['a lab’s names and no marker', { existing: kubelet }, 'unproven', '/lab holds kubelet, and no marker'],
    ['a damaged marker', { marker: { kind: 'damaged', why: 'it is not JSON' } }, 'unproven', 'it is not JSON'],
    ['its marker', { marker: valid(marker()), existing: kubelet }, 'proven', undefined],
    [
      'its marker in another directory',
      { marker: valid(marker()), identity: { ...identity, inode: '9' } },
      'unproven',
      'written for /lab',
    ],
    [
      'a marker of another path',
      { marker: valid({ ...marker(), root: '/other' }) },
      'unproven',
      'move it back to /other',
    ],
    [
      'what an older nodelet wrote',
      { existing: new Map([['/lab/lab.json', { kind: 'file' }]]) },
      'unproven',
      'older nodelet',
    ],
  ])('%s', (_, more, kind, words) => {
    const ownership = classifyRoot(facts(more), '/lab/lab.json');
    expect(ownership.kind).toBe(kind);
    if (ownership.kind === 'unproven') expect(unprovenMessage('/lab', ownership)).toContain(words);
  });
});

describe('what is removed', () => {
  const areas: readonly MarkerEntry[] = [{ kind: 'mounts', path: '/lab/kubelet/pods/*/volumes' }];
  const list = marker(
    made('/lab/kubelet', '7'),
    made('/lab/pki', '8'),
    { kind: 'file', path: '/lab/kubeconfig' },
    ...areas,
  );
  const all = new Map<string, ExistingFile>([
    ['/lab/kubelet', dir('7')],
    ['/lab/pki', dir('8')],
    ['/lab/kubeconfig', { kind: 'file' }],
  ]);
  const plan = (more: Partial<RootFacts>, keep: readonly string[] = []) =>
    planRemoval(list, facts({ existing: all, ...more }), (path) => keep.includes(path));

  it('is what is on the list', () => {
    expect(plan({})).toEqual({
      directories: ['/lab/kubelet', '/lab/pki'],
      files: ['/lab/kubeconfig'],
      gone: [],
      left: [],
    });
  });

  it('is never what is not, though a lab uses the name', () => {
    const more = new Map([...all, ['/lab/csi', dir('9')] as const]);
    expect(plan({ existing: more }).directories).toEqual(['/lab/kubelet', '/lab/pki']);
  });

  it('is not what is kept', () => expect(plan({}, ['/lab/pki']).directories).toEqual(['/lab/kubelet']));

  test.each<[string, ExistingFile | undefined, 'directories' | 'gone' | 'left']>([
    ['the directory that the lab made', dir('8'), 'directories'],
    ['another directory', dir('9'), 'left'],
    ['another empty directory', dir('9', true), 'left'],
    ['a link', { kind: 'other' }, 'left'],
    ['a file', { kind: 'file' }, 'left'],
    ['nothing', undefined, 'gone'],
  ])('where the list names a directory: %s', (_, there, where) => {
    const existing = new Map(all);
    existing.delete('/lab/pki');
    if (there !== undefined) existing.set('/lab/pki', there);
    const planned = plan({ existing });
    expect(planned[where].some((each) => each.includes('/lab/pki'))).toBe(true);
    const others = (['directories', 'gone', 'left'] as const).filter((each) => each !== where);
    for (const other of others) expect(planned[other].some((each) => each.includes('/lab/pki'))).toBe(false);
  });

  test.each([
    ['made and not written down as made', dir('9', true), ['/lab/pki']],
    ['written down, and somebody’s by now', dir('9'), []],
  ])('a directory on the list that was %s', (_, there, directories) => {
    const existing = new Map([['/lab/pki', there]]);
    expect(planRemoval(marker(made('/lab/pki')), facts({ existing }), () => false).directories).toEqual(directories);
  });

  test.each([
    ['a volume of a pod', '/lab/kubelet/pods/u/volumes/kubernetes.io~secret/a', true],
    ['the agent’s root bound onto itself', '/lab/kubelet', true],
    ['beside the pods’ volumes', '/lab/kubelet/mine', false],
    ['in a pod’s directory, at no volume', '/lab/kubelet/pods/u', false],
    ['outside the lab’s directories', '/lab/disk', true],
    ['the root itself', '/lab', true],
  ])('with a mount %s', (_, mount, removed) => {
    const planned = plan({ mounts: [mount] });
    expect(planned.directories.includes('/lab/kubelet')).toBe(removed);
    expect(planned.left).toHaveLength(removed ? 0 : 1);
  });

  it('is not a directory with another file system mounted over it', () => {
    const existing = new Map([...all, ['/lab/pki', dir('1')] as const]);
    expect(plan({ existing, mounts: ['/lab/pki'] })).toMatchObject({
      directories: ['/lab/kubelet'],
      left: ['something is mounted on /lab/pki, not by the lab: it stays, and what it is in'],
    });
  });
});

test.each([
  ['/a/b', '/a/b', true],
  ['/a/b/c', '/a/b', true],
  ['/a/bc', '/a/b', false],
  ['/a/x/c/d', '/a/*/c', true],
  ['/a/x', '/a/*/c', false],
])('%s in %s: %s', (path, area, expected) => expect(inArea(path, area)).toBe(expected));

test.each([
  ['kubeconfig.tmp-12-0', true],
  ['kubeconfig.tmp-12', false],
  ['kubeconfig.tmp-mine', false],
  ['kubeconfig', false],
  ['other.tmp-12-0', false],
])('%s as a half-written kubeconfig: %s', (name, expected) =>
  expect(isTemporaryOf(name, '/lab/kubeconfig')).toBe(expected),
);
