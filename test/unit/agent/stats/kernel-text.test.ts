import { describe, expect, test } from 'vitest';
import {
  keyed,
  parseBlkio,
  parseIoStat,
  parseNetDev,
  parsePressure,
  readPressure,
  wholeNumber,
} from '../../../../agent/stats/kernel-text.ts';
import { bootTimeOf, createDeviceNames, topologyOf } from '../../../../agent/stats/machine-info.ts';

test.each([
  ['12\n', 12],
  ['max\n', undefined],
  ['-1\n', undefined],
  ['', undefined],
  [undefined, undefined],
])('the number of %j is %s', (text, value) => {
  expect(wholeNumber(text)).toBe(value);
});

test.each([
  ['cache 5\ntotal_cache 7\n', 'cache', 5],
  ['cache 5\ntotal_cache 7\n', 'total_cache', 7],
  // A key is a whole word at the beginning of a line.
  ['file_mapped 1\nfile 2\n', 'file', 2],
  ['inactive_file 1\n', 'file', undefined],
  ['cache 5', 'rss', undefined],
  ['cache x\n', 'cache', undefined],
  ['usage_usec 9007199254740\n', 'usage_usec', 9_007_199_254_740],
])('in %j the figure %s is %s', (text, key, value) => {
  expect(keyed(text, key)).toBe(value);
});

describe('block devices', () => {
  test('io.stat', () => {
    const text =
      '253:0 rbytes=1024 wbytes=2048 rios=3 wios=4 dbytes=0 dios=0\n7:0 \n8:16 rbytes=1 wbytes=0 rios=1 wios=0\n';
    expect(parseIoStat(text)).toEqual([
      { device: '253:0', readBytes: 1024, writtenBytes: 2048, reads: 3, writes: 4 },
      { device: '8:16', readBytes: 1, writtenBytes: 0, reads: 1, writes: 0 },
    ]);
    expect(parseIoStat('')).toEqual([]);
  });

  test('blkio', () => {
    const bytes = '8:0 Read 10\n8:0 Write 20\n8:0 Sync 30\n8:0 Total 30\nTotal 30\n';
    const operations = '8:0 Read 1\n8:0 Write 2\n8:0 Total 3\nTotal 3\n';
    expect(parseBlkio(bytes, operations)).toEqual([
      { device: '8:0', readBytes: 10, writtenBytes: 20, reads: 1, writes: 2 },
    ]);
    expect(parseBlkio('Total 0\n', 'Total 0\n')).toEqual([]);
  });

  test('their names come from sysfs, once, or are the numbers', () => {
    const reads: string[] = [];
    const name = createDeviceNames((path) => {
      reads.push(path);
      return path === '/sys/dev/block/8:0/uevent' ? 'MAJOR=8\nMINOR=0\nDEVNAME=sda\n' : undefined;
    });
    expect([name('8:0'), name('8:0'), name('9:1')]).toEqual(['/dev/sda', '/dev/sda', '9:1']);
    expect(reads).toHaveLength(2);
  });
});

describe('pressure', () => {
  const some = 'some avg10=1.50 avg60=0.25 avg300=0.00 total=123456\n';
  const some123 = { total: 123_456, avg10: 1.5, avg60: 0.25, avg300: 0 };
  const none = { total: 0, avg10: 0, avg60: 0, avg300: 0 };
  test.each([
    [
      'both lines',
      `${some}full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n`,
      { some: some123, full: { ...none, total: 7 } },
    ],
    ['an older kernel’s cpu', some, { some: some123, full: none }],
    ['nothing', '', undefined],
  ])('%s', (_title, text, expected) => {
    expect(parsePressure(text)).toEqual(expected);
  });

  test('only resources that are measured', () => {
    expect(readPressure((resource) => (resource === 'io' ? some : undefined))).toEqual({
      io: { some: some123, full: none },
    });
  });
});

test('/proc/net/dev without loopback and host ends of pods', () => {
  const text = [
    'Inter-|   Receive                                                |  Transmit',
    ' face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed',
    '    lo: 100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0',
    '  eth0:11012454   24345    1    2    0     0          0         3  4203948   15832    4    5    0     0       0          0',
    'vethab12: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0',
    '',
  ].join('\n');
  expect(parseNetDev(text)).toEqual([
    {
      name: 'eth0',
      rxBytes: 11_012_454,
      rxPackets: 24_345,
      rxErrors: 1,
      rxDropped: 2,
      txBytes: 4_203_948,
      txPackets: 15_832,
      txErrors: 4,
      txDropped: 5,
    },
  ]);
});

test.each([
  [
    'two threads on each of two cores',
    [0, 0, 1, 1].map((core, index) => `processor\t: ${index}\nphysical id\t: 0\ncore id\t\t: ${core}\n`).join('\n'),
    4,
    { physicalCores: 2, sockets: 1 },
  ],
  [
    'two sockets',
    [0, 1].map((socket) => `processor\t: ${socket}\nphysical id\t: ${socket}\ncore id\t\t: 0\n`).join('\n'),
    2,
    { physicalCores: 2, sockets: 2 },
  ],
  ['a machine that names neither', 'processor\t: 0\nBogoMIPS\t: 50.00\n', 4, { physicalCores: 4, sockets: 1 }],
])('cores of %s', (_title, text, logical, expected) => {
  expect(topologyOf(text, logical)).toEqual(expected);
});

test('when the machine was booted', () => {
  expect(bootTimeOf('cpu  1 2 3\nintr 5 6\nbtime 1795424496\nprocesses 9\n')).toBe(1_795_424_496);
});
