import { describe, expect, test } from 'vitest';
import { ChunkedBody, readHead, requestBytes } from '../../bench/apiserver/requests.ts';
import { linesIn } from '../../bench/apiserver/watching.ts';
import { holds, type Load, ratesOf } from '../../bench/scale/load.ts';

test('a request is whole, with its length in bytes and its caller', () => {
  const bytes = requestBytes({ method: 'POST', path: '/a', body: { b: 'ü' }, token: 't' }).toString();
  expect(bytes).toContain('POST /a HTTP/1.1\r\n');
  expect(bytes).toContain('Authorization: Bearer t\r\n');
  expect(bytes.endsWith('Content-Length: 10\r\n\r\n{"b":"ü"}')).toBe(true);
  expect(requestBytes({ method: 'GET', path: '/' }).toString().endsWith('\r\n\r\n')).toBe(true);
});

test('of a response the code and the length are read, and one without an end is an error', () => {
  expect(readHead('HTTP/1.1 201 Created\r\nContent-Length: 12\r\nx: y')).toEqual({ code: 201, length: 12 });
  const chunked = { code: 200, length: 'chunked' };
  expect(readHead('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked')).toEqual(chunked);
  expect(() => readHead('HTTP/1.1 200 OK\r\nx: y')).toThrow(RangeError);
});

test.each([
  ['one chunk', '3\r\na\nb\r\n0\r\n\r\n'],
  ['sizes in hexadecimal, extensions', 'A;x=y\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n'],
  ['trailers', '1\r\na\r\n0\r\nname: value\r\n\r\n'],
])('a body in chunks ends with its last byte, whole or byte by byte: %s', (_, text) => {
  expect(new ChunkedBody().take(Buffer.from(text))).toBe(true);
  const body = new ChunkedBody();
  const ends = Array.from(text, (byte) => body.take(Buffer.from(byte)));
  expect(ends.indexOf(true)).toBe(text.length - 1);
});

test('what is no chunk is an error', () =>
  expect(() => new ChunkedBody().take(Buffer.from('{"kind":"Pod"}\r\n'))).toThrow(RangeError));

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
