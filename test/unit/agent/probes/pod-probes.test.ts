import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PodUID, SandboxId } from '../../../../agent/ports/runtime.ts';
import type { RunningPodProbes } from '../../../../agent/probes/options.ts';
import type { ProbeOutcome } from '../../../../agent/probes/outcome.ts';
import { createPodProbes } from '../../../../agent/probes/pod-probes.ts';
import type { ProbeRunner } from '../../../../agent/probes/runners.ts';
import type { ContainerStatus, PodSpec } from '../../../../client/types.ts';
import { epochMs, systemClock } from '../../../../lib/clock.ts';
import { type Span, Tracer } from '../../../../lib/trace.ts';
import { settle } from '../../../sim/clock.ts';
import { FakeNode, makePod } from '../../../sim/fakes.ts';
import { container } from '../server/support.ts';

const OK: ProbeOutcome = { kind: 'success', output: 'ok' };
const BAD: ProbeOutcome = { kind: 'failure', output: 'HTTP probe failed with statuscode: 500' };

let node: FakeNode;
let probes: RunningPodProbes;
let spans: Span[];
/** What each port answers, and every time it was asked (virtual epoch ms). */
let answers: Map<number, ProbeOutcome | Promise<ProbeOutcome> | (() => ProbeOutcome) | 'never'>;
let requested: { port: number; at: number }[];

