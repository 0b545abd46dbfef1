// Small pure rules: hash, QoS, formats, grace periods, order of stopping, back-off, garbage, sync triggers.

import { describe, expect, it } from 'vitest';
import { activeDeadline } from '../../../../agent/pods/deadline.ts';
import { goDuration, rpcMessage } from '../../../../agent/pods/format.ts';
import { computeGarbage } from '../../../../agent/pods/garbage.ts';
import { hashContainer } from '../../../../agent/pods/hash.ts';
import { restartBackoffAfterStart, restartBackoffPolicy } from '../../../../agent/pods/restart-backoff.ts';
import { eventNeedsSync, podNeedsSync } from '../../../../agent/pods/sync-triggers.ts';
import { computeTermination, gracePeriodSeconds, stopsAfter } from '../../../../agent/pods/termination.ts';
import {
  type ContainerId,
  type ContainerSnapshot,
  type PodSnapshot,
  type PodUID,
  RuntimeError,
  type SandboxId,
} from '../../../../agent/ports/runtime.ts';
import type { BackoffEntry } from '../../../../lib/backoff.ts';
import { type EpochMs, epochMs, plusMs } from '../../../../lib/clock.ts';
import { makePod } from '../../../sim/fakes.ts';

describe('the hash of a container', () => {
  it('is the one the kubelet computes', () => {
    // The value of the kubelet's own test for this name and image, since 1.31.
    expect(hashContainer({ name: 'test_container', image: 'foo/image:v1' })).toBe('8e45cbd0');
  });
  it('changes with name and image, and with nothing else', () => {
    const hash = hashContainer({ name: 'a', image: 'b' });
    expect(hashContainer({ image: 'b', name: 'a', env: [{ name: 'X', value: '1' }] })).toBe(hash);
    expect(hashContainer({ name: 'a', image: 'c' })).not.toBe(hash);
    expect(hashContainer({ name: 'c', image: 'b' })).not.toBe(hash);
  });
});

describe('formats', () => {
  it.each([
    [0, '0s'],
    [850, '850ms'],
    [1_200, '1.2s'],
    [10_000, '10s'],
    [80_000, '1m20s'],
    [300_000, '5m0s'],
    [3_723_004, '1h2m3.004s'],
  ])('%i ms is %s', (ms, expected) => expect(goDuration(ms)).toBe(expected));
  it('word a runtime error as gRPC does', () => {
    expect(rpcMessage(new RuntimeError('X', 'DEADLINE_EXCEEDED', 'too slow'))).toBe(
      'rpc error: code = DeadlineExceeded desc = too slow',
    );
  });
  it('word what the agent could not even ask for without that frame', () => {
    expect(rpcMessage(new RuntimeError('GeneratePodSandboxConfig', RuntimeError.NOT_CALLED, 'FQDN too long'))).toBe(
      'FQDN too long',
    );
  });
});

describe('the grace period', () => {
  const probe = { terminationGracePeriodSeconds: 7, tcpSocket: { port: 1 } };
  const container = { name: 'web', livenessProbe: probe, startupProbe: probe };
  const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 5 };
  it.each([
    ["is the pod's", makePod('p', { terminationGracePeriodSeconds: 40 }), 'podEnds', 40],
    ["is the probe's when liveness failed", makePod('p'), 'livenessProbe', 7],
    ["is the probe's when startup failed", makePod('p'), 'startupProbe', 7],
    ["is the deletion's, whatever failed", makePod('p', {}, deleted), 'livenessProbe', 5],
    ["is the pod's when the definition changed", makePod('p'), 'definitionChanged', 30],
  ] as const)('%s', (_name, pod, reason, expected) => {
    expect(gracePeriodSeconds(pod, container, reason)).toBe(expected);
  });
});

const container = (id: string, over: Partial<ContainerSnapshot> = {}): ContainerSnapshot => ({
  id: id as ContainerId,
  sandboxId: 's0' as SandboxId,
  name: 'web',
  type: 'container',
  restartCount: 0,
  hash: '',
  state: 'exited',
  createdAt: epochMs(0),
  startedAt: epochMs(0),
  finishedAt: epochMs(0),
  exitCode: 0,
  reason: '',
  message: '',
  image: '',
  imageId: '',
  logPath: '',
  ...over,
});
const sandbox = (id: string, state: 'ready' | 'notReady' = 'ready') => ({
  id: id as SandboxId,
  attempt: 0,
  state,
  createdAt: epochMs(0),
  ips: [],
  hostNetwork: false,
  runtimeHandler: '',
});
const snapshot = (containers: ContainerSnapshot[], sandboxes = [sandbox('s0')]): PodSnapshot => ({
  pod: { uid: 'u' as PodUID, namespace: 'demo', name: 'p' },
  sandboxes,
  containers,
  observedAt: epochMs(0),
});

