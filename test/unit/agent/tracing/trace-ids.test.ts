import { describe, expect, test } from 'vitest';
import { TraceIds } from '../../../../agent/tracing/trace-ids.ts';

const all = new TraceIds('run-1', () => true);

describe('ids of exported spans', () => {
  test('follow from the number of the span and the run of the agent', () => {
    expect(all.traceId(7)).toMatch(/^[0-9a-f]{32}$/);
    expect(all.spanId(7)).toMatch(/^[0-9a-f]{16}$/);
    expect(new TraceIds('run-1', () => true).traceId(7)).toBe(all.traceId(7));
    expect(new TraceIds('run-2', () => true).traceId(7)).not.toBe(all.traceId(7));
    expect(all.traceId(8)).not.toBe(all.traceId(7));
  });

  test('of a thousand spans are a thousand', () => {
    const numbers = Array.from({ length: 1000 }, (_, n) => n);
    expect(new Set(numbers.map((n) => all.spanId(n))).size).toBe(1000);
    expect(new Set(numbers.map((n) => all.traceId(n))).size).toBe(1000);
  });

  test.each([
    [true, '01'],
    [false, '00'],
  ])('a traceparent has whether the trace is sampled: %s', (sampled, flags) => {
    const ids = new TraceIds('run-1', () => sampled);
    expect(ids.isSampled(3)).toBe(sampled);
    expect(ids.traceparent(3, 5)).toBe(`00-${ids.traceId(3)}-${ids.spanId(5)}-${flags}`);
  });
});
