// What of a lab may be left out, and what does not go together.

import { expect, it } from 'vitest';
import { labOptions, parts } from '../../../../cli/commands/lab.ts';
import { commaSeparated } from '../../../../cli/commands/list-flag.ts';
import type { LabOptions } from '../../../../cli/lab/options.ts';
import { labPaths } from '../../../../cli/lab/paths.ts';
import { controlplaneProgram, hasControlplane } from '../../../../cli/lab/programs.ts';
import { refuseCombinations } from '../../../../cli/lab/refusals.ts';
import type { LabState } from '../../../../cli/lab/state.ts';
import { chooseControllers } from '../../../../controlplane/controllers.ts';

const paths = labPaths('/tmp/parts');
const state: LabState = {
  version: 1,
  nodeName: 'n',
  apiserverPort: 1,
  kubeletPort: 2,
  subnet: '10.244.0.0/24',
  network: 'agent',
  firewall: { chains: [], rules: [] } as never,
  madeDirectories: [],
};

it.each([
  [[], true, true, true],
  [['proxy'], true, true, true],
  [['scheduler'], true, false, true],
  [['controllers'], true, true, false],
  [['controllers', 'scheduler'], false, false, false],
] as const)(
  'without %j the control plane runs: %s, with scheduler: %s, with controllers: %s',
  (without, runs, scheduler, controllers) => {
    expect(hasControlplane(state, without)).toBe(runs);
    const { args } = controlplaneProgram(paths, state, without);
    expect(args.includes('--scheduler-kubeconfig')).toBe(scheduler);
    const at = args.indexOf('--controllers');
    expect(at < 0 || chooseControllers(commaSeparated(args[at + 1] ?? '*')).length > 0).toBe(controllers);
  },
);

it('the side-cars of a CSI driver run with neither', () => {
  const withCsi = { ...state, csi: { flags: [] } };
  expect(hasControlplane(withCsi, ['controllers', 'scheduler'])).toBe(true);
  expect(controlplaneProgram(paths, withCsi, ['controllers', 'scheduler']).args).toContain('--csi-endpoint');
});

it('parts have names', () => {
  expect(parts('controllers,scheduler,proxy')).toEqual(['controllers', 'scheduler', 'proxy']);
  expect(() => parts('proxy,agent')).toThrow(
    '"agent" cannot be left out: only controllers, scheduler, proxy, dns, netpol, registry can.',
  );
});

const flags = {
  root: '/tmp/parts',
  network: 'agent',
  runtime: 'containerd',
  cgroupDriver: 'cgroupfs',
  images: 'auto',
  proxyMode: 'iptables',
  without: [],
  zone: [],
} as const;

it('flags of nodelet up become options of a lab', () => {
  expect(labOptions(flags)).toMatchObject({ proxy: 'iptables', netpol: true });
  expect(labOptions({ ...flags, without: ['netpol'] })).toMatchObject({ netpol: false });
  expect(labOptions(flags)).toMatchObject({ registry: true });
  expect(labOptions({ ...flags, without: ['registry'] })).toMatchObject({ registry: false });
  expect(labOptions({ ...flags, registryMirror: 'http://m' })).toMatchObject({
    registry: false,
    registryMirror: 'http://m',
  });
  expect(labOptions({ ...flags, registrySlowRate: '1Mi', registryPullLimit: '5/1h' })).toMatchObject({
    registryFlags: ['--slow-rate', '1Mi', '--pull-limit', '5/1h'],
  });
  expect(labOptions(flags)).not.toHaveProperty('nodes');
  expect(labOptions({ ...flags, without: ['proxy'] })).not.toHaveProperty('proxy');
  expect(labOptions({ ...flags, nodes: 3, zone: ['a'], nodeMonitorGracePeriod: '5s' })).toMatchObject({
    nodes: { count: 3, zones: ['a'] },
    controlplaneFlags: ['--node-monitor-grace-period', '5s'],
    kubeletConfiguration: { nodeLeaseDurationSeconds: 5 },
  });
  expect(labOptions({ ...flags, nodes: 3, nodeMonitorGracePeriod: '1m0s' }).kubeletConfiguration).toEqual({});
  expect(() => labOptions({ ...flags, zone: ['a'] })).toThrow('--zone is for the nodes of --nodes');
});

it.each<[LabOptions, string]>([
  [{ runtime: 'docker' }, '--runtime docker'],
  [{ cgroupDriver: 'systemd' }, '--cgroup-driver systemd'],
  [{ network: 'runtime' }, '--network runtime'],
  [{ csi: true }, '--csi'],
  [{ nodeName: 'x' }, '--node-name'],
  [{ kubeletPort: 1 }, '--kubelet-port'],
  [{ agentServer: 'https://x' }, 'another agent'],
  [{ registryMirror: 'http://127.0.0.1:5000' }, '--registry-mirror on the loopback address'],
  [{ bindAddress: '127.0.0.1' }, '--bind-address other than 0.0.0.0'],
])('%j is refused with several nodes', (options, words) => {
  expect(() => refuseCombinations({ ...options, nodes: { count: 2 } })).toThrow(`${words} is not there`);
  expect(() => refuseCombinations(options)).not.toThrow();
});
