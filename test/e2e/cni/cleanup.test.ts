// The cleaning up after CNI plugins, in a network namespace that represents a whole machine.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { cleanupChains, releaseAllAttachments, snapshotFirewall } from '../../../cni/cleanup.ts';
import { loadConflist } from '../../../cni/conflist.ts';
import { systemClock } from '../../../lib/clock.ts';
import { type Exec, exec, execOk } from '../../../lib/exec.ts';
import {
  attachment,
  bridgeChain,
  cniRuntime,
  PLUGIN_DIR,
  removeTestNetwork,
  type TestNetns,
  type TestNetwork,
  testNetns,
  testNetwork,
  writeConf,
} from './harness.ts';

let network: TestNetwork;
let machine: TestNetns;
let pod: TestNetns;
/** Runs programs in the namespace. */
let onMachine: Exec;
const firewall = (): Promise<string> => execOk('nft', ['list', 'ruleset'], {}, onMachine);
const mapping = { portMappings: [{ hostPort: 8081, containerPort: 80, protocol: 'tcp' }] };

beforeEach(async () => {
  network = await testNetwork();
  machine = await testNetns();
  pod = await testNetns();
  onMachine = (file, args, options) => exec('ip', ['netns', 'exec', machine.name, file, ...args], options);
});

afterEach(async () => {
  await pod.remove();
  await machine.remove();
  await removeTestNetwork(network);
});

const chain = (): Record<string, unknown> =>
  bridgeChain(network, { ipMasq: true, more: [{ type: 'firewall' }, { type: 'tuning' }] });

it('leaves an untouched machine as it was: no chain, no table', async () => {
  const before = await snapshotFirewall(onMachine);
  expect(await firewall()).toBe('');
  const runtime = cniRuntime(network, { exec: onMachine });
  const list = await loadConflist(await writeConf(network, chain()));
  await runtime.add(list, attachment(pod, { capabilityArgs: mapping }));
  await runtime.del(attachment(pod));
  expect(await firewall()).toContain('CNI-HOSTPORT-DNAT');
  expect(await cleanupChains(before, onMachine)).toContain('ipv4 filter CNI-FORWARD');
  expect(await firewall()).toBe('');
  expect(await cleanupChains(before, onMachine)).toEqual([]);
});

it('leaves a pod’s rules alone while it lives, and an administrator’s always', async () => {
  await execOk('iptables', ['-t', 'nat', '-A', 'POSTROUTING', '-s', '1.2.3.4', '-j', 'MASQUERADE'], {}, onMachine);
  await execOk('iptables', ['-N', 'CNI-MINE'], {}, onMachine);
  const before = await snapshotFirewall(onMachine);
  const untouched = await firewall();
  const runtime = cniRuntime(network, { exec: onMachine });
  const list = await loadConflist(await writeConf(network, chain()));
  await runtime.add(list, attachment(pod, { capabilityArgs: mapping }));
  const busy = await firewall();
  // ip6tables' tables are empty, and new: they go even while the pod lives. Everything else is in use.
  const removed = await cleanupChains(before, onMachine);
  expect(removed.filter((name) => !name.includes('ip6') && name.includes('table'))).toEqual([]);
  expect(removed.filter((name) => name.includes('CNI-'))).toEqual([]);
  const now = withoutCounters(await firewall());
  for (const rule of withoutCounters(busy)
    .split('\n')
    .filter((line) => line.includes('jump CNI-'))) {
    expect(now).toContain(rule);
  }
  await runtime.del(attachment(pod));
  await cleanupChains(before, onMachine);
  expect(withoutCounters(await firewall())).toBe(withoutCounters(untouched));
});

it('undoes what a vanished agent left attached, from the cache directory alone', async () => {
  const before = await snapshotFirewall(onMachine);
  const runtime = cniRuntime(network, { exec: onMachine });
  const list = await loadConflist(await writeConf(network, chain()));
  await runtime.add(list, attachment(pod, { capabilityArgs: mapping }));
  const report = await releaseAllAttachments({
    cacheDir: network.cacheDir,
    binDirs: [PLUGIN_DIR],
    tracer: network.tracer,
    clock: systemClock,
    exec: onMachine,
  });
  expect(report.failures).toEqual([]);
  expect(report.removed).toHaveLength(1);
  await cleanupChains(before, onMachine);
  expect(await firewall()).toBe('');
});

const withoutCounters = (ruleset: string): string => ruleset.replace(/counter packets \d+ bytes \d+/g, 'counter');