describe('the order of stopping', () => {
  const always = { restartPolicy: 'Always' };
  const pod = makePod('p', { initContainers: [{ name: 'a', ...always }, { name: 'once' }, { name: 'b', ...always }] });
  it.each([
    ['web', []],
    ['b', ['web']],
    // An init container that runs is stopped with the rest: no container waits for it.
    ['a', ['web', 'b']],
  ])('lets %s wait for %j', (name, expected) => expect([...stopsAfter(pod, name)]).toEqual(expected));

  const none = { killing: new Set<ContainerId>(), busy: false, stopped: new Set<string>() };
  const alive = snapshot([container('one', { state: 'running' })]);
  const dead = snapshot([container('one')]);
  it.each([
    ['kill', 'something runs', { snapshot: alive, ...none }],
    ['wait', 'it is being stopped', { snapshot: alive, ...none, killing: new Set(['one' as ContainerId]) }],
    ['wait', 'something may still start', { snapshot: dead, ...none, busy: true }],
    ['stopSandboxes', 'every container is dead', { snapshot: dead, ...none }],
    ['release', 'the sandbox is stopped too', { snapshot: dead, ...none, stopped: new Set(['s0']) }],
    ['release', 'nothing was ever made', { snapshot: snapshot([], []), ...none }],
  ])('goes on with %s when %s', (kind, _why, facts) => expect(computeTermination(facts).kind).toBe(kind));
});

describe('the longest wait of a crash loop', () => {
  it.each([
    ['is 5 minutes unless the configuration says otherwise', undefined, [10, 20, 40, 80, 160, 300, 300]],
    ['is what the configuration says', 30_000, [10, 20, 30, 30]],
    ['is the first one too where it is shorter than 10 s', 2_000, [2, 2, 2]],
  ])('%s', (_, longestMs, expected) => {
    const policy = restartBackoffPolicy(longestMs);
    const waits: number[] = [];
    let entry: BackoffEntry<EpochMs> | undefined;
    for (let at = epochMs(0); waits.length < expected.length; at = plusMs(at, 1_000)) {
      entry = restartBackoffAfterStart(policy, entry, at, at);
      waits.push(entry.delayMs / 1000);
    }
    expect(waits).toEqual(expected);
  });
});

describe('garbage', () => {
  it('is every dead instance but the newest of each container', () => {
    const all = [container('d'), container('c'), container('b'), container('x', { name: 'other' })];
    expect(computeGarbage(snapshot(all), 1).containers.map(({ id }) => id)).toEqual(['c', 'b']);
  });
  it('spares what runs and one that is about to', () => {
    const all = [container('n', { state: 'created' }), container('r', { state: 'running', name: 'r' }), container('d')];
    expect(computeGarbage(snapshot(all), 1).containers).toEqual([]);
  });
  it('is a dead sandbox that holds nothing worth keeping', () => {
    const sandboxes = [sandbox('s1'), sandbox('s0', 'notReady'), sandbox('old', 'notReady')];
    const found = computeGarbage(snapshot([container('d')], sandboxes), 1);
    expect(found.sandboxes.map(({ id }) => id)).toEqual(['old']);
  });
});

describe('sync triggers', () => {
  const event = (type: 'containerStarted' | 'containerDied' | 'containerRemoved' | 'podSync', id?: string) => ({
    podUID: 'u' as PodUID,
    type,
    at: epochMs(0),
    ...(id === undefined ? {} : { containerId: id as ContainerId }),
  });
  const known = snapshot([container('up', { state: 'running' }), container('down')]);
  it.each([
    ['an end not seen yet', event('containerDied', 'up'), false, true],
    ['an end that was seen', event('containerDied', 'down'), false, false],
    ['a start that was seen', event('containerStarted', 'up'), false, false],
    ['a start of a sandbox that was seen', event('containerStarted', 's0'), false, false],
    ['a start by somebody else', event('containerStarted', 'new'), false, true],
    ['a start of our own', event('containerStarted', 'new'), true, false],
    ['the end of something unknown', event('containerDied', 'new'), true, true],
    ['a call to look', event('podSync'), true, true],
    ['the removal of something forgotten', event('containerRemoved', 'gone'), false, false],
  ])('%s', (_name, what, acting, expected) => expect(eventNeedsSync(what, known, acting)).toBe(expected));

  it('in a pod are its spec and its deletion, not the echo of our status', () => {
    const pod = makePod('p');
    expect(podNeedsSync(pod, { ...pod, status: { phase: 'Running' } })).toBe(false);
    expect(podNeedsSync(pod, makePod('p', { activeDeadlineSeconds: 5 }))).toBe(true);
    expect(podNeedsSync(pod, makePod('p', {}, { deletionTimestamp: 'x' }))).toBe(true);
    expect(podNeedsSync(pod, makePod('p', {}, { labels: { a: 'b' } }))).toBe(true);
  });
});

describe('the active deadline', () => {
  const start = '2026-01-01T00:00:00Z';
  const at = Date.parse(start);
  it('is nothing where there is none, or before the pod has begun', () => {
    expect(activeDeadline(makePod('p'), start, epochMs(at))).toBeUndefined();
    expect(activeDeadline(makePod('p', { activeDeadlineSeconds: 5 }), undefined, epochMs(at))).toBeUndefined();
  });
  it('passes after its seconds', () => {
    const pod = makePod('p', { activeDeadlineSeconds: 5 });
    expect(activeDeadline(pod, start, epochMs(at + 4_999))).toEqual({ at: at + 5_000 });
    expect(activeDeadline(pod, start, epochMs(at + 5_000))?.failure?.reason).toBe('DeadlineExceeded');
  });
});
