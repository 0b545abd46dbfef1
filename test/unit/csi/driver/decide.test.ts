import { describe, expect, it } from 'vitest';
import type { Capability } from '../../../../csi/driver/capability.ts';
import {
  checkDeletable,
  checkExisting,
  checkExistingSnapshot,
  checkSource,
  decideAttach,
  paginate,
} from '../../../../csi/driver/decide-controller.ts';
import {
  checkAttached,
  checkNodeExpansion,
  decidePublish,
  decideStage,
  decideUnstage,
  isReadOnly,
  placeOf,
  requireStaged,
} from '../../../../csi/driver/decide-node.ts';
import { ATTACHMENT_KEY, attachmentOf } from '../../../../csi/driver/names.ts';
import type { NodeRecord, VolumeRecord } from '../../../../csi/driver/records.ts';
import { epochMs } from '../../../../lib/clock.ts';

const MiB = 1024 * 1024;
const cap = (mode: Capability['mode'] = 'SINGLE_NODE_WRITER', more: object = {}): Capability => ({
  type: 'mount',
  mode,
  fsType: 'ext4',
  flags: [],
  group: '',
  ...more,
});
const volume = (more: Partial<VolumeRecord> = {}): VolumeRecord => ({
  id: 'vol-1',
  name: 'one',
  capacityBytes: 64 * MiB,
  capabilities: [cap('MULTI_NODE_MULTI_WRITER')],
  allocation: 'sparse',
  ...more,
});
const refusal = (code: string, words: RegExp = /./) =>
  expect.objectContaining({ code, message: expect.stringMatching(words) });

describe('a CreateVolume whose name is taken', () => {
  const request = {
    name: 'one',
    range: undefined,
    capabilities: [cap()],
    allocation: 'sparse',
    source: undefined,
    accessible: true,
  } as const;
  it('is answered with the volume when that fits', () => expect(() => checkExisting(volume(), request)).not.toThrow());
  it.each([
    ['another capacity', { range: { required: 65 * MiB, limit: 0 } }, /capacity_range/],
    ['another allocation', { allocation: 'full' as const }, /parameters/],
    ['other nodes', { accessible: false }, /accessibility/],
    ['a source', { source: { type: 'snapshot' as const, id: 'snap-1' } }, /content_source/],
    ['another filesystem', { capabilities: [cap('SINGLE_NODE_WRITER', { fsType: 'xfs' })] }, /xfs/],
  ])('for %s is ALREADY_EXISTS', (_what, more, words) => {
    expect(() => checkExisting(volume(), { ...request, ...more })).toThrow(refusal('ALREADY_EXISTS', words));
  });
});

it('a source with a filesystem makes volumes of that filesystem, or raw ones', () => {
  expect(() => checkSource({ filesystem: { type: 'ext4' } }, [cap()])).not.toThrow();
  expect(() =>
    checkSource({ filesystem: { type: 'xfs' } }, [{ type: 'block', mode: 'SINGLE_NODE_WRITER' }]),
  ).not.toThrow();
  expect(() => checkSource({ filesystem: { type: 'xfs' } }, [cap()])).toThrow(refusal('INVALID_ARGUMENT', /holds xfs/));
});

describe('DeleteVolume', () => {
  const publication = { target: '/t', capability: cap(), readonly: false, done: true };
  it('is allowed for a volume that is not in use', () =>
    expect(() => checkDeletable(volume(), undefined)).not.toThrow());
  it.each([
    ['attached', volume({ attachments: { n1: { readonly: false, capability: cap() } } }), undefined],
    [
      'staged',
      volume(),
      { volumeId: 'vol-1', staging: { path: '/s', capability: cap(), readonly: false, done: false }, publications: [] },
    ],
    ['published', volume(), { volumeId: 'vol-1', publications: [publication] }],
  ])('is FAILED_PRECONDITION for one that is %s', (_what, record, node) => {
    expect(() => checkDeletable(record, node)).toThrow(refusal('FAILED_PRECONDITION', /in use/));
  });
});

