import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { podBlockPlace, podPlace, stagingPlace } from '../../../../../agent/volumes/csi/layout.ts';
import { NodeVolumes, type PublishRequest } from '../../../../../agent/volumes/csi/node-volumes.ts';
import type { CsiVolume } from '../../../../../agent/volumes/csi/volume.ts';
import { volumeCapability } from '../../../../../agent/volumes/csi/volume.ts';
import { type CsiClient, connectCsi } from '../../../../../csi/client.ts';
import { type Answer, FakeCsiDriver } from '../../../../support/scripted-csi-driver.ts';
import { VirtualClock } from '../../../../support/virtual-clock.ts';
import { entry, FakeMounter } from '../support.ts';

let rootDir = '';
let driver: FakeCsiDriver;
let client: CsiClient;
let mounter: FakeMounter;
let clock: VirtualClock;
let registered: boolean;
let register: () => void;
let trouble: string[];
let released: string[];

beforeEach(async () => {
  rootDir = await mkdtemp(join(tmpdir(), 'nodelet-csi-node-'));
  driver = new FakeCsiDriver();
  // As drivers do: they make the target and take it away.
  driver.onCall = ({ method, request }) => {
    const target = String(request['target_path']);
    const isBlock = JSON.stringify(request['volume_capability'] ?? {}).includes('"access_type":"block"');
    if (method === 'NodePublishVolume' && isBlock) writeFileSync(target, '');
    else if (method === 'NodePublishVolume') mkdirSync(target, { recursive: true });
    if (method === 'NodeUnpublishVolume') rmSync(target, { recursive: true, force: true });
  };
  await driver.listen(join(rootDir, 'csi.sock'));
  client = connectCsi(join(rootDir, 'csi.sock'));
  mounter = new FakeMounter();
  clock = new VirtualClock();
  registered = true;
  trouble = [];
  released = [];
});
afterEach(async () => {
  client.close();
  driver.kill();
  await rm(rootDir, { recursive: true, force: true });
});

/** A process that knows what is on disk. */
function started(): NodeVolumes {
  const { promise, resolve } = Promise.withResolvers<void>();
  register = () => {
    registered = true;
    resolve();
  };
  return new NodeVolumes({
    rootDir,
    nodeName: 'n1',
    mounter,
    clock,
    csi: {
      driver: (name) =>
        registered && name === 'fake.csi'
          ? { name, node: client.node, capabilities: async () => new Set(driver.capabilities) }
          : undefined,
      registered: () => (registered ? Promise.resolve() : promise),
    },
    onError: (message) => trouble.push(message),
    onReleased: (name, handle) => released.push(`${name}^${handle}`),
  });
}

function request(podUid = 'u1', more: Partial<CsiVolume> = {}): PublishRequest {
  const volume: CsiVolume = {
    specName: 'pv-1',
    driver: 'fake.csi',
    handle: 'vol-1',
    lifecycle: 'Persistent',
    block: false,
    readOnly: false,
    fsType: 'ext4',
    mountFlags: [],
    accessModes: ['ReadWriteOnce'],
    attributes: { a: 'b' },
    secrets: {},
    ...more,
  };
  return {
    volume,
    podUid,
    attachment: '',
    capability: volumeCapability(volume, new Set(), undefined),
    publishContext: { device: 'x' },
    volumeContext: { a: 'b', pod: 'p' },
    stageSecrets: { s: '1' },
    publishSecrets: { p: '2' },
  };
}

const STAGING = () => stagingPlace(rootDir, 'fake.csi', 'vol-1');
const TARGET = (uid = 'u1') => podPlace(rootDir, uid, 'pv-1');
const S = 'NodeStageVolume';
const P = 'NodePublishVolume';
const UP = 'NodeUnpublishVolume';
const US = 'NodeUnstageVolume';
/** Nothing of any volume is left on disk, and the driver was never called twice at once. */
function expectNothingLeft(): void {
  expect(existsSync(STAGING().note)).toBe(false);
  expect(existsSync(STAGING().path)).toBe(false);
  expect(existsSync(TARGET().note)).toBe(false);
  expect(existsSync(TARGET().target)).toBe(false);
  expect(driver.overlaps).toBe(0);
}

