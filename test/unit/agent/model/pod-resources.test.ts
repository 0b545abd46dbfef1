import { describe, expect, test } from 'vitest';
import { cpuQuotaUs, cpuShares, podLimits, podQOSClass, podRequests } from '../../../../agent/model/pod-resources.ts';
import type { Container } from '../../../../client/types.ts';
import { container, pod } from '../runtime/fixtures.ts';

type Resources = Container['resources'];
const withResources = (...all: Resources[]) =>
  all.map((resources, index) => container({ name: `c${index}`, ...(resources === undefined ? {} : { resources }) }));

test('the QoS class that the server has written holds', () => {
  expect(podQOSClass({ ...pod(), status: { qosClass: 'Guaranteed' } })).toBe('Guaranteed');
  expect(podQOSClass(pod())).toBe('BestEffort');
});

const requests = (cpu: string, memory = '0') => ({ requests: { cpu, memory } });

describe('a pod as a whole', () => {
  test('containers add up; a plain init container counts only when it needs more than all of them', () => {
    const containers = withResources(requests('100m', '10'), requests('200m', '20'));
    const small = pod({ containers, initContainers: withResources(requests('250m', '100')) });
    expect(podRequests(small, { withOverhead: true })).toEqual({ cpuMilli: 300, memoryBytes: 100 });
  });

  test('sidecars run beside the containers, and beside the init containers after them', () => {
    const sidecar = { ...container({ name: 's', resources: requests('50m') }), restartPolicy: 'Always' };
    const init = container({ name: 'i', resources: requests('400m') });
    const containers = withResources(requests('100m'));
    const cpu = (initContainers: Container[]) =>
      podRequests(pod({ containers, initContainers }), { withOverhead: false }).cpuMilli;
    expect(cpu([sidecar])).toBe(150);
    expect(cpu([sidecar, init])).toBe(450);
    expect(cpu([init, sidecar])).toBe(400);
  });

  test('overhead is added when asked for', () => {
    const vm = pod({ containers: withResources(requests('1')), overhead: { cpu: '250m', memory: '5' } });
    expect(podRequests(vm, { withOverhead: true })).toEqual({ cpuMilli: 1250, memoryBytes: 5 });
    expect(podRequests(vm, { withOverhead: false })).toEqual({ cpuMilli: 1000, memoryBytes: 0 });
  });

  test('a limit holds only where every container has one', () => {
    const limits = (cpu?: string, memory?: string): Resources => ({
      limits: { ...(cpu === undefined ? {} : { cpu }), ...(memory === undefined ? {} : { memory }) },
    });
    const of = (...containers: Resources[]) =>
      podLimits(pod({ containers: withResources(...containers) }), { withOverhead: false });
    expect(of(limits('1', '10'), limits('500m', '5'))).toEqual({ cpuMilli: 1500, memoryBytes: 15 });
    expect(of(limits('1', '10'), limits('500m'))).toEqual({ cpuMilli: 1500 });
    expect(of(limits('1', '10'), limits('0', '5'))).toEqual({ memoryBytes: 15 });
    expect(of(undefined)).toEqual({});
  });
});

test.each([
  [0, 2],
  [1, 2],
  [2, 2],
  [3, 3],
  [250, 256],
  [1000, 1024],
  [1_000_000, 262_144],
])('%i millicores are %i shares', (milli, shares) => {
  expect(cpuShares(milli)).toBe(shares);
});

test.each([
  [0, 100_000, 0],
  [1, 100_000, 1000],
  [10, 100_000, 1000],
  [500, 100_000, 50_000],
  [2500, 100_000, 250_000],
  [500, 10_000, 5000],
])('%i millicores over %i µs are a quota of %i µs', (milli, period, quota) => {
  expect(cpuQuotaUs(milli, period)).toBe(quota);
});
