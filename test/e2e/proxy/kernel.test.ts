// The proxy's rules in the real kernel, in a network namespace of the test's own: both iptables and nftables, changes, damage and removal;
// another program that has the lock of iptables; and which lab has the proxy.

import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { claimProxy, removeLabProxy } from '../../../cli/lab/proxy-claim.ts';
import { type Exec, exec, execOk } from '../../../lib/exec.ts';
import type { Backend, ServicePortMap } from '../../../proxy/backend.ts';
import { IptablesBackend, readTables, removeProxyRules } from '../../../proxy/iptables/iptables.ts';
import { isProxyChain } from '../../../proxy/iptables/names.ts';
import { NftablesBackend, removeProxyTable, tableOwner } from '../../../proxy/nftables/nftables.ts';
import { makeService, makeSlice, OPTIONS, portMapOf } from '../../unit/proxy/cases.ts';
import { eventually } from '../controlplane/cluster.ts';

const NAMESPACE = `nodelet-proxy-${process.pid}`;
let directory: string;
let lock: string;

/** Runs a program in the namespace; with `legacy`, the older iptables. */
const inside =
  (legacy: boolean): Exec =>
  (file, args, options) => {
    const path = legacy ? `${join(directory, 'bin')}:${process.env['PATH']}` : process.env['PATH'];
    const environment = [`PATH=${path}`, `XTABLES_LOCKFILE=${lock}`];
    return exec('ip', ['netns', 'exec', NAMESPACE, 'env', ...environment, file, ...args], options);
  };

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-proxy-'));
  lock = join(directory, 'lock');
  await mkdir(join(directory, 'bin'));
  for (const name of ['iptables', 'iptables-save', 'iptables-restore']) {
    const legacy = name.replace('iptables', 'iptables-legacy');
    await symlink(`/usr/sbin/${legacy}`, join(directory, 'bin', name));
  }
  await execOk('ip', ['netns', 'add', NAMESPACE]);
});
afterAll(async () => {
  await execOk('ip', ['netns', 'delete', NAMESPACE]);
  await rm(directory, { recursive: true });
});

const everything = (addresses: string[]): ServicePortMap =>
  portMapOf(
    [makeService('a'), makeSlice('a', addresses)],
    [makeService('none', { clusterIP: '172.30.0.42' })],
    [
      makeService(
        'b',
        {
          clusterIP: '172.30.0.43',
          type: 'LoadBalancer',
          ports: [{ name: 'p80', port: 80, protocol: 'TCP', nodePort: 30080 }],
          externalIPs: ['192.0.2.9'],
          externalTrafficPolicy: 'Local',
          healthCheckNodePort: 31000,
          sessionAffinity: 'ClientIP',
          loadBalancerSourceRanges: ['192.0.2.0/24'],
        },
        { status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } } },
      ),
      makeSlice('b', ['10.1.0.7', ['10.1.0.8', { on: 'there' }]]),
    ],
  );

describe.each([
  ['iptables on nf_tables', false, (run: Exec): Backend => new IptablesBackend('nodelet-00000000', run)],
  ['iptables-legacy', true, (run: Exec): Backend => new IptablesBackend('nodelet-00000000', run)],
  ['nftables', false, (run: Exec): Backend => new NftablesBackend('nodelet-00000000', run)],
] as const)('%s', (name, legacy, make) => {
  const run = inside(legacy);
  const remove = async (): Promise<void> => {
    if (name === 'nftables') await removeProxyTable(run);
    else await removeProxyRules(run);
  };

  test('takes every kind of rule, changes, notices damage, and goes without a trace', async () => {
    const backend = make(run);
    await backend.apply(everything(['10.1.0.1', '10.1.0.2']), OPTIONS, true);
    expect(await backend.damage()).toBeUndefined();
    for (const addresses of [['10.1.0.2', '10.1.0.3'], [], ['10.1.0.1']]) {
      await backend.apply(everything(addresses), OPTIONS, false);
      expect(await backend.damage()).toBeUndefined();
    }
    if (name === 'nftables') await execOk('nft', ['flush', 'chain', 'ip', 'kube-proxy', 'services'], {}, run);
    else await execOk('iptables', ['-w', '-t', 'nat', '-D', 'KUBE-SERVICES', '1'], {}, run);
    expect(await backend.damage()).toMatch(/has other rules/);
    await backend.apply(everything(['10.1.0.1']), { ...OPTIONS, localhostNodePorts: true }, true);
    expect(await backend.damage()).toBeUndefined();
    await remove();
    expect((await readTables(run)).flatMap(({ chains }) => [...chains.keys()]).filter(isProxyChain)).toEqual([]);
    expect(await tableOwner(run)).toBeUndefined();
  });
});

test('waits while another program has the lock of iptables', async () => {
  const holder = spawn('flock', ['-x', lock, 'cat'], { stdio: ['pipe', 'ignore', 'inherit'] });
  await eventually('the lock', async () => ((await exec('flock', ['-n', lock, 'true'])).code === 0 ? undefined : true));
  const run = inside(true);
  // How long it waits at most is no part of this: here as long as the look at the kernel's locks takes.
  const patient: Exec = (file, args, options) => {
    const waits = args.indexOf('-w');
    const words = waits < 0 ? args : args.with(waits + 1, '600');
    return run(file, words, options);
  };
  const backend = new IptablesBackend('nodelet-00000000', patient);
  const written = backend.apply(everything(['10.1.0.1']), OPTIONS, true);
  const { ino } = await stat(lock);
  // "->" is one that waits.
  await eventually('iptables to wait', async () =>
    (await readFile('/proc/locks', 'utf8')).split('\n').some((line) => line.includes('->') && line.includes(`:${ino} `))
      ? true
      : undefined,
  );
  holder.stdin.end();
  await written;
  expect(await backend.damage()).toBeUndefined();
  await removeProxyRules(run);
});

test('one lab of a network namespace has the proxy, and takes over from one that is gone', async () => {
  const run = inside(false);
  const labs = join(directory, 'labs');
  await mkdir(join(labs, '11111111'), { recursive: true });
  await writeFile(join(labs, '11111111', 'claim.json'), '{}');
  expect(await claimProxy('nodelet-11111111', labs, run)).toBeUndefined();
  expect(await claimProxy('nodelet-11111111', labs, run)).toBeUndefined();
  expect(await claimProxy('nodelet-22222222', labs, run)).toBe('the lab nodelet-11111111');
  await removeLabProxy('nodelet-22222222', run);
  expect(await claimProxy('nodelet-22222222', labs, run)).toBe('the lab nodelet-11111111');
  await rm(join(labs, '11111111'), { recursive: true });
  expect(await claimProxy('nodelet-22222222', labs, run)).toBeUndefined();
  await removeLabProxy('nodelet-22222222', run);
  await execOk('iptables', ['-t', 'nat', '-N', 'KUBE-SERVICES'], {}, run);
  expect(await claimProxy('nodelet-22222222', labs, run)).toBe('a proxy that is none of a lab');
});
