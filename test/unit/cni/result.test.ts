import { describe, expect, it } from 'vitest';
import { effectiveRoutes, formatResult, parseResult } from '../../../cni/result.ts';
import type { JsonObject } from '../../../cni/types.ts';

const WHOLE: JsonObject = {
  cniVersion: '1.1.0',
  interfaces: [
    { name: 'cni0', mac: '00:11:22:33:44:55' },
    { name: 'eth0', mac: '00:11:22:33:44:66', mtu: 1400, sandbox: '/run/netns/x', socketPath: '/s', pciID: '0:1' },
  ],
  ips: [
    { interface: 1, address: '10.1.0.5/16', gateway: '10.1.0.1' },
    { interface: 1, address: 'fd00::5/64', gateway: 'fd00::1' },
  ],
  routes: [
    { dst: '0.0.0.0/0', gw: '10.1.0.1', mtu: 1300, advmss: 1200, priority: 5, table: 100, scope: 0 },
    { dst: '::/0', gw: 'fd00::1' },
  ],
  dns: { nameservers: ['10.0.0.10'], search: ['svc'], domain: 'd', options: ['ndots:5'] },
};
const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const convert = (version: string): unknown => json(formatResult(parseResult(WHOLE, '1.1.0', 'result'), version));

describe('a result of 1.1.0 in the words of older versions', () => {
  it('is unchanged in 1.1.0', () => expect(convert('1.1.0')).toEqual(WHOLE));
  it('loses what 1.1.0 added in 1.0.0', () => {
    expect(convert('1.0.0')).toMatchObject({
      interfaces: [
        { name: 'cni0', mac: '00:11:22:33:44:55' },
        { name: 'eth0', mac: '00:11:22:33:44:66', sandbox: '/run/netns/x' },
      ],
      routes: [
        { dst: '0.0.0.0/0', gw: '10.1.0.1' },
        { dst: '::/0', gw: 'fd00::1' },
      ],
    });
    expect(JSON.stringify(convert('1.0.0'))).not.toMatch(/mtu|socketPath|pciID|advmss|priority|table|scope/);
  });
  it.each(['0.3.0', '0.3.1', '0.4.0'])('tells the family of each address in %s', (version) => {
    expect(convert(version)).toMatchObject({
      cniVersion: version,
      ips: [
        { version: '4', interface: 1, address: '10.1.0.5/16', gateway: '10.1.0.1' },
        { version: '6', interface: 1, address: 'fd00::5/64', gateway: 'fd00::1' },
      ],
    });
  });
  it.each(['0.1.0', '0.2.0'])('is one address per family in %s', (version) => {
    expect(convert(version)).toEqual({
      cniVersion: version,
      ip4: { ip: '10.1.0.5/16', gateway: '10.1.0.1', routes: [{ dst: '0.0.0.0/0', gw: '10.1.0.1' }] },
      ip6: { ip: 'fd00::5/64', gateway: 'fd00::1', routes: [{ dst: '::/0', gw: 'fd00::1' }] },
      dns: WHOLE['dns'],
    });
  });
  it.each(['0.3.1', '0.4.0', '1.0.0', '1.1.0'])('reads back from %s as the same addresses and routes', (version) => {
    const back = parseResult(convert(version), version, 'result');
    expect(back.ips).toEqual(parseResult(WHOLE, '1.1.0', 'result').ips);
    expect(back.routes.map((route) => route.dst)).toEqual(['0.0.0.0/0', '::/0']);
  });
});

describe('reading results', () => {
  it('gives a route of 0.2.0 without a gateway that of its address', () => {
    const old = {
      cniVersion: '0.2.0',
      ip4: { ip: '10.0.0.2/24', gateway: '10.0.0.1', routes: [{ dst: '0.0.0.0/0' }] },
    };
    expect(json(parseResult(old, '0.2.0', 'result'))).toEqual({
      interfaces: [],
      ips: [{ address: '10.0.0.2/24', gateway: '10.0.0.1' }],
      routes: [{ dst: '0.0.0.0/0', gw: '10.0.0.1' }],
      dns: {},
    });
  });
  it("takes a result without a version for the configuration's", () => {
    expect(parseResult({ ips: [{ address: '1.2.3.4/8' }] }, '0.4.0', 'result').ips).toHaveLength(1);
  });
  it.each<[string, unknown, RegExp]>([
    ['text', 'x', /result: must be an object/],
    ['a future version', { cniVersion: '7.0.0' }, /result is of version "7.0.0"/],
    ['addresses that are no list', { ips: {} }, /ips: must be a list/],
    ['an address that is missing', { ips: [{}] }, /ips\[0\].address: must be a string/],
    [
      'an interface index out of range',
      { ips: [{ address: 'a', interface: 3 }] },
      /ips\[0\].interface: 3 is not the index/,
    ],
    ['an interface without name', { interfaces: [{}] }, /interfaces\[0\].name: must be a string/],
    ['a route without destination', { routes: [{ gw: '1.1.1.1' }] }, /routes\[0\].dst: must be a string/],
    ['dns that is a list', { dns: [] }, /dns: must be an object/],
  ])('refuses %s', (_, value, message) => {
    expect(() => parseResult(value, '1.0.0', 'result')).toThrow(message);
  });
  it('takes null where Go writes it for an empty list', () => {
    expect(parseResult({ ips: null, routes: null, interfaces: null }, '1.0.0', 'result').ips).toEqual([]);
  });
});

it('a route without gateway goes through that of the first address of its family', () => {
  const result = parseResult(
    { ips: WHOLE['ips'], interfaces: WHOLE['interfaces'], routes: [{ dst: '0.0.0.0/0' }, { dst: '::/0' }] },
    '1.0.0',
    'r',
  );
  expect(effectiveRoutes(result).map((route) => route.gw)).toEqual(['10.1.0.1', 'fd00::1']);
});
