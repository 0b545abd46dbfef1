// Graceful node shutdown: who is ended when and with how much time, on a simulated node whose machine goes down.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PodsAgentOptions } from '../../../../agent/pods/options.ts';
import { parseDelay, parseSignal } from '../../../../agent/shutdown/logind.ts';
import { type Logind, NodeShutdown } from '../../../../agent/shutdown/node-shutdown.ts';
import {
  type ShutdownConfig,
  type ShutdownGroup,
  shutdownGroups,
  shutdownSteps,
  wholePeriodMs,
} from '../../../../agent/shutdown/plan.ts';
import { NodeShutdownState } from '../../../../agent/shutdown/shutdown-state.ts';
import type { Pod } from '../../../../client/types.ts';
import { settle } from '../../../sim/clock.ts';
import { FakeNode, makePod } from '../../../sim/fakes.ts';

const CRITICAL = 2_000_000_000;
const none: ShutdownConfig = {
  shutdownGracePeriod: 0,
  shutdownGracePeriodCriticalPods: 0,
  shutdownGracePeriodByPodPriority: [],
};
const group = (priority: number, shutdownGracePeriodSeconds: number): ShutdownGroup => ({
  priority,
  shutdownGracePeriodSeconds,
});

describe('the groups', () => {
  it.each<[string, Partial<ShutdownConfig>, readonly ShutdownGroup[]]>([
    ['are none where nothing is configured', {}, []],
    [
      'are two by the two periods: the critical pods’ part comes last and is taken from the whole',
      { shutdownGracePeriod: 30_000, shutdownGracePeriodCriticalPods: 10_000 },
      [group(0, 20), group(CRITICAL, 10)],
    ],
    [
      'are as configured, from the least important on',
      { shutdownGracePeriodByPodPriority: [group(100, 5), group(-10, 1), group(0, 60)] },
      [group(-10, 1), group(0, 60), group(100, 5)],
    ],
  ])('%s', (_, config, expected) => expect(shutdownGroups({ ...none, ...config })).toEqual(expected));

  it('hold the shutdown back as long as all of them take', () => {
    expect(wholePeriodMs([group(0, 20), group(CRITICAL, 10)])).toBe(30_000);
  });
});

describe('the steps', () => {
  const groups = [group(0, 20), group(1000, 5), group(CRITICAL, 10)];
  const pod = (name: string, priority: number | undefined, grace = 30): Pod =>
    makePod(name, {
      terminationGracePeriodSeconds: grace,
      ...(priority === undefined ? {} : { priority }),
    });
  const output = (...pods: Pod[]): string[] =>
    shutdownSteps(groups, pods).map(
      (step) =>
        `${step.limitSeconds}: ${step.pods.map((one) => `${one.pod.metadata.name} ${one.graceSeconds}`).join(', ')}`,
    );
  it.each<[string, Pod[], string[]]>([
    [
      'begin with the least important',
      [pod('c', CRITICAL), pod('a', 0), pod('b', 1500)],
      ['20: a 20', '5: b 5', '10: c 10'],
    ],
    ['take no time for a group without pods', [pod('c', CRITICAL + 1000)], ['10: c 10']],
    ['count a pod without a priority as 0', [pod('a', undefined)], ['20: a 20']],
    ['put what is below every group into the first', [pod('low', -5)], ['20: low 20']],
    ['put what is between two groups into the lower', [pod('mid', 999)], ['20: mid 20']],
    ['give a pod no more than it asks for itself', [pod('quick', 0, 3)], ['20: quick 3']],
  ])('%s', (_, pods, expected) => expect(output(...pods)).toEqual(expected));
});

describe('what logind says', () => {
  it('is a delay in microseconds', () => {
    expect(parseDelay('t 5000000\n')).toBe(5_000);
    expect(() => parseDelay('s "later"')).toThrow('not understood');
  });
  const signal = (data: unknown, member = 'PrepareForShutdown'): string =>
    `{"type":"signal","endian":"l","flags":1,"version":1,"cookie":2,"timestamp-realtime":1795243143849384,"sender":":1.1","path":"/org/freedesktop/login1","interface":"org.freedesktop.login1.Manager","member":"${member}","payload":{"type":"b","data":${JSON.stringify(data)}}}`;
  it.each<[string, boolean | undefined]>([
    [signal([true]), true],
    [signal([false]), false],
    [signal([true], 'PrepareForSleep'), undefined],
    [signal([]), undefined],
    ['Monitoring bus message stream.', undefined],
  ])('%s begins a shutdown: %s', (line, expected) => expect(parseSignal(line)).toBe(expected));
});

class FakeLogind implements Logind {
  delayMs = 5_000;
  mostMs = Number.POSITIVE_INFINITY;
  retained = 0;
  releases = 0;
  failures = 0;
  announce: (begins: boolean) => void = () => undefined;
  lose: () => void = () => undefined;

  inhibitDelayMs(): Promise<number> {
    if (this.failures-- > 0) return Promise.reject(new Error('Failed to connect to bus'));
    return Promise.resolve(this.delayMs);
  }
  allowDelay(ms: number): Promise<void> {
    this.delayMs = Math.min(ms, this.mostMs);
    return Promise.resolve();
  }
  inhibit() {
    this.retained++;
    return Promise.resolve({
      release: () => {
        this.retained--;
        this.releases++;
      },
    });
  }
  watch(onShutdown: (begins: boolean) => void, signal: AbortSignal) {
    this.announce = onShutdown;
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.lose = resolve;
    signal.addEventListener('abort', () => resolve());
    return Promise.resolve({ ended });
  }
}

