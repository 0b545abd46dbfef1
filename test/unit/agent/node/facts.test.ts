// What is read off the machine, and which of its addresses are the node's.

import { readFileSync, statfsSync } from 'node:fs';
import { cpus, hostname, release, tmpdir, totalmem } from 'node:os';
import { describe, expect, it } from 'vitest';
import { chooseNodeIPs, isUsableAddress, nodeAddresses } from '../../../../agent/node/addresses.ts';
import {
  type AddressFacts,
  defaultInterfaces4,
  defaultInterfaces6,
  gatherFacts,
  meminfoBytes,
  osImageOf,
  pageSize,
} from '../../../../agent/node/facts.ts';
import { UserError } from '../../../../lib/errors.ts';

describe('facts', () => {
  it.each([
    ['PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\n', 'Debian GNU/Linux 12 (bookworm)'],
    ['NAME=Alpine\nPRETTY_NAME=Alpine\n', 'Alpine'],
    ["PRETTY_NAME='Void Linux'\r\n", 'Void Linux'],
    ['PRETTY_NAME="The \\"Great\\" OS for \\$5"\n', 'The "Great" OS for $5'],
    ['PRETTY_NAME=""\n', 'Linux'],
    ['NAME="Nameless"\n', 'Linux'],
    ['', 'Linux'],
  ])('the name of the system: %j', (osRelease, image) => {
    expect(osImageOf(osRelease)).toBe(image);
  });

  it('are gathered from this machine', async () => {
    const facts = await gatherFacts(tmpdir(), 'node-1');
    const { blocks, bsize } = statfsSync(tmpdir());
    expect(facts).toMatchObject({ hostname: hostname(), kernelVersion: release(), cpus: cpus().length });
    expect(facts.diskBytes).toBe(blocks * bsize);
    expect(facts.memoryBytes).toBe(totalmem());
    expect(facts.osImage).toBe(osImageOf(readFileSync('/etc/os-release', 'utf8')));
  });

  it('sizes from /proc/meminfo are in bytes', () => {
    const text = 'MemTotal:        4025780 kB\nMemFree:          100 kB\nSwapTotal:             0 kB\n';
    expect([meminfoBytes(text, 'MemTotal'), meminfoBytes(text, 'SwapTotal'), meminfoBytes(text, 'Nothing')]).toEqual([
      4025780 * 1024,
      0,
      0,
    ]);
  });

  it('default routes are found, lowest metric first, those that are down left out', () => {
    const row = (name: string, destination: string, flags: string, metric: number, mask: string): string =>
      [name, destination, '0101A8C0', flags, '0', '0', metric, mask, '0', '0', '0'].join('\t');
    const table = [
      'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT',
      row('wlan0', '00000000', '0003', 600, '00000000'),
      row('eth0', '00000000', '0003', 100, '00000000'),
      row('down0', '00000000', '0002', 1, '00000000'),
      row('half0', '00000000', '0001', 2, '00000080'),
      row('eth0', '0001A8C0', '0001', 100, '00FFFFFF'),
      '',
    ].join('\n');
    expect(defaultInterfaces4(table)).toEqual(['eth0', 'wlan0']);
  });
  it('so are those of IPv6', () => {
    const zero = '0'.repeat(32);
    const table = [
      `${zero} 00 ${zero} 00 fe80000000000000000000000000000 00000400 00000001 00000000 00000003     eth0`,
      `${zero} 00 ${zero} 00 fe80000000000000000000000000000 00000064 00000001 00000000 00000003     eth1`,
      `${zero} 00 ${zero} 00 ${zero} ffffffff 00000001 00000000 00200200       lo`,
      `fe800000000000000000000000000000 40 ${zero} 00 ${zero} 00000100 00000001 00000000 00000001     eth0`,
    ].join('\n');
    expect(defaultInterfaces6(table)).toEqual(['eth1', 'eth0']);
  });

  it.each([
    [2048, '2Mi'],
    [1024 * 1024, '1Gi'],
    [64, '64Ki'],
    [1024 * 1024 * 16, '16Gi'],
  ])('a page of %d kB is %s', (kilobytes, text) => {
    expect(pageSize(kilobytes)).toBe(text);
  });
});

describe('chooseNodeIPs', () => {
  const machine: AddressFacts = {
    interfaces: {
      lo: ['127.0.0.1', '::1'],
      docker0: ['172.17.0.1'],
      eth0: ['fe80::1', '2001:db8::5', '10.0.0.5'],
      eth1: ['192.168.1.5'],
    },
    defaultInterfaces: ['eth0', 'eth1'],
    resolved: [],
  };
  it.each<[string, string[], Partial<AddressFacts>, string[]]>([
    ['--node-ip wins', ['192.168.1.5'], { resolved: ['10.0.0.5'] }, ['192.168.1.5']],
    ['both families of --node-ip', ['10.0.0.5', '2001:db8::5'], {}, ['10.0.0.5', '2001:db8::5']],
    ['then what the name resolves to', [], { resolved: ['192.168.1.5'] }, ['192.168.1.5']],
    ['but not to loopback', [], { resolved: ['127.0.1.1', '127.0.0.1'] }, ['10.0.0.5']],
    ['and not to an address of another machine', [], { resolved: ['10.9.9.9'] }, ['10.0.0.5']],
    ['then the interface of the default route', [], {}, ['10.0.0.5']],
    ['an IPv6 one when there is no other', [], { interfaces: { eth0: ['fe80::1', '2001:db8::5'] } }, ['2001:db8::5']],
    ['--node-ip :: asks for IPv6', ['::'], {}, ['2001:db8::5']],
    ['--node-ip 0.0.0.0 asks for IPv4', ['0.0.0.0'], {}, ['10.0.0.5']],
    ['then any address', [], { defaultInterfaces: [] }, ['172.17.0.1']],
    ['then loopback', [], { interfaces: { lo: ['127.0.0.1'] }, defaultInterfaces: [] }, ['127.0.0.1']],
  ])('%s', (_what, configured, overrides, expected) => {
    expect(chooseNodeIPs(configured, 'node', { ...machine, ...overrides })).toEqual(expected);
  });

  it.each([
    ['10.9.9.9', /--node-ip 10\.9\.9\.9: no interface of this machine/],
    ['127.0.0.1', /--node-ip 127\.0\.0\.1: not an address that others/],
    ['nonsense', /--node-ip nonsense: not an address/],
  ])('refuses --node-ip %s in one line', (ip, message) => {
    expect(() => chooseNodeIPs([ip], 'node', machine)).toThrow(UserError);
    expect(() => chooseNodeIPs([ip], 'node', machine)).toThrow(message);
  });

  it.each([
    ['10.0.0.1', true],
    ['127.0.0.1', false],
    ['169.254.1.1', false],
    ['224.0.0.1', false],
    ['0.0.0.0', false],
    ['::', false],
    ['::1', false],
    ['fe80::1', false],
    ['ff02::1', false],
    ['2001:db8::1', true],
    ['x', false],
  ])('%s is an address for others: %s', (address, usable) => {
    expect(isUsableAddress(address)).toBe(usable);
  });

  it('the status lists addresses, then the name', () => {
    expect(nodeAddresses(['10.0.0.5'], 'n')).toEqual([
      { type: 'InternalIP', address: '10.0.0.5' },
      { type: 'Hostname', address: 'n' },
    ]);
  });
});
