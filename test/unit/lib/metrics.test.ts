import { expect, test } from 'vitest';
import { epochMs } from '../../../lib/clock.ts';
import { Counter, exponentialBuckets, Histogram, labelText, MetricsText, valueText } from '../../../lib/metrics.ts';

test.each([
  [0, '0'],
  [1.5, '1.5'],
  [1e21, '1e+21'],
  [Number.POSITIVE_INFINITY, '+Inf'],
  [Number.NEGATIVE_INFINITY, '-Inf'],
  [Number.NaN, 'NaN'],
])('%s is written as %s', (value, text) => {
  expect(valueText(value)).toBe(text);
});

test('labels are escaped', () => {
  expect(labelText({ a: 'x', b: 'back\\slash "quote"\nline' })).toBe('a="x",b="back\\\\slash \\"quote\\"\\nline"');
  expect(labelText({})).toBe('');
});

test('a family without samples is not on the page', () => {
  const page = new MetricsText();
  page.family('empty', 'gauge', 'Nothing.');
  page.family('some_total', 'counter', 'Something.');
  page.sample(1);
  page.sample(2, 'a="b"', epochMs(1_700_000_000_123.9));
  expect(String(page)).toBe(
    '# HELP some_total Something.\n# TYPE some_total counter\nsome_total 1\nsome_total{a="b"} 2 1700000000123\n',
  );
});

test('a counter counts by its labels, and forgets series', () => {
  const counter = new Counter('c_total', 'Help.');
  counter.inc({ pod: 'a' });
  counter.inc({ pod: 'a' }, 2);
  counter.inc({ pod: 'b' });
  counter.removeWhere(labelText({ pod: 'b' }));
  const page = new MetricsText();
  counter.show(page);
  expect(String(page)).toBe('# HELP c_total Help.\n# TYPE c_total counter\nc_total{pod="a"} 3\n');
});

test('a histogram has cumulative buckets, the sum and the count', () => {
  const histogram = new Histogram('h', 'Help.', [0.5, 1]);
  for (const value of [0.1, 0.5, 0.7, 3]) histogram.observe(value, { x: 'y' });
  const page = new MetricsText();
  histogram.show(page);
  expect(String(page).split('\n').slice(2)).toEqual([
    'h_bucket{x="y",le="0.5"} 2',
    'h_bucket{x="y",le="1"} 3',
    'h_bucket{x="y",le="+Inf"} 4',
    'h_sum{x="y"} 4.3',
    'h_count{x="y"} 4',
    '',
  ]);
});

test('exponential buckets', () => {
  expect(exponentialBuckets(1, 2, 4)).toEqual([1, 2, 4, 8]);
});