describe('a volume', () => {
  test('is staged, published, unpublished and unstaged, in this order', async () => {
    const volumes = started();
    await volumes.publish(request());
    expect(driver.order).toEqual([S, P]);
    await volumes.unpublishAll('u1');
    expect(driver.order).toEqual([S, P, UP, US]);
    expect(released).toEqual(['fake.csi^vol-1']);
    expectNothingLeft();
  });

  test('is sent to the driver with everything that it needs', async () => {
    await started().publish(request());
    const [stage, publish] = driver.calls;
    expect(stage?.request).toMatchObject({
      volume_id: 'vol-1',
      publish_context: { device: 'x' },
      staging_target_path: STAGING().path,
      secrets: { s: '1' },
      volume_context: { a: 'b' },
      volume_capability: { mount: { fs_type: 'ext4' }, access_mode: { mode: 'SINGLE_NODE_WRITER' } },
    });
    expect(publish?.request).toMatchObject({
      volume_id: 'vol-1',
      publish_context: { device: 'x' },
      staging_target_path: STAGING().path,
      target_path: TARGET().target,
      readonly: false,
      secrets: { p: '2' },
      volume_context: { a: 'b', pod: 'p' },
    });
  });

  test('has its staging directory when it is staged, and the target’s parent when it is published', async () => {
    const seen: boolean[] = [];
    driver.onCall = ({ method }) => {
      if (method === S) seen.push(existsSync(STAGING().path));
      if (method === P) seen.push(existsSync(join(TARGET().target, '..')), existsSync(TARGET().target));
    };
    await started().publish(request());
    expect(seen).toEqual([true, true, false]);
  });

  test('has the kubelet’s notes beside it', async () => {
    await started().publish(request());
    expect(JSON.parse(readFileSync(STAGING().note, 'utf8'))).toEqual({
      driverName: 'fake.csi',
      volumeHandle: 'vol-1',
      attachmentID: '',
    });
    expect(JSON.parse(readFileSync(TARGET().note, 'utf8'))).toMatchObject({
      specVolID: 'pv-1',
      volumeHandle: 'vol-1',
      driverName: 'fake.csi',
      nodeName: 'n1',
      volumeLifecycleMode: 'Persistent',
    });
  });

  test('is not staged where the driver does not stage', async () => {
    driver.capabilities = [];
    const volumes = started();
    await volumes.publish(request());
    await volumes.unpublishAll('u1');
    expect(driver.order).toEqual([P, UP]);
    expect(driver.calls.find(({ method }) => method === P)?.request['staging_target_path']).toBe('');
    expect(released).toEqual(['fake.csi^vol-1']);
    expectNothingLeft();
  });

  test('of a pod’s own is published alone', async () => {
    const volumes = started();
    await volumes.publish(request('u1', { lifecycle: 'Ephemeral' }));
    await volumes.unpublishAll('u1');
    expect(driver.order).toEqual([P, UP]);
    expectNothingLeft();
  });

  test('stays staged while any pod uses it', async () => {
    const volumes = started();
    await volumes.publish(request('u1'));
    await volumes.publish(request('u2'));
    await volumes.unpublishAll('u1');
    expect(driver.order).toEqual([S, P, P, UP]);
    expect(released).toEqual([]);
    await volumes.unpublishAll('u2');
    expect(driver.order).toEqual([S, P, P, UP, UP, US]);
    expectNothingLeft();
  });

  test('is never the subject of two calls at once, and is of many volumes', async () => {
    const volumes = started();
    for (const method of [S, P, UP, US]) driver.next(method, { response: {}, delayMs: 5 });
    await Promise.all([
      volumes.publish(request('u1')),
      volumes.publish(request('u2')),
      volumes.publish(request('u1', { specName: 'pv-2', handle: 'vol-2' })),
      volumes.unpublishAll('u3'),
    ]);
    await Promise.all([volumes.unpublishAll('u1'), volumes.unpublishAll('u2')]);
    expect(driver.overlaps).toBe(0);
    expect(driver.order.filter((method) => method === S)).toHaveLength(2);
    expect(driver.order.filter((method) => method === US)).toHaveLength(2);
    expectNothingLeft();
  });

  test('for one pod at a time is refused to a second one, until the first has gone', async () => {
    const volumes = started();
    const single = { accessModes: ['ReadWriteOncePod'] };
    await volumes.publish(request('u1', single));
    await expect(volumes.publish(request('u2', single))).rejects.toThrow(
      'MountVolume.SetUp failed for volume "pv-1" : volume uses the ReadWriteOncePod access mode and is already in use by another pod',
    );
    await expect(volumes.publish(request('u2', { ...single, block: true }))).rejects.toMatchObject({
      reason: 'FailedMapVolume',
      message: expect.stringContaining('MapVolume.SetUpDevice failed for volume "pv-1" : volume uses'),
    });
    await volumes.publish(request('u1', single));
    await volumes.unpublishAll('u1');
    await volumes.publish(request('u2', single));
  });
});

