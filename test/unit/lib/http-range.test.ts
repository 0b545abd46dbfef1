import { expect, test } from 'vitest';
import { parseByteRange } from '../../../lib/http-range.ts';

test.each([
  [undefined, { kind: 'whole' }],
  ['bytes=0-', { kind: 'part', start: 0, end: 100 }],
  ['bytes=10-19', { kind: 'part', start: 10, end: 20 }],
  ['bytes=90-200', { kind: 'part', start: 90, end: 100 }],
  ['bytes=-10', { kind: 'part', start: 90, end: 100 }],
  ['bytes=-200', { kind: 'part', start: 0, end: 100 }],
  ['bytes=100-', { kind: 'unsatisfiable' }],
  ['bytes=-0', { kind: 'unsatisfiable' }],
  ['bytes=20-10', { kind: 'whole' }],
  ['bytes=0-1,5-6', { kind: 'whole' }],
  ['items=0-1', { kind: 'whole' }],
  ['bytes=0-0', { kind: 'part', start: 0, end: 1 }],
  ['bytes=-', { kind: 'whole' }],
])('the range %s of 100 bytes', (header, expected) => expect(parseByteRange(header, 100)).toEqual(expected));
