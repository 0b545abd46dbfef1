// Mirror pods: the rules as a table, and a whole node with a static pod, its mirror and an API server in memory.

import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import type { PodSource } from '../../../../agent/ports/api.ts';
import { parsePod } from '../../../../agent/sources/manifest.ts';
import { MirrorPods } from '../../../../agent/sources/mirror-pods.ts';
import { MirrorReconciler } from '../../../../agent/sources/mirror-reconciler.ts';
import { decideMirrors, fullName, isUnderWay, mirrorOf } from '../../../../agent/sources/mirror-rules.ts';
import { ApiError } from '../../../../client/errors.ts';
import type { Pod } from '../../../../client/types.ts';
import { Signal } from '../../../../lib/signal.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { settle } from '../../../sim/clock.ts';
import { type FakeApi, FakeNode, makePod } from '../../../sim/fakes.ts';

const NODE = { metadata: { name: 'node-1', uid: 'uid-node-1', resourceVersion: '1' } };

function staticPod(image = 'nginx:stable'): Pod {
  const spec = { containers: [{ name: 'web', image, imagePullPolicy: 'IfNotPresent' }] };
  const manifest = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec });
  const seen = '2026-01-01T00:00:00Z';
  return parsePod(manifest, { source: 'file', location: '/m/web.yaml', nodeName: 'node-1', seen });
}

function mirror(pod: Pod, metadata: Partial<Pod['metadata']> = {}): Pod {
  const made = makePod(pod.metadata.name, pod.spec, {
    ...pod.metadata,
    uid: 'uid-mirror',
    annotations: { ...pod.metadata.annotations, 'kubernetes.io/config.mirror': pod.metadata.uid },
    ...metadata,
  });
  return made;
}

describe('a pod that its mirror says something of', () => {
  const status = (restartCount: number, containerID?: string): NonNullable<Pod['status']> => ({
    phase: 'Running',
    containerStatuses: [
      { name: 'web', image: 'i', imageID: '', ready: false, restartCount, ...(containerID ? { containerID } : {}) },
    ],
  });
  it.each<[string, Pod['status'], boolean]>([
    ['a container of it runs', status(0, 'containerd://1'), true],
    ['a container of it was restarted and is gone', status(3), true],
    ['nothing of it ever ran', status(0), false],
    ['it has failed', { ...status(3, 'containerd://1'), phase: 'Failed' }, false],
    ['it has succeeded', { ...status(0, 'containerd://1'), phase: 'Succeeded' }, false],
    ['nothing is written of it', {}, false],
  ])('is under way or not: %s', (_what, written, expected) => {
    expect(isUnderWay({ ...mirror(staticPod()), ...(written === undefined ? {} : { status: written }) })).toBe(
      expected,
    );
  });
});

describe('what is done about mirrors', () => {
  const pod = staticPod();
  const named = (...pods: Pod[]) => new Map(pods.map((each) => [fullName(each), each]));
  const here = (...uids: string[]) => new Map(uids.length === 0 ? [] : [[fullName(pod), uids]]);
  const uid = pod.metadata.uid;
  const leaving = { deletionTimestamp: '2026-01-01T00:00:30Z' };
  type Facts = Parameters<typeof decideMirrors>[0];
  const rows: readonly [string, Facts, readonly string[]][] = [
    [
      'a static pod without a mirror gets one',
      { statics: named(pod), mirrors: named(), present: here(uid) },
      ['create'],
    ],
    [
      'a mirror that shows its pod is left alone',
      { statics: named(pod), mirrors: named(mirror(pod)), present: here(uid) },
      [],
    ],
    [
      'a mirror that someone edited is left alone',
      { statics: named(pod), mirrors: named(mirror(pod, { labels: { a: 'b' } })), present: here(uid) },
      [],
    ],
    [
      'a mirror that a client deletes is finalized, to be made again',
      { statics: named(pod), mirrors: named(mirror(pod, leaving)), present: here(uid) },
      ['delete deleted'],
    ],
    [
      'a mirror of another version is taken away',
      { statics: named(staticPod('other')), mirrors: named(mirror(pod)), present: here() },
      ['delete replaced'],
    ],
    [
      'while the former version ends, its mirror stays',
      { statics: named(staticPod('other')), mirrors: named(mirror(pod)), present: here(uid) },
      [],
    ],
    [
      'a mirror of nothing is taken away',
      { statics: named(), mirrors: named(mirror(pod)), present: here() },
      ['delete orphaned'],
    ],
    [
      'while the removed pod ends, its mirror stays',
      { statics: named(), mirrors: named(mirror(pod)), present: here(uid) },
      [],
    ],
    [
      'nothing is made before the first list of the API server',
      { statics: named(pod), mirrors: undefined, present: here(uid) },
      [],
    ],
    [
      'nothing is removed before every source has delivered',
      { statics: undefined, mirrors: named(mirror(pod)), present: here() },
      [],
    ],
  ];
  test.each(rows)('%s', (_name, facts, expected) => {
    const output = decideMirrors(facts).map((action) => (action.kind === 'delete' ? `delete ${action.why}` : 'create'));
    expect(output).toEqual(expected);
  });

  it('a mirror belongs to its Node, and has neither uid nor status of the static pod', () => {
    expect(mirrorOf(pod, NODE)).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'web-node-1',
        namespace: 'default',
        annotations: { ...pod.metadata.annotations, 'kubernetes.io/config.mirror': uid },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-1', uid: 'uid-node-1', controller: true }],
      },
      spec: pod.spec,
    });
  });
});