beforeEach(() => {
  answers = new Map();
  requested = [];
  spans = [];
  const tracer = new Tracer();
  tracer.subscribe((span) => spans.push(span));
  node = new FakeNode(({ clock, runtime, recorder }) => {
    const tcpSocket: ProbeRunner<{ port: number }> = ({ port }, _timeout, signal) => {
      requested.push({ port, at: clock.now() });
      const answer = answers.get(port) ?? OK;
      if (answer !== 'never') return Promise.resolve(typeof answer === 'function' ? answer() : answer);
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    probes = createPodProbes({
      runtime,
      recorder,
      clock,
      tracer,
      hostIPs: () => ['192.0.2.1'],
      random: () => 0.5,
      runners: { tcpSocket },
    });
    return { probes };
  });
});

afterEach(() => {
  expect(node.violations).toEqual([]);
  node.agent.stop();
  probes.close();
});

const probe = (port: number, more: object = {}) => ({ tcpSocket: { port }, ...more });
const web = (more: object) => ({ name: 'web', image: 'nginx:stable', ...more });

function status(name = 'web'): ContainerStatus | undefined {
  const { containerStatuses = [], initContainerStatuses = [] } = node.api.status('pod');
  return [...containerStatuses, ...initContainerStatuses].find((each) => each.name === name);
}

async function run(spec: Partial<PodSpec>): Promise<void> {
  node.api.put(makePod('pod', spec));
  await node.clock.until(() => status()?.state?.running !== undefined || status('car')?.state?.running !== undefined);
}

function times(port: number): number[] {
  const [first] = requested;
  return requested.filter((each) => each.port === port).map(({ at }) => at - (first?.at ?? 0));
}

it.each(['readiness', 'liveness', 'startup'])(
  'the first %s probe comes with the container, not a period later',
  async (type) => {
    const requests: string[] = [];
    // The machine's clock: it moves while the probe is made.
    const running = createPodProbes({
      runtime: node.runtime,
      recorder: node.recorder,
      clock: systemClock,
      tracer: new Tracer(),
      hostIPs: () => ['192.0.2.1'],
      runners: {
        tcpSocket: async () => {
          requests.push(type);
          return OK;
        },
      },
    });
    try {
      const pod = makePod('probed', { containers: [web({ [`${type}Probe`]: probe(80, { periodSeconds: 3_600 }) })] });
      const { uid, namespace, name } = pod.metadata;
      const sandbox = { id: 'box' as SandboxId, attempt: 0, createdAt: epochMs(1), ips: ['10.0.0.1'] };
      const now = systemClock.now();
      running.podObserved(pod, {
        pod: { uid: uid as PodUID, namespace, name },
        sandboxes: [{ ...sandbox, state: 'ready', hostNetwork: false, runtimeHandler: '' }],
        containers: [{ ...container('abc', '/log'), name: 'web', createdAt: now, startedAt: now }],
        observedAt: now,
      });
      await vi.waitFor(() => expect(requests).toEqual([type]));
    } finally {
      running.close();
    }
  },
);

describe('readiness', () => {
  it('follows the verdicts, and reaches the API in the instant of the result', async () => {
    answers.set(80, BAD);
    await run({ containers: [web({ readinessProbe: probe(80, { periodSeconds: 5, failureThreshold: 1 }) })] });
    await node.clock.advance(1_000);
    expect(status()).toMatchObject({ started: true, ready: false });
    expect(node.recorder.of('Unhealthy')).toEqual(['Readiness probe failed: HTTP probe failed with statuscode: 500']);
    expect(node.recorder.events.at(-1)?.fieldPath).toBe('spec.containers{web}');
    answers.set(80, OK);
    await node.clock.until(() => status()?.ready === true);
    const last = requested.at(-1)?.at ?? 0;
    expect(node.clock.now()).toBe(last);
    expect(node.api.condition('pod', 'Ready')?.status).toBe('True');
    answers.set(80, BAD);
    await node.clock.until(() => status()?.ready === false);
    expect(node.clock.now()).toBe(requested.at(-1)?.at);
    expect(node.api.condition('pod', 'Ready')).toMatchObject({ status: 'False', reason: 'ContainersNotReady' });
  });

  it('waits initialDelaySeconds and then keeps to its period', async () => {
    await run({ containers: [web({ readinessProbe: probe(80, { initialDelaySeconds: 7, periodSeconds: 3 }) })] });
    const start = node.clock.now();
    await node.clock.advance(20_000);
    const since = requested.map(({ at }) => Math.round((at - start) / 1000));
    expect(since).toEqual([7, 10, 13, 16, 19]);
  });

  it('is asked one run at a time, also when a run takes longer than the period', async () => {
    answers.set(80, 'never');
    await run({ containers: [web({ readinessProbe: probe(80, { periodSeconds: 1 }) })] });
    await node.clock.advance(30_000);
    expect(requested).toHaveLength(1);
  });

  it('goes on while the pod is being stopped, and ends with the container', async () => {
    node.runtime.ignoresTerm.add('web');
    await run({ containers: [web({ readinessProbe: probe(80, { periodSeconds: 2, failureThreshold: 1 }) })] });
    await node.clock.advance(1_000);
    node.api.delete('pod', 10);
    await node.clock.advance(1_000);
    answers.set(80, BAD);
    await node.clock.advance(5_000);
    expect(node.api.condition('pod', 'Ready')?.status).toBe('False');
    await node.clock.until(() => !node.api.has('pod'));
    const count = requested.length;
    await node.clock.advance(60_000);
    expect(requested).toHaveLength(count);
  });
});

describe('liveness', () => {
  const liveness = (more: object = {}) => web({ livenessProbe: probe(80, { periodSeconds: 10, ...more }) });

  it('kills the container in the instant of the deciding result, and not before', async () => {
    node.runtime.ignoresTerm.add('web');
    answers.set(80, BAD);
    await run({ containers: [liveness({ failureThreshold: 3 })] });
    await node.clock.until(() => node.recorder.of('Killing').length > 0);
    expect(requested).toHaveLength(3);
    expect(node.clock.now()).toBe(requested.at(-1)?.at);
    expect(node.recorder.of('Killing')).toEqual(['Container web failed liveness probe, will be restarted']);
    expect(node.recorder.of('Unhealthy')).toHaveLength(3);
  });

  it('has the container stopped with no timer between the result and the call, and started with none after it', async () => {
    const { promise: result, resolve } = Promise.withResolvers<ProbeOutcome>();
    answers.set(80, result);
    await run({ containers: [liveness({ failureThreshold: 1 })] });
    await node.clock.advance(700);
    expect(requested).toHaveLength(1);
    const decided = node.clock.now();
    answers.set(80, OK);
    resolve(BAD);
    // Whatever can happen without time passing.
    await settle();
    expect(node.clock.now()).toBe(decided);
    const calls = node.runtime.calls.filter(({ at }) => at === decided);
    expect(calls.map(({ call }) => call)).toContain('stopContainer');
    expect(status()).toMatchObject({ restartCount: 1, state: { running: {} } });
  });

  it('has a container restarted at once as long as its end before lies longer back than the back-off', async () => {
    await run({ containers: [liveness({ failureThreshold: 1 })] });
    const badOnce = (): ProbeOutcome => {
      answers.set(80, OK);
      return BAD;
    };
    const waits: number[] = [];
    for (let round = 1; round <= 5; round++) {
      await node.clock.advance(25_000);
      answers.set(80, badOnce);
      await node.clock.until(() => node.recorder.of('Killing').length === round);
      const killed = node.clock.now();
      await node.clock.until(() => status()?.restartCount === round && status()?.state?.running !== undefined, 60_000);
      waits.push(node.clock.now() - killed);
    }
    // Before the first there was none; then each depends on the end before: 10 s and 20 s are over, 40 s are not.
    expect(waits).toEqual([0, 0, 0, 0, 40_000]);
  });

  it('asks a restarted container anew, with its count from the start', async () => {
    node.runtime.ignoresTerm.add('web');
    answers.set(80, BAD);
    await run({ containers: [liveness({ failureThreshold: 2 })] });
    await node.clock.until(() => node.recorder.of('Killing').length === 2);
    expect(status()?.restartCount).toBe(1);
    expect(requested).toHaveLength(4);
  });

  it('grants the probe its own grace period', async () => {
    node.runtime.ignoresTerm.add('web');
    answers.set(80, BAD);
    await run({ containers: [liveness({ failureThreshold: 1, terminationGracePeriodSeconds: 4 })] });
    await node.clock.until(() => node.runtime.count('stopContainer') > 0);
    expect(node.runtime.calls.findLast(({ call }) => call === 'stopContainer')?.detail).toBe(4);
  });

  it('with an error kills nothing, is tried three times at once, and records an event', async () => {
    answers.set(80, { kind: 'error', state: 'unknown', message: 'boom' });
    await run({ containers: [liveness({ failureThreshold: 1 })] });
    await node.clock.advance(5_000);
    expect(requested).toHaveLength(3);
    expect(node.recorder.of('Killing')).toEqual([]);
    expect(node.recorder.of('Unhealthy')).toEqual(['Liveness probe errored and resulted in unknown state: boom']);
  });

  it('of a container that has ended meanwhile says nothing', async () => {
    answers.set(80, () => {
      // The event of its exit comes later than the probe's error.
      node.runtime.losesEvents = true;
      if (node.runtime.running('web') !== undefined) node.runtime.exit('web', 1);
      return { kind: 'error', state: 'unknown', message: 'the container does not run' };
    });
    await run({ restartPolicy: 'Never', containers: [liveness({ failureThreshold: 1, initialDelaySeconds: 5 })] });
    await node.clock.until(() => node.api.status('pod').phase === 'Failed', 120_000);
    expect(requested.length).toBeGreaterThan(0);
    expect(node.recorder.of('Unhealthy')).toEqual([]);
  });

  it('ends with the deletion of the pod', async () => {
    node.runtime.ignoresTerm.add('web');
    await run({ containers: [liveness({ failureThreshold: 1, periodSeconds: 1 })] });
    node.api.delete('pod', 20);
    await settle();
    answers.set(80, BAD);
    const count = requested.length;
    await node.clock.advance(15_000);
    expect(requested).toHaveLength(count);
  });
});

describe('startup', () => {
  const all = web({
    startupProbe: probe(1, { periodSeconds: 2, failureThreshold: 4 }),
    livenessProbe: probe(2, { periodSeconds: 5 }),
    readinessProbe: probe(3, { periodSeconds: 5 }),
  });

  it('holds the others until it succeeds; readiness is then asked at once', async () => {
    answers.set(1, BAD);
    await run({ containers: [all] });
    await node.clock.advance(3_000);
    expect(requested.map(({ port }) => port)).toEqual([1, 1]);
    expect(status()).toMatchObject({ started: false, ready: false });
    answers.set(1, OK);
    await node.clock.until(() => status()?.ready === true);
    expect(status()?.started).toBe(true);
    expect(times(3)).toEqual([times(1).at(-1)]);
    await node.clock.advance(20_000);
    expect(times(1)).toHaveLength(3);
    expect(times(2).length).toBeGreaterThanOrEqual(4);
  });

  it('that never succeeds has the container restarted', async () => {
    answers.set(1, BAD);
    await run({ containers: [all] });
    await node.clock.until(() => status()?.restartCount === 1);
    expect(node.recorder.of('Killing')).toEqual(['Container web failed startup probe, will be restarted']);
    expect(times(2)).toEqual([]);
  });
});

describe('a native sidecar', () => {
  it('has all three probes, and its startup probe gates what comes after it', async () => {
    answers.set(1, BAD);
    const car = {
      name: 'car',
      image: 'busybox:stable',
      restartPolicy: 'Always',
      startupProbe: probe(1, { periodSeconds: 1, failureThreshold: 10 }),
      livenessProbe: probe(2, { periodSeconds: 1, failureThreshold: 1 }),
      readinessProbe: probe(3, { periodSeconds: 1 }),
    };
    await run({ initContainers: [car], containers: [web({})] });
    await node.clock.advance(3_000);
    expect(status('web')?.state?.running).toBeUndefined();
    answers.set(1, OK);
    await node.clock.until(() => status('web')?.state?.running !== undefined && status('car')?.ready === true);
    answers.set(2, BAD);
    await node.clock.until(() => (status('car')?.restartCount ?? 0) > 0);
    expect(node.recorder.of('Killing')[0]).toBe('Init container car failed liveness probe');
    expect(status('web')?.restartCount).toBe(0);
  });
});

describe('an agent that starts again', () => {
  it('keeps ready what was ready, and spreads the first runs over a period', async () => {
    const readinessProbe = probe(80, { periodSeconds: 10, failureThreshold: 1 });
    await run({ containers: [web({ readinessProbe })] });
    await node.clock.until(() => status()?.ready === true);
    await node.clock.advance(1_000);
    answers.set(80, BAD);
    const before = node.clock.now();
    requested.length = 0;
    probes.close();
    await node.restartAgent();
    await node.clock.advance(1_000);
    expect(status()?.ready).toBe(true);
    await node.clock.until(() => status()?.ready === false);
    expect(requested).toHaveLength(1);
    expect((requested[0]?.at ?? 0) - before).toBeCloseTo(5_000, -2);
  });
});

describe('many probes', () => {
  it('of thousands of containers wait on few timers', async () => {
    await run({ containers: [web({ readinessProbe: probe(80) })] });
    await node.clock.advance(1_000);
    const one = node.clock.pending;
    const containers = Array.from({ length: 1_000 }, (_, n) => ({
      ...web({ livenessProbe: probe(81), readinessProbe: probe(82) }),
      name: `c${n}`,
    }));
    const pod = makePod('many', { containers });
    const sample = [...node.runtime.containers.values()][0];
    if (sample === undefined) throw new Error('nothing runs');
    const instances = containers.map(({ name }, n) => ({
      ...sample,
      name,
      id: `${sample.id}-${n}` as typeof sample.id,
    }));
    const other = { ...sample.pod, uid: 'uid-many' as typeof sample.pod.uid, name: 'many' };
    const sandboxes = [...node.runtime.sandboxes.values()];
    probes.podObserved(pod, { pod: other, sandboxes, containers: instances, observedAt: node.clock.now() });
    await settle();
    expect(requested.filter(({ port }) => port > 80)).toHaveLength(2_000);
    expect(node.clock.pending).toBe(one);
    probes.podRemoved(other.uid);
  });
});

it('every run is a span of its pod, with what came of it', async () => {
  answers.set(80, BAD);
  await run({ containers: [web({ readinessProbe: probe(80) })] });
  await node.clock.advance(1_000);
  expect(spans).toMatchObject([
    {
      kind: 'probe',
      name: 'readiness',
      cause: 'readiness probe',
      pod: { name: 'pod', namespace: 'demo', uid: 'uid-pod' },
      attributes: { container: 'web', handler: 'tcpSocket', result: 'failure' },
    },
  ]);
});
