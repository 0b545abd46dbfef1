// The node IPAM controller: which block of addresses each node gets.

import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import {
  type ControllerFlags,
  controllerFlags,
  controllerSettings,
} from '../../../../cli/commands/controller-flags.ts';
import type { Node } from '../../../../client/types.ts';
import { CidrSet } from '../../../../controlplane/controllers/node-ipam/cidr-set.ts';
import { NodeIpamController } from '../../../../controlplane/controllers/node-ipam/node-ipam.ts';
import { parseRange, type Range, rangeText } from '../../../../lib/ip-range.ts';
import { apiError } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, makeNode, meta } from '../environment.ts';

function range(text: string): Range {
  const parsed = parseRange(text);
  if (parsed === undefined) throw new Error(`${text} is no range`);
  return parsed;
}

describe('CidrSet', () => {
  const allocate = (set: CidrSet): string | undefined => {
    const block = set.allocate();
    return block === undefined ? undefined : rangeText(block);
  };

  it.each<[string, number, readonly string[]]>([
    ['10.0.0.0/23', 24, ['10.0.0.0/24', '10.0.1.0/24']],
    ['10.0.0.9/24', 24, ['10.0.0.0/24']],
    ['127.123.0.0/30', 31, ['127.123.0.0/31', '127.123.0.2/31']],
    ['2001:db8::/47', 48, ['2001:db8::/48', '2001:db8:1::/48']],
    ['2001:db8:0:fffe::/63', 64, ['2001:db8:0:fffe::/64', '2001:db8:0:ffff::/64']],
  ])('%s in blocks of /%d', (text, prefix, blocks) => {
    const set = new CidrSet(range(text), prefix);
    expect([set.size, ...Array.from(blocks, () => allocate(set)), allocate(set)]).toEqual([
      blocks.length,
      ...blocks,
      undefined,
    ]);
  });

  it.each<[string, string, readonly (string | undefined)[]]>([
    ['a block', '10.0.1.0/24', ['10.0.0.0/24', '10.0.2.0/24', '10.0.3.0/24', undefined]],
    ['part of one', '10.0.1.128/25', ['10.0.0.0/24', '10.0.2.0/24', '10.0.3.0/24', undefined]],
    ['two', '10.0.2.0/23', ['10.0.0.0/24', '10.0.1.0/24', undefined]],
    ['all', '10.0.0.0/8', [undefined]],
  ])('%s that is taken is not given away', (_what, taken, expected) => {
    const set = new CidrSet(range('10.0.0.0/22'), 24);
    expect(set.occupy(range(taken))).toBe(true);
    expect(expected.map(() => allocate(set))).toEqual(expected);
  });

  it('what lies elsewhere is no part of it', () => {
    const set = new CidrSet(range('10.0.0.0/22'), 24);
    expect(['10.1.0.0/24', '2001:db8::/64'].map((text) => set.occupy(range(text)))).toEqual([false, false]);
  });

  it('a block that is free again comes after all others; one that two had is free when both are gone', () => {
    const set = new CidrSet(range('10.0.0.0/22'), 24);
    allocate(set);
    set.occupy(range('10.0.0.0/24'));
    set.release(range('10.0.0.0/24'));
    expect([allocate(set), allocate(set), allocate(set), allocate(set)]).toEqual([
      '10.0.1.0/24',
      '10.0.2.0/24',
      '10.0.3.0/24',
      undefined,
    ]);
    set.release(range('10.0.0.0/24'));
    expect(allocate(set)).toBe('10.0.0.0/24');
  });
});

function settings(...args: string[]) {
  const command = controllerFlags(new Command().exitOverride().configureOutput({ writeErr: () => undefined }));
  command.parse(['--allocate-node-cidrs', ...args], { from: 'user' });
  return controllerSettings(command.opts<ControllerFlags>()).nodeIpam;
}