describe('a volume in block mode', () => {
  const block = { block: true };
  const place = () => podBlockPlace(rootDir, 'u1', 'pv-1');
  test('is mapped for the pod, and everything of it is taken away', async () => {
    const volumes = started();
    await volumes.publish(request('u1', block));
    expect(mounter.calls).toEqual([`mount  bind ${place().target} ${place().globalMap}`]);
    expect(existsSync(place().podMap)).toBe(true);
    const stage = driver.calls.find(({ method }) => method === S);
    expect(stage?.request).toMatchObject({ volume_capability: { access_type: 'block' } });
    expect(stage?.request['staging_target_path']).toBe(
      join(rootDir, 'plugins/kubernetes.io/csi/volumeDevices/staging/pv-1'),
    );
    await volumes.unpublishAll('u1');
    expect(driver.order).toEqual([S, P, UP, US]);
    expect(mounter.entries).toEqual([]);
    for (const path of [place().podMap, place().globalMap, place().target, place().note]) {
      expect(existsSync(path), path).toBe(false);
    }
    expect(existsSync(join(rootDir, 'plugins/kubernetes.io/csi/volumeDevices/pv-1'))).toBe(false);
    expect(existsSync(join(rootDir, 'plugins/kubernetes.io/csi/volumeDevices/staging/pv-1'))).toBe(false);
  });

  test('is found again by the next process', async () => {
    await started().publish(request('u1', block));
    await started().unpublishAll('u1');
    expect(driver.order).toEqual([S, P, UP, US]);
    expect(mounter.entries).toEqual([]);
  });
});

const HANGS: Answer = { code: 'DEADLINE_EXCEEDED', message: 'too slow' };
const REFUSES: Answer = { code: 'INVALID_ARGUMENT', message: 'no such thing' };