describe('ControllerPublishVolume', () => {
  const attached = (mode: Capability['mode'], readonly = false) =>
    volume({ attachments: { n1: { readonly, capability: cap(mode) } } });
  it.each([
    ['of a free volume attaches', volume(), { nodeId: 'n1', capability: cap() }, 'attach'],
    ['asked again is done', attached('SINGLE_NODE_WRITER'), { nodeId: 'n1', capability: cap() }, 'attached'],
    [
      'for many nodes attaches to a second',
      attached('MULTI_NODE_READER_ONLY'),
      { nodeId: 'n2', capability: cap('MULTI_NODE_READER_ONLY') },
      'attach',
    ],
  ])('%s', (_what, record, request, expected) => {
    expect(decideAttach(record, { readonly: false, ...request }, 0, 1)).toBe(expected);
  });
  it.each([
    [
      'asked again read-only',
      attached('SINGLE_NODE_WRITER'),
      { nodeId: 'n1', capability: cap(), readonly: true },
      0,
      'ALREADY_EXISTS',
    ],
    [
      'asked again for another mode',
      attached('SINGLE_NODE_WRITER'),
      { nodeId: 'n1', capability: cap('SINGLE_NODE_READER_ONLY') },
      0,
      'ALREADY_EXISTS',
    ],
    ['to a second node', attached('SINGLE_NODE_WRITER'), { nodeId: 'n2', capability: cap() }, 0, 'FAILED_PRECONDITION'],
    ['to a full node', volume(), { nodeId: 'n1', capability: cap() }, 1, 'RESOURCE_EXHAUSTED'],
    [
      'as a block device',
      volume(),
      { nodeId: 'n1', capability: { type: 'block', mode: 'SINGLE_NODE_WRITER' } as const },
      0,
      'INVALID_ARGUMENT',
    ],
  ])('%s is refused', (_what, record, request, others, code) => {
    expect(() => decideAttach(record, { readonly: false, ...request }, others, 1)).toThrow(refusal(code));
  });
  it('names the node that has the volume', () => {
    expect(() =>
      decideAttach(attached('SINGLE_NODE_WRITER'), { nodeId: 'n2', capability: cap(), readonly: false }, 0, 9),
    ).toThrow(/n1/);
  });
});

describe('pages', () => {
  const all = ['c', 'a', 'd', 'b'].map((id) => ({ id }));
  it('go through everything once, in order', () => {
    const seen: string[] = [];
    let token = '';
    do {
      const page = paginate(all, 3, token);
      seen.push(...page.items.map((each) => each.id));
      token = page.nextToken;
    } while (token !== '');
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
  });
  it('go on though the first of the next page is gone', () => {
    const { nextToken } = paginate(all, 2, '');
    expect(
      paginate(
        all.filter(({ id }) => id !== 'c'),
        2,
        nextToken,
      ).items,
    ).toEqual([{ id: 'd' }]);
  });
  it('hold everything when no size is asked for', () =>
    expect(paginate(all, 0, '')).toMatchObject({ nextToken: '', items: { length: 4 } }));
  it.each(['a', 'from:', 'from:../x', '1'])('do not start at %j', (token) => {
    expect(() => paginate(all, 1, token)).toThrow(refusal('ABORTED'));
  });
});

it('a snapshot of the same name belongs to one volume', () => {
  const snapshot = {
    id: 's',
    name: 'n',
    sourceVolumeId: 'vol-1',
    sizeBytes: 1,
    createdAt: epochMs(0),
    capabilities: [],
  };
  expect(() => checkExistingSnapshot(snapshot, 'vol-1')).not.toThrow();
  expect(() => checkExistingSnapshot(snapshot, 'vol-2')).toThrow(refusal('ALREADY_EXISTS', /vol-1/));
});

const staging = (more: object = {}) => ({ path: '/s', capability: cap(), readonly: false, done: true, ...more });
const node = (more: Partial<NodeRecord> = {}): NodeRecord => ({ volumeId: 'vol-1', publications: [], ...more });