describe('flags', () => {
  it.each<[string, string[], readonly [string, number][]]>([
    ['IPv4', ['--cluster-cidr', '10.0.0.0/16'], [['10.0.0.0/16', 24]]],
    ['IPv6', ['--cluster-cidr', '2001:db8::/48'], [['2001:db8::/48', 64]]],
    ['of another size', ['--cluster-cidr', '10.0.0.0/16', '--node-cidr-mask-size', '20'], [['10.0.0.0/16', 20]]],
    [
      'both',
      ['--cluster-cidr', '10.0.0.0/16,2001:db8::/48', '--node-cidr-mask-size-ipv6', '60'],
      [
        ['10.0.0.0/16', 24],
        ['2001:db8::/48', 60],
      ],
    ],
  ])('%s', (_what, args, expected) => {
    expect(settings(...args)?.cluster.map((each) => [rangeText(each.range), each.prefix])).toEqual(expected);
  });

  it.each<[string[], string]>([
    [[], 'Must specify --cluster-cidr'],
    [['--cluster-cidr', '10.0.0.0'], 'invalid CIDR address: 10.0.0.0'],
    [['--cluster-cidr', '10.0.0.0/16,10.1.0.0/16'], 'not configured as dual stack'],
    [
      ['--cluster-cidr', '10.0.0.0/25'],
      'mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size',
    ],
    [['--cluster-cidr', '2001:db8::/40'], 'the node CIDR size is too big'],
    [
      ['--cluster-cidr', '10.0.0.0/16,2001:db8::/48', '--node-cidr-mask-size', '24'],
      'usage of --node-cidr-mask-size is not allowed with dual-stack clusters',
    ],
    [
      ['--cluster-cidr', '10.0.0.0/16', '--node-cidr-mask-size', '24', '--node-cidr-mask-size-ipv4', '24'],
      'is not allowed if --node-cidr-mask-size is set',
    ],
    [
      ['--cluster-cidr', '2001:db8::/48', '--node-cidr-mask-size-ipv4', '24'],
      'usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster',
    ],
  ])('%j are refused', (args, words) => {
    expect(() => settings(...args)).toThrow(words);
  });

  it('the flags of node lifecycle are its settings, and nothing that was not given', () => {
    const command = controllerFlags(new Command());
    command.parse(['--node-monitor-grace-period', '4s', '--node-eviction-rate', '0.5'], { from: 'user' });
    expect(controllerSettings(command.opts<ControllerFlags>())).toEqual({
      nodeLifecycle: { nodeMonitorGraceMs: 4_000, nodeEvictionRate: 0.5 },
    });
  });
});

describe('NodeIpamController', () => {
  const withCidrs = (name: string, ...podCIDRs: string[]): Node =>
    makeNode(name, 'True', { podCIDR: podCIDRs[0] ?? '', podCIDRs });
  function start(nodes: readonly Node[], ...args: string[]) {
    const env = environment();
    const ipam = settings(...args);
    if (ipam === undefined) throw new Error('no settings');
    const controller = new NodeIpamController(env.context, env.informers, ipam);
    env.informers.nodes.replace(nodes);
    env.run(controller);
    const given = () =>
      env.client.writes.map(({ path, body }) => [path.split('/').at(-1), (body as Node).spec?.podCIDRs]);
    return { ...env, given };
  }

  it('gives nodes what no other has, and no address of Services', async () => {
    const { client, given } = start(
      [makeNode('a', 'True'), withCidrs('b', '10.0.1.0/24'), makeNode('c', 'False')],
      ...['--cluster-cidr', '10.0.0.0/16', '--service-cluster-ip-range', '10.0.0.0/24'],
    );
    await settle();
    expect(given()).toEqual([
      ['a', ['10.0.2.0/24']],
      ['c', ['10.0.3.0/24']],
    ]);
    expect(client.writes[0]).toMatchObject({ type: 'strategic', body: { spec: { podCIDR: '10.0.2.0/24' } } });
  });

  it('gives one of each family', async () => {
    const { given } = start([makeNode('a', 'True')], '--cluster-cidr', '10.0.0.0/16,2001:db8::/48');
    await settle();
    expect(given()).toEqual([['a', ['10.0.0.0/24', '2001:db8::/64']]]);
  });

  it('says when there is none left, and goes on when a node has gone', async () => {
    const gone = withCidrs('gone', '10.0.0.0/24');
    const { clock, client, events, given, informers } = start(
      [gone, makeNode('a', 'True')],
      '--cluster-cidr',
      '10.0.0.0/24',
    );
    await settle();
    expect(client.writes).toEqual([]);
    expect(events[0]).toBe('a CIDRNotAvailable: Node a status is now: CIDRNotAvailable');
    informers.nodes.remove(gone);
    await clock.advance(1_000_000);
    expect(given()).toEqual([['a', ['10.0.0.0/24']]]);
  });

  it('tries the same block again after a failure', async () => {
    const { clock, client, events, given } = start([makeNode('a', 'True')], '--cluster-cidr', '10.0.0.0/16');
    client.failures.push(apiError(500, 'InternalError'));
    await clock.advance(1_000);
    expect(events).toEqual(['a CIDRAssignmentFailed: Node a status is now: CIDRAssignmentFailed']);
    expect(given()).toEqual([['a', ['10.0.0.0/24']]]);
  });

  it('leaves alone what is elsewhere, and a node that goes', async () => {
    const leaving = makeNode('leaving', 'True');
    const metadata = { ...meta('leaving'), deletionTimestamp: '2026-01-01T00:00:00Z' };
    const { client, logs } = start(
      [withCidrs('x', '192.168.0.0/24'), { ...leaving, metadata }],
      '--cluster-cidr',
      '10.0.0.0/16',
    );
    await settle();
    expect(client.writes).toEqual([]);
    expect(logs).toEqual(['node-ipam: node:x: cidr 192.168.0.0/24 is out the range of cluster cidr 10.0.0.0/16']);
  });
});