describe('a node whose machine goes down', () => {
  let node: FakeNode;
  let logind: FakeLogind;
  let state: NodeShutdownState;
  let changes: number;
  let output: string[];
  const abort = { controller: new AbortController() };

  beforeEach(async () => {
    logind = new FakeLogind();
    changes = 0;
    output = [];
    abort.controller = new AbortController();
    state = new NodeShutdownState();
    state.changed.subscribe(() => changes++);
    const options: Partial<PodsAgentOptions> = { config: { admit: [state.admit] } };
    node = new FakeNode(options);
    const shutdown = new NodeShutdown({
      logind,
      groups: [group(0, 20), group(CRITICAL, 10)],
      pods: {
        activePods: () => node.agent.activePods(),
        endPod: (uid, end) => node.agent.endPod(uid, end),
      },
      recorder: node.recorder,
      nodeName: 'node-1',
      clock: node.clock,
      log: (_, message, fields) =>
        output.push(`${message}${fields?.['error'] === undefined ? '' : `: ${fields['error']}`}`),
      state,
    });
    void shutdown.run(abort.controller.signal);
    await settle();
  });
  afterEach(() => {
    abort.controller.abort();
    node.agent.stop();
    expect(node.violations).toEqual([]);
  });

  async function running(name: string, priority?: number): Promise<void> {
    node.api.put(makePod(name, { ...(priority === undefined ? {} : { priority }) }));
    await node.clock.until(() => node.api.status(name).phase === 'Running');
  }

  it('has logind wait as long as its pods may take, and holds the shutdown back from the start', () => {
    expect(logind.delayMs).toBe(30_000);
    expect(logind.retained).toBe(1);
  });

  it('ends its pods in order with the kubelet’s message, and only then releases the lock', async () => {
    await running('plain');
    await running('critical', CRITICAL);
    node.runtime.latency.set('stopContainer', 2_000);
    logind.announce(true);
    expect(state.notReadyReason()).toBe('node is shutting down');
    expect(changes).toBe(1);
    await node.clock.until(() => node.api.status('plain').phase === 'Failed');
    expect(node.api.status('plain')).toMatchObject({
      reason: 'Terminated',
      message: 'Pod was terminated in response to imminent node shutdown.',
    });
    expect(node.api.condition('plain', 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'TerminationByKubelet',
      message: 'Pod was terminated in response to imminent node shutdown.',
    });
    expect(node.api.status('critical').phase).toBe('Running');
    expect(logind.retained).toBe(1);
    await node.clock.until(() => logind.retained === 0);
    expect(node.api.status('critical')).toMatchObject({ phase: 'Failed', reason: 'Terminated' });
    expect(node.recorder.of('Shutdown')).toEqual(['Shutdown manager detected shutdown event']);
  });

  it('gives each pod no more time than its group has', async () => {
    await running('plain');
    logind.announce(true);
    await node.clock.until(() => logind.retained === 0);
    const stop = node.runtime.calls.find(({ call }) => call === 'stopContainer');
    expect(stop?.detail).toBe(20);
  });

  it('goes on to the critical pods when the others take too long, and never waits for ever', async () => {
    await running('stuck');
    await running('critical', CRITICAL);
    node.runtime.latency.set('stopContainer', 600_000);
    const began = node.clock.now();
    logind.announce(true);
    await node.clock.until(() => logind.retained === 0, 120_000);
    expect(node.clock.now() - began).toBe(30_000);
    expect(output.filter((line) => line === 'Shutdown manager pod killing time out')).toHaveLength(2);
  });

  it('refuses new pods', async () => {
    logind.announce(true);
    node.api.put(makePod('late'));
    await settle();
    expect(node.api.status('late')).toMatchObject({
      phase: 'Failed',
      reason: 'NodeShutdown',
      message: 'Pod was rejected: Pod was rejected as the node is shutting down.',
    });
    expect(node.runtime.count('runPodSandbox')).toBe(0);
  });

  it('takes pods again when the shutdown is called off, and holds the next one back', async () => {
    logind.announce(true);
    await settle();
    expect(logind.retained).toBe(0);
    logind.announce(false);
    await settle();
    expect(state.notReadyReason()).toBeUndefined();
    expect(logind.retained).toBe(1);
    expect(changes).toBe(2);
    await running('again');
  });

  it('listens again when logind goes away, with growing pauses', async () => {
    logind.failures = 2;
    logind.lose();
    await settle();
    expect(logind.retained).toBe(0);
    await node.clock.advance(8_000);
    expect(logind.retained).toBe(1);
    expect(output.filter((line) => line.includes('Failed to connect to bus'))).toHaveLength(2);
  });

  it('releases the lock when the agent stops', async () => {
    abort.controller.abort();
    await settle();
    expect(logind.retained).toBe(0);
  });

  it('says so when logind will not wait that long', async () => {
    abort.controller.abort();
    const stubborn = new FakeLogind();
    stubborn.mostMs = 6_000;
    const controller = new AbortController();
    const other = new NodeShutdown({
      logind: stubborn,
      groups: [group(0, 20)],
      pods: node.agent,
      recorder: node.recorder,
      nodeName: 'node-1',
      clock: node.clock,
      log: (_, message, fields) => output.push(`${message}: ${fields?.['error']}`),
      state: new NodeShutdownState(),
    });
    void other.run(controller.signal);
    await settle();
    expect(output.at(-1)).toMatch(
      /unable to update logind InhibitDelayMaxSec to 20s .* current value .* \(6s\) is less/,
    );
    expect(stubborn.retained).toBe(0);
    controller.abort();
  });
});
