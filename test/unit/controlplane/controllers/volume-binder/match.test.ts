import { describe, expect, it } from 'vitest';
import type { Node } from '../../../../../client/types.ts';
import { findVolume, matchesLabels, mismatch } from '../../../../../controlplane/controllers/volume-binder/match.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../../../controlplane/storage/objects.ts';
import { claimRef, makeClaim, makeVolume } from '../../../../support/storage-objects.ts';

const node = (name: string): Node => ({
  metadata: { name, uid: name, resourceVersion: '1', labels: { host: name } },
});
const onlyOn = (name: string) => ({
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'host', operator: 'In', values: [name] }] }] },
});
const size = (storage: string) => ({ capacity: { storage } });
const asking = (storage: string) => ({ resources: { requests: { storage } } });

describe('findVolume', () => {
  const claim = makeClaim('data');
  const other = makeClaim('other');
  const cases: readonly [string, PersistentVolumeClaim, readonly PersistentVolume[], string | undefined][] = [
    ['takes one that fits', claim, [makeVolume('a')], 'a'],
    [
      'takes the smallest that is large enough',
      makeClaim('c', asking('2Gi')),
      [makeVolume('a', size('9Gi')), makeVolume('b', size('1Gi')), makeVolume('c', size('3Gi'))],
      'c',
    ],
    ['takes the first by name of equals', claim, [makeVolume('b'), makeVolume('a')], 'a'],
    [
      'takes the one with the fewest modes first, even if it is larger',
      claim,
      [makeVolume('a', { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }), makeVolume('b', size('9Gi'))],
      'b',
    ],
    [
      'wants all of the claim’s modes',
      makeClaim('c', { accessModes: ['ReadWriteOnce', 'ReadOnlyMany'] }),
      [makeVolume('a')],
      undefined,
    ],
    ['wants the same class', claim, [makeVolume('a', { storageClassName: 'slow' })], undefined],
    [
      'knows the class in the old annotation',
      makeClaim('c', {}, { annotations: { 'volume.beta.kubernetes.io/storage-class': 'slow' } }),
      [makeVolume('a', { storageClassName: 'slow' })],
      'a',
    ],
    [
      'gives a claim of no class a volume of no class',
      makeClaim('c', { storageClassName: '' }),
      [makeVolume('a'), makeVolume('b', { storageClassName: '' })],
      'b',
    ],
    ['wants the same volume mode', makeClaim('c', { volumeMode: 'Block' }), [makeVolume('a')], undefined],
    [
      'wants what the selector says',
      makeClaim('c', { selector: { matchLabels: { disk: 'ssd' } } }),
      [makeVolume('a'), makeVolume('b', {}, { labels: { disk: 'ssd' } })],
      'b',
    ],
    ['leaves a claimed one alone', claim, [makeVolume('a', { claimRef: claimRef(other) })], undefined],
    ['leaves a released one alone', claim, [makeVolume('a', {}, {}, 'Released')], undefined],
    [
      'leaves one alone that is going away',
      claim,
      [makeVolume('a', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' })],
      undefined,
    ],
    [
      'prefers the one that was set aside for it to a smaller one',
      claim,
      [makeVolume('a'), makeVolume('b', { ...size('5Gi'), claimRef: { name: 'data', namespace: 'demo' } })],
      'b',
    ],
    [
      'does not take one set aside for an earlier claim of its name',
      claim,
      [makeVolume('a', { claimRef: { ...claimRef(claim), uid: 'before' } })],
      undefined,
    ],
    [
      'does not take one set aside for it that is too small',
      makeClaim('data', asking('2Gi')),
      [makeVolume('a', { claimRef: { name: 'data', namespace: 'demo' } })],
      undefined,
    ],
    [
      'takes one with another attributes class for none',
      makeClaim('c', { volumeAttributesClassName: 'gold' }),
      [makeVolume('a')],
      undefined,
    ],
  ];
  it.each(cases)('%s', (_what, wanting, volumes, expected) => {
    expect(findVolume(wanting, volumes)?.metadata.name).toBe(expected);
  });

  it('for a claim that waits takes only what was set aside for it', () => {
    const aside = makeVolume('b', { claimRef: claimRef(claim) });
    expect(findVolume(claim, [makeVolume('a')], { delayed: true })).toBeUndefined();
    expect(findVolume(claim, [makeVolume('a'), aside], { delayed: true })?.metadata.name).toBe('b');
  });

  it('for a node takes only what that node reaches, and nothing twice', () => {
    const volumes = [
      makeVolume('a', { nodeAffinity: onlyOn('n1') }),
      makeVolume('b', { nodeAffinity: onlyOn('n2') }),
      makeVolume('c'),
    ];
    expect(findVolume(claim, volumes, { node: node('n2') })?.metadata.name).toBe('b');
    expect(findVolume(claim, volumes, { node: node('n2'), taken: new Set(['b']) })?.metadata.name).toBe('c');
    expect(findVolume(claim, volumes.slice(0, 1), { node: node('n2') })).toBeUndefined();
  });
});

describe('mismatch', () => {
  it.each<[string, PersistentVolumeClaim, PersistentVolume, string | undefined]>([
    ['nothing', makeClaim('c'), makeVolume('v'), undefined],
    ['size', makeClaim('c', asking('2Gi')), makeVolume('v'), 'requested PV is too small'],
    ['class', makeClaim('c'), makeVolume('v', { storageClassName: 'x' }), 'storageClassName does not match'],
    ['mode', makeClaim('c', { volumeMode: 'Block' }), makeVolume('v'), 'incompatible volumeMode'],
    ['access', makeClaim('c', { accessModes: ['ReadWriteMany'] }), makeVolume('v'), 'incompatible accessMode'],
  ])('of %s', (_what, claim, volume, expected) => {
    expect(mismatch(volume, claim)).toBe(expected);
  });
});

describe('matchesLabels', () => {
  it.each([
    [{}, {}, true],
    [{ matchLabels: { a: '1' } }, { a: '1', b: '2' }, true],
    [{ matchLabels: { a: '1' } }, { a: '2' }, false],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['1', '2'] }] }, { a: '2' }, true],
    [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }, {}, true],
    [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }, {}, false],
    [{ matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }, {}, true],
    [{ matchExpressions: [{ key: 'a', operator: 'Perhaps' }] }, { a: '1' }, false],
  ])('%j on %j is %s', (selector, labels, expected) => {
    expect(matchesLabels(selector, labels)).toBe(expected);
  });
});