describe('what is undone when the pod goes after', () => {
  test.each<[string, string, Answer, string[]]>([
    ['a stage whose outcome nobody knows: unstaged, though never published', S, HANGS, [S, US]],
    ['a stage that the driver was cut off in', S, { code: 'UNAVAILABLE', message: 'gone' }, [S, US]],
    ['a stage that was refused for good: nothing', S, REFUSES, [S]],
    ['a publish whose outcome nobody knows: all of it', P, HANGS, [S, P, UP, US]],
    ['a publish that was refused for good: the stage alone', P, REFUSES, [S, P, US]],
  ])('%s', async (_, method, answer, order) => {
    const volumes = started();
    driver.next(method, answer);
    await expect(volumes.publish(request())).rejects.toThrow('code = ');
    await volumes.unpublishAll('u1');
    expect(driver.order).toEqual(order);
    expectNothingLeft();
  });

  test.each<[string, string, Answer, string[]]>([
    ['an unknown stage', S, HANGS, [S, US]],
    ['a refused stage', S, REFUSES, [S]],
    ['an unknown publish', P, HANGS, [S, P, UP, US]],
    ['a refused publish', P, REFUSES, [S, P, US]],
  ])('%s is the same for a process that was not there', async (_, method, answer, order) => {
    driver.next(method, answer);
    await expect(started().publish(request())).rejects.toThrow();
    const next = started();
    await next.unpublishAll('u1');
    expect(driver.order).toEqual(order);
    expectNothingLeft();
  });

  test('a publish that failed on a volume that was published before: all of it', async () => {
    const volumes = started();
    await volumes.publish(request());
    driver.next(P, REFUSES);
    await expect(volumes.publish(request())).rejects.toThrow();
    await volumes.unpublishAll('u1');
    expect(driver.order).toEqual([S, P, P, UP, US]);
  });
});

describe('a failure', () => {
  test.each<[string, string, boolean, string]>([
    [
      'to stage',
      S,
      false,
      'MountVolume.MountDevice failed for volume "pv-1" : rpc error: code = InvalidArgument desc = no such thing',
    ],
    [
      'to publish',
      P,
      false,
      'MountVolume.SetUp failed for volume "pv-1" : rpc error: code = InvalidArgument desc = no such thing',
    ],
    [
      'to stage a device',
      S,
      true,
      'MapVolume.SetUpDevice failed for volume "pv-1" : rpc error: code = InvalidArgument desc = no such thing',
    ],
    [
      'to publish a device',
      P,
      true,
      'MapVolume.MapPodDevice failed for volume "pv-1" : rpc error: code = InvalidArgument desc = no such thing',
    ],
  ])('%s has the kubelet’s words around the driver’s', async (_, method, block, words) => {
    driver.next(method, REFUSES);
    const reason = block ? 'FailedMapVolume' : 'FailedMount';
    await expect(started().publish(request('u1', { block }))).rejects.toMatchObject({ message: words, reason });
  });

  test('is followed by the same calls again, and a stage that succeeded is not repeated', async () => {
    const volumes = started();
    driver.next(S, HANGS);
    driver.next(P, REFUSES, HANGS);
    for (let i = 0; i < 3; i++) await expect(volumes.publish(request())).rejects.toThrow();
    await volumes.publish(request());
    expect(driver.order).toEqual([S, S, P, P, P]);
  });

  test('a new process stages again, since it cannot know that the old one did', async () => {
    await started().publish(request());
    await started().publish(request());
    expect(driver.order).toEqual([S, P, S, P]);
  });

  test('to unpublish leaves everything known, and the next try ends it', async () => {
    const volumes = started();
    await volumes.publish(request());
    driver.next(UP, { code: 'INTERNAL', message: 'busy' });
    await expect(volumes.unpublishAll('u1')).rejects.toThrow(
      'UnmountVolume.TearDown failed for volume "pv-1" : rpc error: code = Internal desc = busy',
    );
    expect(existsSync(TARGET().note)).toBe(true);
    await volumes.unpublishAll('u1');
    expect(driver.order).toEqual([S, P, UP, UP, US]);
    expectNothingLeft();
  });

  test('to unstage does not keep the pod; it is tried until it is done', async () => {
    const volumes = started();
    await volumes.publish(request());
    driver.next(US, { code: 'INTERNAL', message: 'busy' }, { code: 'ABORTED', message: 'still busy' });
    const gone = volumes.unpublishAll('u1');
    await vi.waitFor(() => expect(trouble).toHaveLength(1));
    await clock.advance(500);
    await vi.waitFor(() => expect(trouble).toHaveLength(2));
    await clock.advance(1000);
    await gone;
    await vi.waitFor(() => expect(released).toHaveLength(1));
    expect(driver.order).toEqual([S, P, UP, US, US, US]);
    expectNothingLeft();
  });

  test('to unstage for long lets the pod go after 5 s', async () => {
    const volumes = started();
    await volumes.publish(request());
    driver.next(US, 'hang');
    const gone = volumes.unpublishAll('u1');
    await vi.waitFor(() => expect(driver.order).toContain(US));
    await clock.advance(5000);
    await gone;
  });

  test('that the volume is unknown counts as done when nothing of it is mounted', async () => {
    const volumes = started();
    await volumes.publish(request());
    const unknown: Answer = { code: 'NOT_FOUND', message: 'what volume?' };
    mounter.entries.push(entry(TARGET().target));
    driver.next(UP, unknown, unknown);
    await expect(volumes.unpublishAll('u1')).rejects.toThrow('code = NotFound');
    mounter.entries = [];
    driver.next(US, unknown);
    await volumes.unpublishAll('u1');
    expectNothingLeft();
  });
});