// ---------------------------------------------------------------- a whole node

/** A manifest directory that the test writes. */
class FakeFiles implements PodSource {
  readonly name = 'file';
  #listener: ((pods: ReadonlyMap<string, Pod>) => void) | undefined;
  #pods: readonly Pod[] = [];
  start(listener: (pods: ReadonlyMap<string, Pod>) => void): void {
    this.#listener = listener;
    this.hold(...this.#pods);
  }
  stop(): void {
    this.#listener = undefined;
  }
  hold(...pods: readonly Pod[]): void {
    this.#pods = pods;
    this.#listener?.(new Map(pods.map((pod) => [pod.metadata.uid, pod])));
  }
}

let node: FakeNode;
let files: FakeFiles;
let made: number;
let log: string[];
let refuseCreate: boolean;

beforeEach(() => {
  made = 0;
  log = [];
  refuseCreate = false;
  files = new FakeFiles();
  // The agent is built with sources that need the node's own API, which is there only after the node is.
  const bare = new FakeNode();
  bare.agent.stop();
  const api: FakeApi = bare.api;
  const notFound = (name: string): ApiError =>
    new ApiError(
      { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', message: `pods "${name}" not found` },
      404,
      'DELETE',
    );
  const client = {
    create: async <T>(_path: string, body: unknown): Promise<T> => {
      await Promise.resolve();
      if (refuseCreate) throw new Error('no');
      const object: { metadata: Pod['metadata']; spec: Pod['spec'] } = structuredClone(Object(body));
      const stored = api.put(
        makePod(object.metadata.name, object.spec, { ...object.metadata, uid: `uid-mirror-${++made}` }),
      );
      return Object(stored);
    },
    delete: async <T>(path: string, options?: object): Promise<T> => {
      await Promise.resolve();
      const name = path.split('/').at(-1) ?? '';
      if (!api.has(name)) throw notFound(name);
      expect(options).toEqual({ gracePeriodSeconds: 0, preconditions: { uid: api.named(name).metadata.uid } });
      api.forceDelete(name);
      return Object({});
    },
  };
  const mirrors = new MirrorPods('node-1');
  const podGone = new Signal<Pod>();
  const { runtime, volumes, cgroups, recorder, objects, clock } = bare;
  node = new FakeNode({
    runtime,
    volumes,
    cgroups,
    recorder,
    objects,
    clock,
    api: mirrors.podApi(api),
    sources: [mirrors.apiSource(api), mirrors.staticSource(files)],
    onPodGone: (pod) => podGone.emit(pod),
  });
  world = bare;
  const reconciler = new MirrorReconciler({
    mirrors,
    pods: node.agent,
    client,
    node: () => NODE,
    clock: bare.clock,
    tracer: new Tracer(),
    log: (_level, message) => log.push(message),
  });
  podGone.subscribe(() => reconciler.reconcile());
});

/** The parts that the agent of `node` runs on. */
let world: FakeNode;

afterEach(() => {
  node.agent.stop();
  expect(world.violations).toEqual([]);
});

const NAME = 'web-node-1';
const runs = () => world.clock.until(() => world.api.has(NAME) && world.api.status(NAME).phase === 'Running', 30_000);

describe('a static pod', () => {
  it('runs once, and its mirror shows how', async () => {
    files.hold(staticPod());
    await runs();
    expect(world.runtime.count('runPodSandbox')).toBe(1);
    expect(world.api.status(NAME).containerStatuses?.[0]).toMatchObject({ name: 'web', ready: true });
    expect(world.api.named(NAME).metadata.annotations?.['kubernetes.io/config.mirror']).toBe(staticPod().metadata.uid);
    expect([...world.runtime.sandboxes.values()][0]?.pod.uid).toBe(staticPod().metadata.uid);
  });

  it('is emitted with its written status as soon as its mirror is known, so that restarts go on being counted', async () => {
    const pod = staticPod();
    const shown = mirror(pod);
    const containerStatuses = [{ name: 'web', image: 'i', imageID: '', ready: false, restartCount: 7 }];
    refuseCreate = true;
    files.hold(pod);
    await settle();
    world.api.put({ ...shown, status: { phase: 'Running', containerStatuses } });
    await world.clock.until(() => world.api.status(NAME).containerStatuses?.[0]?.ready === true, 30_000);
    expect(world.api.status(NAME).containerStatuses?.[0]?.restartCount).toBeGreaterThanOrEqual(7);
    expect(world.runtime.count('runPodSandbox')).toBe(1);
  });

  it('runs before and without an API server that answers; the mirror comes when it does', async () => {
    refuseCreate = true;
    files.hold(staticPod());
    await world.clock.until(() => world.runtime.running('web') !== undefined);
    await world.clock.advance(5_000);
    expect(log.filter((line) => line.includes('could not be made: no'))).toHaveLength(1);
    refuseCreate = false;
    await runs();
  });

  it('keeps running when its mirror is deleted, and gets another with its status', async () => {
    files.hold(staticPod());
    await runs();
    const before = world.api.named(NAME).metadata.uid;
    world.api.delete(NAME);
    await world.clock.until(() => world.api.has(NAME) && world.api.named(NAME).metadata.uid !== before, 10_000);
    await runs();
    world.api.forceDelete(NAME);
    await settle();
    await runs();
    expect(world.runtime.count('stopContainer')).toBe(0);
    expect(world.runtime.count('runPodSandbox')).toBe(1);
  });

  it('is not touched by edits of its mirror; what was written over its status is written again', async () => {
    files.hold(staticPod());
    await runs();
    const shown = world.api.named(NAME);
    const containers = shown.spec.containers.map((container) => ({ ...container, image: 'busybox:stable' }));
    world.api.put({
      ...shown,
      spec: { ...shown.spec, containers },
      status: { ...shown.status, phase: 'Failed', reason: 'Wrong' },
    });
    await world.clock.advance(5_000);
    expect(world.runtime.count('stopContainer')).toBe(0);
    expect(world.runtime.running('web')?.image).toBe('nginx:stable');
    expect(world.api.status(NAME).phase).toBe('Running');
    world.api.violations.length = 0;
  });

  it('that changes is ended before its next version begins, and shown by a new mirror', async () => {
    files.hold(staticPod());
    await runs();
    const before = world.api.named(NAME).metadata.uid;
    files.hold(staticPod('busybox:stable'));
    await world.clock.until(() => world.runtime.running('web')?.image === 'busybox:stable', 60_000);
    await runs();
    expect(world.api.named(NAME).metadata.uid).not.toBe(before);
    const order = world.runtime.order('startContainer', 'stopPodSandbox', 'runPodSandbox');
    expect(order.map((line) => line.split(' ')[0])).toEqual([
      'runPodSandbox',
      'startContainer',
      'stopPodSandbox',
      'runPodSandbox',
      'startContainer',
    ]);
  });

  it('that is removed is ended, then its mirror goes, and nothing is left', async () => {
    files.hold(staticPod());
    await runs();
    files.hold();
    await world.clock.until(() => !world.api.has(NAME), 60_000);
    expect(world.leftovers()).toEqual([]);
    const stopped = world.runtime.calls.findIndex(({ call }) => call === 'stopContainer');
    expect(stopped).toBeGreaterThan(0);
  });

  it('beside pods of the API server leaves those as they are', async () => {
    files.hold(staticPod());
    await runs();
    world.api.put(
      makePod('other', { containers: [{ name: 'other', image: 'busybox:stable', imagePullPolicy: 'IfNotPresent' }] }),
    );
    await world.clock.until(() => world.api.status('other').phase === 'Running');
    files.hold();
    await world.clock.until(() => !world.api.has(NAME), 60_000);
    expect(world.api.status('other').phase).toBe('Running');
  });

  it('without a mirror is written nowhere, which says nothing about what the server keeps of other pods', async () => {
    refuseCreate = true;
    files.hold(staticPod());
    await world.clock.until(() => world.runtime.running('web') !== undefined);
    const containers = [{ name: 'other', image: 'busybox:stable', imagePullPolicy: 'IfNotPresent' as const }];
    world.api.put(makePod('other', { containers }));
    await world.clock.until(() => world.api.status('other').phase === 'Running');
    expect(world.api.status('other').hostIPs).toEqual([{ ip: '192.0.2.1' }]);
    refuseCreate = false;
    await runs();
    expect(world.api.status(NAME).hostIPs).toEqual([{ ip: '192.0.2.1' }]);
  });

  it('cannot be claimed by a pod of the API server that says it is one', async () => {
    files.hold();
    world.api.put(makePod('liar', {}, { annotations: { 'kubernetes.io/config.source': 'file' } }));
    await world.clock.until(() => world.api.status('liar').phase === 'Running');
    world.api.delete('liar', 1);
    await world.clock.until(() => !world.api.has('liar'), 60_000);
  });
});
