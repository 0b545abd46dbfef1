// The exporter against a real collector (OTLP over gRPC on loopback).

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startSpanExporter } from '../../../../agent/tracing/exporter.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { type CollectedSpan, type Collector, startCollector } from '../../../otlp-collector/collector.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const pod = { namespace: 'demo', name: 'web', uid: 'u-1' };
const MILLION = 1_000_000;

let collector: Collector;
let logged: string[];
let tracer: Tracer;
/** Stands still: closing waits until the collector has everything, however long that takes. */
let clock: VirtualClock;

beforeEach(async () => {
  collector = await startCollector();
  logged = [];
  tracer = new Tracer();
  clock = new VirtualClock();
});
afterEach(() => collector.close());

function start(samplingRatePerMillion: number, url = `http://${collector.endpoint}`): { close(): Promise<void> } {
  const log = (_level: string, message: string): void => void logged.push(message);
  return startSpanExporter({
    url,
    samplingRatePerMillion,
    nodeName: 'n1',
    key: 'run-1',
    tracer,
    clock,
    log,
  });
}

function named(name: string): CollectedSpan {
  const found = collector.spans.find((span) => span.name === name);
  if (found === undefined)
    throw new Error(`${name} is not among ${collector.spans.map((each) => each.name).join(', ')}`);
  return found;
}

describe('spans at a collector', () => {
  test('have the kubelet’s names and attributes, and the node as their resource', async () => {
    const exporter = start(MILLION);
    await tracer.within({ pod, cause: 'pod added' }, () =>
      tracer.span('worker', 'syncPod', { decided: ['start web'] }, () =>
        tracer.span('cri', 'RunPodSandbox', { attempt: 0 }, async () => {
          await new Promise((resolve) => setImmediate(resolve));
        }),
      ),
    );
    await exporter.close();
    const round = named('syncPod');
    expect(round).toMatchObject({
      kind: 'SPAN_KIND_INTERNAL',
      parentSpanId: '',
      error: undefined,
      resource: { 'service.name': 'kubelet', 'service.instance.id': 'n1', 'k8s.node.name': 'n1' },
      attributes: {
        'k8s.pod.name': 'web',
        'k8s.pod.uid': 'u-1',
        'k8s.namespace.name': 'demo',
        'k8s.pod.update_type': 'create',
        'nodelet.decided': ['start web'],
      },
    });
    expect(named('runtime.v1.RuntimeService/RunPodSandbox')).toMatchObject({
      kind: 'SPAN_KIND_CLIENT',
      traceId: round.traceId,
      parentSpanId: round.spanId,
      attributes: { 'rpc.system': 'grpc', 'rpc.method': 'RunPodSandbox', 'nodelet.attempt': 0 },
    });
    expect(round.endMs).toBeGreaterThanOrEqual(named('runtime.v1.RuntimeService/RunPodSandbox').endMs);
  });

  test('of one outermost span are one trace, however deep; what one caused is another, with a link', async () => {
    const exporter = start(MILLION);
    let origin: readonly number[] = [];
    await tracer.span('worker', 'outer', {}, () =>
      tracer.span('worker', 'middle', {}, () =>
        tracer.span('worker', 'inner', {}, () => {
          origin = tracer.origin();
        }),
      ),
    );
    await tracer.causedBy(origin, {}, () => tracer.span('worker', 'caused', {}, () => undefined));
    await exporter.close();
    expect(named('inner')).toMatchObject({ traceId: named('outer').traceId, parentSpanId: named('middle').spanId });
    expect(named('caused').traceId).not.toBe(named('outer').traceId);
    expect(named('caused').links).toEqual([{ traceId: named('outer').traceId, spanId: named('inner').spanId }]);
  });

  test('that failed have the error', async () => {
    const exporter = start(MILLION);
    const failing = tracer.span('cri', 'StopContainer', {}, async () => {
      await new Promise((resolve) => setImmediate(resolve));
      throw new Error('no such container');
    });
    await expect(failing).rejects.toThrow('no such container');
    await exporter.close();
    expect(named('runtime.v1.RuntimeService/StopContainer').error).toBe('no such container');
  });

  test('are those of the sampled traces, whole traces each', async () => {
    const exporter = start(MILLION / 4);
    for (let n = 0; n < 400; n++) {
      await tracer.span('worker', 'round', { n }, () => tracer.span('worker', 'action', { n }, () => undefined));
    }
    await exporter.close();
    const rounds = collector.spans.filter(({ name }) => name === 'round');
    const actions = collector.spans.filter(({ name }) => name === 'action');
    // 100 are to be expected; six standard deviations.
    expect(rounds.length).toBeGreaterThan(48);
    expect(rounds.length).toBeLessThan(152);
    const numbers = (spans: readonly CollectedSpan[]): unknown[] =>
      spans.map(({ attributes }) => attributes['nodelet.n']);
    expect(numbers(actions).sort()).toEqual(numbers(rounds).sort());
  });
});

test('a call carries the span it is made in, once spans are exported', async () => {
  const seen: (string | undefined)[] = [tracer.traceparent()];
  const look = (): void => void seen.push(tracer.traceparent());
  await tracer.span('worker', 'before', {}, look);
  const exporter = start(MILLION);
  look();
  await tracer.span('worker', 'syncPod', {}, () => tracer.span('cri', 'ListContainers', {}, look));
  await exporter.close();
  const inside = collector.spans.find(({ parentSpanId }) => parentSpanId !== '');
  expect(seen).toEqual([undefined, undefined, undefined, `00-${inside?.traceId}-${inside?.spanId}-01`]);
});

test('a collector that is away is a line in the log, and holds up nothing', async () => {
  collector.close();
  const exporter = start(MILLION);
  await tracer.span('worker', 'syncPod', {}, () => undefined);
  // The exporter tries for longer than closing waits; its failure is logged by whichever comes first.
  const closed = exporter.close();
  await clock.advance(1_000);
  await closed;
  expect(collector.spans).toEqual([]);
});
