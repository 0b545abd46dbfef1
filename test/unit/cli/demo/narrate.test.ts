import { expect, test } from 'vitest';
import { narrate } from '../../../../cli/demo/narrate.ts';
import { epochMs, ZERO_TIME } from '../../../../lib/clock.ts';
import type { Span } from '../../../../lib/trace.ts';

const base = { id: 1, start: epochMs(1000), durationMs: 12.34, outcome: 'ok', attributes: {} } as const;

test.each<[string, Partial<Span>, string]>([
  [
    'a volume names its plugin',
    { kind: 'volume', name: 'MountVolume.SetUp', attributes: { volume: 'token', plugin: 'kubernetes.io/projected' } },
    '    1012 ms  volume   mount volume token (kubernetes.io/projected)  [12.3 ms]',
  ],
  [
    'a CNI chain shows interface, address and routes',
    {
      kind: 'cni',
      name: 'ADD network nodelet',
      attributes: { ifName: 'eth0', ips: ['10.1.0.5/24'], routes: ['0.0.0.0/0 via 10.1.0.1'] },
    },
    '    1012 ms  cni      ADD network nodelet: eth0 has 10.1.0.5/24, route 0.0.0.0/0 via 10.1.0.1  [12.3 ms]',
  ],
  [
    'a failure says why',
    { kind: 'cni', name: 'ADD bridge', outcome: 'error', error: 'no such bridge' },
    '    1012 ms  cni      ADD bridge  [12.3 ms]  FAILED: no such bridge',
  ],
])('%s', (_sentence, span, line) => expect(narrate({ ...base, kind: 'cri', name: '', ...span }, ZERO_TIME)).toBe(line));

test('calls that only look are left out', () => {
  expect(narrate({ ...base, kind: 'cri', name: 'ListContainers' }, ZERO_TIME)).toBeUndefined();
  expect(narrate({ ...base, kind: 'worker', name: 'syncPod' }, ZERO_TIME)).toBeUndefined();
});
