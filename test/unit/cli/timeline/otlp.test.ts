import { expect, test } from 'vitest';
import { causesOf } from '../../../../cli/timeline/causes.ts';
import { type OtlpSpan, toOtlp } from '../../../../cli/timeline/otlp.ts';
import { POD, podStart, span, T0 } from './support.ts';

const spans = [
  ...podStart(),
  span(90, 'cri', 'StopContainer', 500, 501, { outcome: 'error', error: 'no such container', cause: 'pod updated' }),
];
const file = toOtlp(spans, causesOf(spans), 'test');
const all: readonly OtlpSpan[] = file.resourceSpans[0]?.scopeSpans[0]?.spans ?? [];

function named(name: string): OtlpSpan {
  const found = all.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no span "${name}"`);
  return found;
}

test('ids are hexadecimal in OTLP’s lengths, times are nanoseconds as texts', () => {
  for (const { traceId, spanId, startTimeUnixNano, endTimeUnixNano } of all) {
    expect(traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(spanId).toMatch(/^[0-9a-f]{16}$/);
    expect(BigInt(endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(startTimeUnixNano));
  }
  expect(new Set(all.map(({ spanId }) => spanId)).size).toBe(spans.length);
  expect(named('runtime.v1.RuntimeService/RunPodSandbox').startTimeUnixNano).toBe(`${T0 + 20}000000`);
});

test('a pod’s life is one trace: parents are in it, causes are links', () => {
  expect(new Set(all.map(({ traceId }) => traceId)).size).toBe(1);
  expect(named('runtime.v1.RuntimeService/RunPodSandbox').parentSpanId).toBe(named('createSandbox').spanId);
  expect(named('ADD network lab').parentSpanId).toBe(named('runtime.v1.RuntimeService/RunPodSandbox').spanId);
  expect(named('PATCH pods/status').parentSpanId).toBeUndefined();
  expect(named('syncPod').links).toEqual([
    { traceId: named('SyncLoop ADD').traceId, spanId: named('SyncLoop ADD').spanId },
  ]);
});

test('the parent of another pod’s trace is a link', () => {
  const two = [
    span(1, 'worker', 'outer', 0, 9),
    span(2, 'cri', 'inner', 1, 2, { parent: 1, pod: { ...POD, uid: 'u-2' } }),
  ];
  const [outer, inner] = toOtlp(two, causesOf(two), 'test').resourceSpans[0]?.scopeSpans[0]?.spans ?? [];
  expect(inner?.parentSpanId).toBeUndefined();
  expect(inner?.links).toEqual([{ traceId: outer?.traceId, spanId: outer?.spanId }]);
});

test('calls are clients, errors have a status, attributes their types', () => {
  expect([named('runtime.v1.RuntimeService/RunPodSandbox').kind, named('syncPod').kind]).toEqual([3, 1]);
  expect(named('runtime.v1.RuntimeService/StopContainer').status).toEqual({ code: 2, message: 'no such container' });
  const { attributes } = named('syncPod');
  expect(attributes).toContainEqual({ key: 'k8s.pod.update_type', value: { stringValue: 'create' } });
  expect(named('runtime.v1.RuntimeService/RunPodSandbox').attributes).toContainEqual({
    key: 'rpc.method',
    value: { stringValue: 'RunPodSandbox' },
  });
  expect(attributes).toContainEqual({ key: 'k8s.pod.uid', value: { stringValue: 'u-1' } });
  expect(attributes).toContainEqual({ key: 'nodelet.ready', value: { boolValue: false } });
  expect(attributes).toContainEqual({
    key: 'nodelet.decided',
    value: { arrayValue: { values: [{ stringValue: 'createSandbox' }] } },
  });
});
