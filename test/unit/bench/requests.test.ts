import { describe, expect, test } from 'vitest';
import { readHead, requestBytes } from '../../bench/apiserver/requests.ts';
import { linesIn } from '../../bench/apiserver/watching.ts';
import { holds, type Load, ratesOf } from '../../bench/scale/load.ts';

test('a request is whole, with its length in bytes and its caller', () => {
  const bytes = requestBytes({ method: 'POST', path: '/a', body: { b: 'ü' }, token: 't' }).toString();
  expect(bytes).toContain('POST /a HTTP/1.1\r\n');
  expect(bytes).toContain('Authorization: Bearer t\r\n');
  expect(bytes.endsWith('Content-Length: 10\r\n\r\n{"b":"ü"}')).toBe(true);
  expect(requestBytes({ method: 'GET', path: '/' }).toString().endsWith('\r\n\r\n')).toBe(true);
});

test('of a response the code and the length are read, and one without a length is an error', () => {
  expect(readHead('HTTP/1.1 201 Created\r\nContent-Length: 12\r\nx: y')).toEqual({ code: 201, length: 12 });
  expect(() => readHead('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked')).toThrow(RangeError);
});

test.each([
  ['', 0],
  ['a\n', 1],
  ['a\nb', 1],
  ['\n\n', 2],
])('lines that end in %j: %i', (text, count) => expect(linesIn(text)).toBe(count));

describe('the load of a cluster', () => {
  test('has the rates of kubelets', () =>
    expect(ratesOf({ nodes: 3000, pods: 30_000 })).toEqual({
      'Lease renewed': 300,
      'Node reported': 10,
      'pod status': 100,
      'ConfigMap read': 30,
    }));

  const times = (late: number): number[] => Array.from({ length: 200 }, (_, index) => (index < late ? 1001 : 1));
  const load = (more: Partial<Load>, late = 0): Load => ({
    factor: 1,
    times: { 'Lease renewed': times(late), 'Node reported': [], 'pod status': times(0), 'ConfigMap read': [] },
    own: times(0),
    all: times(0),
    seconds: 1,
    missing: 0,
    cpuPercent: 1,
    residentMiB: 1,
    ...more,
  });
  test.each<[string, Load, boolean]>([
    ['nothing late', load({}), true],
    ['one in a hundred late', load({}, 2), true],
    ['more than that', load({}, 3), false],
    ['late events', load({ all: times(3) }), false],
    ['an event that did not come', load({ missing: 1 }), false],
  ])('holds or not: %s', (_what, found, expected) => expect(holds(found)).toBe(expected));
});
