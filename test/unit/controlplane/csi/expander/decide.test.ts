import { describe, expect, it } from 'vitest';
import { decideExpansion, isInfeasible, resizeConditions } from '../../../../../controlplane/csi/expander/decide.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../../../controlplane/storage/objects.ts';
import { claimRef, makeClaim, makeVolume } from '../../../../support/storage-objects.ts';

const BOUND = { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } };
type Status = NonNullable<PersistentVolumeClaim['status']>;

/** A bound claim that asks for `wanted` and has `has`. */
function claimOf(wanted: string, has: string, status: Status = {}, metadata = {}): PersistentVolumeClaim {
  const spec = { volumeName: 'v', resources: { requests: { storage: wanted } } };
  return makeClaim('c', spec, { ...BOUND, ...metadata }, { phase: 'Bound', capacity: { storage: has }, ...status });
}
const volumeOf = (storage: string): PersistentVolume =>
  makeVolume('v', { capacity: { storage }, claimRef: claimRef(makeClaim('c')) }, {}, 'Bound');
const resizing = (status: string): Status => ({ allocatedResourceStatuses: { storage: status } });

describe('whether a volume must grow', () => {
  it.each<[string, PersistentVolumeClaim, PersistentVolume | undefined, object]>([
    ['not when the claim has what it asks for', claimOf('1Gi', '1Gi'), volumeOf('1Gi'), { kind: 'none' }],
    ['when it asks for more', claimOf('2Gi', '1Gi'), volumeOf('1Gi'), { kind: 'expand', bytes: 2n * 1024n ** 3n }],
    ['not when the claim has more than it asks for', claimOf('1Gi', '2Gi'), volumeOf('2Gi'), { kind: 'none' }],
    [
      'not before it is bound',
      makeClaim('c', { volumeName: 'v', resources: { requests: { storage: '2Gi' } } }),
      volumeOf('1Gi'),
      { kind: 'none' },
    ],
    ['not without a volume', claimOf('2Gi', '1Gi'), undefined, { kind: 'none' }],
    ['not on its way out', claimOf('2Gi', '1Gi', {}, { deletionTimestamp: 'x' }), volumeOf('1Gi'), { kind: 'none' }],
    [
      'not for another’s volume',
      claimOf('2Gi', '1Gi'),
      makeVolume('v', { claimRef: claimRef(makeClaim('d')) }),
      { kind: 'none' },
    ],
    ['the rest is the node’s', claimOf('2Gi', '1Gi', resizing('NodeResizePending')), volumeOf('2Gi'), { kind: 'node' }],
    [
      'once more when it is unknown whether the node has to expand',
      claimOf('2Gi', '1Gi', resizing('ControllerResizeInProgress')),
      volumeOf('2Gi'),
      { kind: 'expand', bytes: 2n * 1024n ** 3n },
    ],
  ])('%s', (_what, claim, volume, expected) => {
    expect(decideExpansion(claim, volume)).toEqual(expected);
  });

  it.each([
    ['OUT_OF_RANGE', true],
    ['INVALID_ARGUMENT', true],
    ['NOT_FOUND', true],
    ['INTERNAL', false],
    ['UNAVAILABLE', false],
    ['DEADLINE_EXCEEDED', false],
  ])('%s cannot be helped by asking again: %s', (code, expected) => {
    expect(isInfeasible(code)).toBe(expected);
  });
});

it('a claim that was handed over to the node is not taken back because the cache of volumes is behind', () => {
  const status = { ...resizing('NodeResizePending'), allocatedResources: { storage: '2Gi' } };
  expect(decideExpansion(claimOf('2Gi', '1Gi', status), volumeOf('1Gi'))).toEqual({ kind: 'node' });
  // Asking for still more is a new question.
  expect(decideExpansion(claimOf('3Gi', '1Gi', status), volumeOf('2Gi'))).toEqual({
    kind: 'expand',
    bytes: 3n * 1024n ** 3n,
  });
});

describe('conditions', () => {
  const other = { type: 'ModifyingVolume', status: 'True' };
  const old = { type: 'Resizing', status: 'True', lastTransitionTime: 'then' };
  const claim = claimOf('2Gi', '1Gi', { conditions: [other, old] });
  it('replace those of an earlier step, and leave others alone', () => {
    expect(resizeConditions(claim, { type: 'FileSystemResizePending', message: 'm' }, 'now')).toEqual([
      other,
      { type: 'FileSystemResizePending', status: 'True', lastTransitionTime: 'now', message: 'm' },
    ]);
    expect(resizeConditions(claim, undefined, 'now')).toEqual([other]);
  });
  it('keep the time since when they hold', () => {
    expect(resizeConditions(claim, { type: 'Resizing' }, 'now')).toEqual([other, old]);
  });
});
