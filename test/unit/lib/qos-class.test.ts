import { expect, test } from 'vitest';
import { computePodQOS } from '../../../lib/qos-class.ts';

interface Resources {
  readonly requests?: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, string>>;
}
const withResources = (all: readonly (Resources | undefined)[]) => all.map((resources) => ({ resources }));
const both = (cpu: string, memory: string) => ({ cpu, memory });

test.each<[string, string, (Resources | undefined)[], (Resources | undefined)[]]>([
  ['nothing asked for', 'BestEffort', [undefined, {}], []],
  ['zeros are nothing', 'BestEffort', [{ requests: both('0', '0') }], []],
  ['a limit of zero is none', 'BestEffort', [{ limits: { cpu: '0' } }], []],
  ['a request alone', 'Burstable', [{ requests: { memory: '1Mi' } }], []],
  ['limits alone stand for requests', 'Guaranteed', [{ limits: both('1', '1Gi') }], []],
  ['equal amounts in other words', 'Guaranteed', [{ limits: both('1', '1Gi'), requests: both('1000m', '1024Mi') }], []],
  ['a request below its limit', 'Burstable', [{ limits: both('1', '1Gi'), requests: both('500m', '1Gi') }], []],
  ['no memory limit', 'Burstable', [{ limits: { cpu: '1' } }], []],
  ['one container without', 'Burstable', [{ limits: both('1', '1Gi') }, undefined], []],
  ['an init container without', 'Burstable', [{ limits: both('1', '1Gi') }], [undefined]],
  ['only an init container asks', 'Burstable', [undefined], [{ requests: { cpu: '1m' } }]],
  ['other resources do not count', 'BestEffort', [{ requests: { 'ephemeral-storage': '1Gi' } }], []],
])('%s: %s', (_rule, expected, containers, init) => {
  expect(computePodQOS({ containers: withResources(containers), initContainers: withResources(init) })).toBe(expected);
});

test.each<[string, string, Resources]>([
  ['nothing', 'Burstable', {}],
  ['limits of both', 'Guaranteed', { limits: both('1', '1Gi') }],
  ['a request below its limit', 'Burstable', { limits: both('1', '1Gi'), requests: both('1', '1Mi') }],
  ['zeros', 'BestEffort', { requests: both('0', '0') }],
])('of the pod as a whole %s, its container with a request of cpu: %s', (_rule, expected, resources) => {
  expect(computePodQOS({ resources, containers: withResources([{ requests: { cpu: '1' } }]) })).toBe(expected);
});