describe('NodeStageVolume', () => {
  const request = { path: '/s', capability: cap() };
  const none = { staged: 0, max: 2 };
  it.each([
    ['of a volume that is not here stages it', undefined, request, 'stage'],
    ['asked again is done', node({ staging: staging() }), request, 'staged'],
    [
      'of which the first was never finished does it again',
      node({ staging: staging({ done: false }) }),
      request,
      'stage',
    ],
    [
      'never finished may be asked in another way',
      node({ staging: staging({ done: false }) }),
      { path: '/s', capability: cap('SINGLE_NODE_READER_ONLY') },
      'stage',
    ],
    [
      'for another group is the same',
      node({ staging: staging() }),
      { path: '/s', capability: cap('SINGLE_NODE_WRITER', { group: '7' }) },
      'staged',
    ],
  ])('%s', (_what, record, requested, expected) =>
    expect(decideStage(volume(), record, requested, none)).toBe(expected),
  );
  it.each([
    [
      'with another capability',
      node({ staging: staging() }),
      { path: '/s', capability: cap('SINGLE_NODE_READER_ONLY') },
      none,
      'ALREADY_EXISTS',
    ],
    [
      'at another path',
      node({ staging: staging() }),
      { path: '/other', capability: cap() },
      none,
      'FAILED_PRECONDITION',
    ],
    [
      'as what it was not made for',
      undefined,
      { path: '/s', capability: cap('SINGLE_NODE_WRITER', { fsType: 'xfs' }) },
      none,
      'FAILED_PRECONDITION',
    ],
    ['on a full node', undefined, request, { staged: 2, max: 2 }, 'RESOURCE_EXHAUSTED'],
  ])('%s is refused', (_what, record, requested, others, code) => {
    expect(() => decideStage(volume(), record, requested, others)).toThrow(refusal(code));
  });
  it('is refused for another filesystem than the volume holds', () => {
    const retained = volume({ filesystem: { type: 'xfs', bytes: 1 } });
    expect(() => decideStage(retained, undefined, request, none)).toThrow(refusal('FAILED_PRECONDITION', /holds xfs/));
  });
});

describe('NodeUnstageVolume', () => {
  const publication = { target: '/t', capability: cap(), readonly: false, done: false };
  it.each([
    ['of what is not here has nothing to do', undefined, '/s', 'unstaged'],
    ['at another path has nothing to do', node({ staging: staging() }), '/other', 'unstaged'],
    ['undoes', node({ staging: staging() }), '/s', 'unstage'],
    ['undoes what was never finished', node({ staging: staging({ done: false }) }), '/s', 'unstage'],
  ])('%s', (_what, record, path, expected) => expect(decideUnstage(record, 'vol-1', path)).toBe(expected));
  it('is FAILED_PRECONDITION while a publication is not undone, finished or not', () => {
    expect(() => decideUnstage(node({ staging: staging(), publications: [publication] }), 'vol-1', '/s')).toThrow(
      refusal('FAILED_PRECONDITION', /\/t/),
    );
  });
});