describe('a driver that is not registered', () => {
  test('is a failure that says so, and is worth another try once it is', async () => {
    registered = false;
    const volumes = started();
    const failure: unknown = await volumes.publish(request()).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      message:
        'MountVolume.SetUp failed for volume "pv-1" : driver name fake.csi not found in the list of registered CSI drivers',
      reason: 'FailedMount',
    });
    register();
    if (failure instanceof Error && 'until' in failure) await failure.until;
    await volumes.publish(request());
    expect(driver.order).toEqual([S, P]);
  });

  test('keeps what is published: it is not unmounted behind the driver’s back', async () => {
    await started().publish(request());
    registered = false;
    const volumes = started();
    const undone = volumes.unpublishAll('u1');
    const refused = expect(undone).rejects.toThrow('not found in the list of registered CSI drivers');
    await clock.advance(10_000);
    await refused;
    expect(existsSync(TARGET().target)).toBe(true);
    register();
    await volumes.unpublishAll('u1');
    expectNothingLeft();
  });
});

test('a driver that registers a moment later is waited for before anything is undone', async () => {
  await started().publish(request());
  registered = false;
  const volumes = started();
  const undone = volumes.unpublishAll('u1');
  await clock.advance(9_000);
  register();
  await undone;
  expectNothingLeft();
});

describe('a process that begins', () => {
  test('unstages what no pod uses', async () => {
    await started().publish(request());
    rmSync(join(rootDir, 'pods'), { recursive: true });
    started();
    await vi.waitFor(() => expect(released).toEqual(['fake.csi^vol-1']));
    expect(driver.order).toEqual([S, P, US]);
    expectNothingLeft();
  });

  test('waits for the driver of what it has to unstage', async () => {
    await started().publish(request());
    rmSync(join(rootDir, 'pods'), { recursive: true });
    registered = false;
    started();
    await vi.waitFor(() => expect(trouble).toHaveLength(1));
    register();
    await vi.waitFor(() => expect(released).toHaveLength(1));
    expectNothingLeft();
  });

  test('leaves staged what a pod on disk uses, or begins to use first', async () => {
    await started().publish(request('u1'));
    const volumes = started();
    await volumes.publish(request('u2'));
    await volumes.unpublishAll('u1');
    expect(driver.order).not.toContain(US);
  });

  test('knows which attached volumes its pods have, and which are staged still when their pods have gone', async () => {
    await started().publish({ ...request(), attachment: 'csi-x' });
    await started().publish(request('u2', { handle: 'vol-2', specName: 'pv-2' }));
    const attached = { driver: 'fake.csi', handle: 'vol-1' };
    expect(started().attachable()).toEqual([attached, attached]);

    driver.next(US, 'hang');
    const dying = started().unpublishAll('u1');
    await vi.waitFor(() => expect(driver.order).toContain(US));
    expect(existsSync(TARGET().note)).toBe(false);
    expect(started().attachable()).toEqual([attached]);
    await clock.advance(5000);
    await dying;
  });
});