describe('NodePublishVolume', () => {
  it.each([
    ['without a staging path', undefined, ''],
    ['of a volume that is not staged', undefined, '/s'],
    ['of one whose staging was never finished', node({ staging: staging({ done: false }) }), '/s'],
    ['of one that is staged elsewhere', node({ staging: staging() }), '/other'],
  ])('%s is FAILED_PRECONDITION', (_what, record, path) => {
    expect(() => requireStaged('vol-1', record, path)).toThrow(refusal('FAILED_PRECONDITION'));
  });
  // The specification's table: T = target path, P = the other arguments.
  const modes = [
    ['SINGLE_NODE_WRITER', 'FAILED_PRECONDITION'],
    ['SINGLE_NODE_READER_ONLY', 'FAILED_PRECONDITION'],
    ['SINGLE_NODE_SINGLE_WRITER', 'FAILED_PRECONDITION'],
    ['SINGLE_NODE_MULTI_WRITER', 'publish'],
    ['MULTI_NODE_READER_ONLY', 'publish'],
    ['MULTI_NODE_SINGLE_WRITER', 'publish'],
    ['MULTI_NODE_MULTI_WRITER', 'publish'],
  ] as const;
  const decide = (mode: Capability['mode'], target: string, readonly: boolean): string => {
    const capability = cap(mode);
    const before = node({
      staging: staging({ capability }),
      publications: [{ target: '/t1', capability, readonly: false, done: true }],
    });
    try {
      return decidePublish(volume(), before, { target, capability, readonly });
    } catch (error) {
      return error instanceof Error && 'code' in error ? String(error.code) : String(error);
    }
  };
  it.each(modes)('for %s: a second target is %s', (mode, second) => {
    expect({
      'T1=T2 P1=P2': decide(mode, '/t1', false),
      'T1=T2 P1!=P2': decide(mode, '/t1', true),
      'T1!=T2 P1=P2': decide(mode, '/t2', false),
      'T1!=T2 P1!=P2': decide(mode, '/t2', true),
    }).toEqual({
      'T1=T2 P1=P2': 'published',
      'T1=T2 P1!=P2': 'ALREADY_EXISTS',
      'T1!=T2 P1=P2': second,
      'T1!=T2 P1!=P2': second,
    });
  });
  it('that was never finished is done again, also with other arguments', () => {
    const publications = [{ target: '/t', capability: cap(), readonly: false, done: false }];
    const before = node({ staging: staging(), publications });
    expect(decidePublish(volume(), before, { target: '/t', capability: cap(), readonly: true })).toBe('publish');
  });
  it('with another capability than it is staged with is FAILED_PRECONDITION', () => {
    const request = { target: '/t', capability: cap('MULTI_NODE_MULTI_WRITER'), readonly: false };
    expect(() => decidePublish(volume(), node({ staging: staging() }), request)).toThrow(
      refusal('FAILED_PRECONDITION', /staged with/),
    );
  });
});

it.each([
  [{ capability: cap() }, false],
  [{ capability: cap(), readonly: true }, true],
  [{ capability: cap(), attachedReadonly: true }, true],
  [{ capability: cap('MULTI_NODE_READER_ONLY') }, true],
  [{ capability: cap('SINGLE_NODE_WRITER', { flags: ['ro'] }) }, true],
])('what %j leaves to its users is reading only: %s', (parts, expected) => expect(isReadOnly(parts)).toBe(expected));

describe('an attachment', () => {
  const attached = volume({ attachments: { n1: { readonly: true, capability: cap() } } });
  const context = { [ATTACHMENT_KEY]: attachmentOf('vol-1', 'n1') };
  it('is required where the driver attaches, with its context', () => {
    expect(checkAttached(attached, 'n1', context, true)).toEqual({ readonly: true });
    expect(() => checkAttached(volume(), 'n1', context, true)).toThrow(
      refusal('FAILED_PRECONDITION', /not published to node/),
    );
    expect(() => checkAttached(attached, 'n1', {}, true)).toThrow(refusal('INVALID_ARGUMENT', /publish_context/));
  });
  it('has no context where it does not', () => {
    expect(checkAttached(volume(), 'n1', {}, false)).toEqual({ readonly: false });
    expect(() => checkAttached(volume(), 'n1', context, false)).toThrow(refusal('INVALID_ARGUMENT'));
  });
});

it('a path is where a volume is published, or staged, or NOT_FOUND', () => {
  const publication = { target: '/t', capability: cap(), readonly: false, done: true };
  const record = node({
    staging: staging(),
    publications: [publication, { ...publication, target: '/half', done: false }],
  });
  expect(placeOf('vol-1', record, '/t').kind).toBe('publication');
  expect(placeOf('vol-1', record, '/s').kind).toBe('staging');
  for (const path of ['/half', '/nowhere']) expect(() => placeOf('vol-1', record, path)).toThrow(refusal('NOT_FOUND'));
});

it.each([
  ['no range', undefined, undefined],
  ['what the volume has', { required: 64 * MiB, limit: 0 }, undefined],
  ['more than the controller gave', { required: 65 * MiB, limit: 0 }, 'OUT_OF_RANGE'],
  ['less than it has', { required: MiB, limit: 2 * MiB }, 'OUT_OF_RANGE'],
])('NodeExpandVolume for %s', (_what, range, code) => {
  const check = () => checkNodeExpansion(volume(), range);
  if (code === undefined) expect(check).not.toThrow();
  else expect(check).toThrow(refusal(code));
});
