import { describe, expect, it } from 'vitest';
import { formatAddress, parseAddress, prefixContains } from '../../../../agent/network/addresses.ts';
import { podAddresses, podInterfaces } from '../../../../agent/network/interfaces.ts';
import { KernelTables, NetlinkWatcher } from '../../../../agent/network/netlink.ts';
import { PodLinks } from '../../../../agent/network/pod-links.ts';
import { type KernelLink, type KernelRoute, parseChange, RTM } from '../../../../agent/network/rtnetlink.ts';
import type { CniResult } from '../../../../cni/types.ts';
import { type Span, Tracer } from '../../../../lib/trace.ts';

const link = (index: number, name: string, more: Partial<KernelLink> = {}): KernelLink => ({
  ...{ index, name, kind: 'veth', mac: undefined, mtu: 1500, up: true },
  ...{ master: undefined, peerIndex: undefined, peerNetnsId: undefined },
  ...more,
});
const route = (dst: string, oif: number, more: Partial<KernelRoute> = {}): KernelRoute => ({
  ...{ dst, oif, gw: undefined, table: 254, priority: 0 },
  ...more,
});

describe('addresses', () => {
  it.each([
    ['0a000001', '10.0.0.1'],
    ['00000000000000000000000000000000', '::'],
    ['00000000000000000000000000000001', '::1'],
    ['fe8000000000000002fc00fffe000001', 'fe80::2fc:ff:fe00:1'],
    ['20010db8000000000001000000000000', '2001:db8:0:0:1::'],
    ['20010db8000100010001000100010001', '2001:db8:1:1:1:1:1:1'],
    ['20010db8000000010001000100010001', '2001:db8:0:1:1:1:1:1'],
  ])('%s is %s, and back', (hex, text) => {
    expect(formatAddress(Buffer.from(hex, 'hex'))).toBe(text);
    expect(Buffer.from(parseAddress(text) ?? []).toString('hex')).toBe(hex);
  });
  it.each([
    ['::ffff:10.0.0.1', '00000000000000000000ffff0a000001'],
    ['64:ff9b::192.0.2.33', '0064ff9b0000000000000000c0000221'],
    ['fe80::1%eth0', 'fe800000000000000000000000000001'],
    ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
    ['10.0.0', ''],
    ['fe80::1::2', ''],
  ])('reads %s as %s', (text, hex) => expect(Buffer.from(parseAddress(text) ?? []).toString('hex')).toBe(hex));
  it.each([
    ['10.1.0.0/16', '10.1.2.3/24', true],
    ['10.1.0.0/16', '10.2.0.1', false],
    ['0.0.0.0/0', '8.8.8.8', true],
    ['fd00::/64', 'fd00::5/128', true],
    ['fd00::/64', '10.0.0.1', false],
    ['10.1.0.0/15', '10.0.255.255', true],
    ['10.1.0.0/15', '10.2.0.0', false],
    ['10.0.0.1/32', '10.0.0.1', true],
    ['10.0.0.1/32', '10.0.0.0', false],
    ['fd00:0:0:8000::/49', 'fd00:0:0:ffff::1', true],
    ['fd00:0:0:8000::/49', 'fd00:0:0:7fff::1', false],
    ['::/0', 'fd00::1', true],
    ['10.0.0.0/33', '10.0.0.0', false],
    ['10.0.0.0', '10.0.0.0', false],
    ['nonsense', '10.0.0.1', false],
  ])('%s contains %s: %s', (cidr, address, expected) => expect(prefixContains(cidr, address)).toBe(expected));
});

describe('messages of the kernel', () => {
  const attr = (type: number, value: Buffer): Buffer => {
    const padded = Buffer.alloc((4 + value.length + 3) & ~3);
    padded.writeUInt16LE(4 + value.length, 0);
    padded.writeUInt16LE(type, 2);
    value.copy(padded, 4);
    return padded;
  };
  const u32 = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    return bytes;
  };
  const linkMessage = (family = 0): Buffer => {
    const header = Buffer.alloc(16);
    header.writeUInt8(family, 0);
    header.writeInt32LE(7, 4);
    header.writeUInt32LE(1, 8);
    const info = attr(1, Buffer.from('veth\0'));
    return Buffer.concat([
      header,
      attr(3, Buffer.from('veth12\0')),
      attr(1, Buffer.from('0a0b0c0d0e0f', 'hex')),
      attr(4, u32(1450)),
      attr(10, u32(3)),
      attr(0x8000 | 18, info),
      attr(5, u32(2)),
    ]);
  };
  it('report a link with kind, address, MTU, master and peer', () => {
    expect(parseChange(RTM.NEWLINK, linkMessage())).toEqual({
      what: 'link',
      gone: false,
      link: link(7, 'veth12', { mac: '0a:0b:0c:0d:0e:0f', mtu: 1450, master: 3, peerIndex: 2 }),
    });
    expect(parseChange(RTM.DELLINK, linkMessage())).toMatchObject({ gone: true });
  });
  it('of the bridge family, as when a port leaves, are no links', () => {
    expect(parseChange(RTM.DELLINK, linkMessage(7))).toBeUndefined();
  });
  it.each([0, 4, 15, 20, 30])('cut off after %i bytes do no harm', (length) => {
    expect(() => parseChange(RTM.NEWLINK, linkMessage().subarray(0, length))).not.toThrow();
    expect(() => parseChange(RTM.NEWADDR, linkMessage().subarray(0, length))).not.toThrow();
    expect(() => parseChange(RTM.NEWROUTE, linkMessage().subarray(0, length))).not.toThrow();
  });
});

describe('the tables', () => {
  it('report whether a message changed anything', () => {
    const tables = new KernelTables();
    const change = { what: 'link', gone: false, link: link(5, 'veth5') } as const;
    expect([tables.apply(change), tables.apply(change)]).toEqual([true, false]);
    expect(tables.apply({ ...change, gone: true })).toBe(true);
    expect(tables.link('veth5')).toBeUndefined();
  });
  it('find a link by the name that it has now, whichever link had it before', () => {
    const tables = new KernelTables();
    const tell = (entry: KernelLink, gone = false) => tables.apply({ what: 'link', gone, link: entry });
    tell(link(5, 'veth5'));
    tell(link(5, 'eth9'));
    expect([tables.link('veth5'), tables.link('eth9')?.index]).toEqual([undefined, 5]);
    // The name goes to another link, and only then the end of the first one is reported.
    tell(link(6, 'eth9'));
    tell(link(5, 'eth9'), true);
    expect([tables.link('eth9')?.index, tables.link(5)]).toEqual([6, undefined]);
    tables.clear();
    expect(tables.link('eth9')).toBeUndefined();
  });
  it('lose the routes and addresses of a link that goes, and the routes of one that goes down', () => {
    const tables = new KernelTables();
    tables.apply({ what: 'link', gone: false, link: link(5, 'veth5') });
    tables.apply({ what: 'route', gone: false, route: route('10.1.0.0/24', 5) });
    tables.apply({ what: 'address', gone: false, address: { index: 5, address: '10.1.0.1/24' } });
    tables.apply({ what: 'link', gone: false, link: link(5, 'veth5', { up: false }) });
    expect([tables.routes().length, tables.addressesOf(5)]).toEqual([0, ['10.1.0.1/24']]);
    tables.apply({ what: 'link', gone: true, link: link(5, 'veth5') });
    expect(tables.addressesOf(5)).toEqual([]);
  });
  it('find the way to an address: longest prefix, then lowest metric, main table alone', () => {
    const tables = new KernelTables();
    const all = [
      route('0.0.0.0/0', 1),
      route('10.1.0.0/16', 2, { priority: 100 }),
      route('10.1.0.0/16', 3, { priority: 5 }),
      route('10.1.2.3/32', 4, { table: 255 }),
      route('fe80::/64', 5),
      route('::/0', 6),
    ];
    for (const entry of all) tables.apply({ what: 'route', gone: false, route: entry });
    expect(tables.routeTo('10.1.2.3/24')?.oif).toBe(3);
    expect(tables.routeTo('8.8.8.8')?.oif).toBe(1);
    expect(tables.routeTo('fe80::5/64')?.oif).toBe(5);
    expect(tables.routeTo('2001:db8::1')?.oif).toBe(6);
  });
  it('are read whole by many at once', async () => {
    // A namespace of its own needs root; what any user can do at the same time is ask, many times over.
    const watchers = Array.from({ length: 8 }, () => new NetlinkWatcher((what) => expect.unreachable(what)));
    await Promise.all(watchers.map((watcher) => watcher.start()));
    const [first, ...others] = watchers.map((watcher) => watcher.tables.link('lo'));
    for (const other of others) expect(other).toEqual(first);
    for (const watcher of watchers) watcher.close();
  });
  it("hold this machine's loopback once the kernel was asked", async () => {
    const watcher = new NetlinkWatcher((what, error) => {
      throw new Error(what, { cause: error });
    });
    await watcher.start();
    const lo = watcher.tables.link('lo');
    expect(lo?.index).toBe(1);
    expect(watcher.tables.addressesOf(1)).toContain('127.0.0.1/8');
    watcher.close();
  });
});

const RESULT: CniResult = {
  interfaces: [
    { name: 'cni0' },
    { name: 'veth12' },
    { name: 'eth0', mac: '0a:00:00:00:00:01', sandbox: '/run/netns/a' },
  ],
  ips: [{ address: '10.1.0.5/16', gateway: '10.1.0.1', interface: 2 }],
  routes: [{ dst: '0.0.0.0/0' }],
  dns: {},
};

describe("a pod's addresses", () => {
  it.each<[string, Partial<CniResult>, string[]]>([
    ['are those of the interface that was asked for', {}, ['10.1.0.5']],
    [
      'are all where the result is too old to know interfaces',
      { interfaces: [], ips: [{ address: 'fd00::5/64' }] },
      ['fd00::5'],
    ],
    ['are not those of another interface', { ips: [{ address: '10.9.0.1/16', interface: 0 }] }, []],
  ])('%s', (_rule, change, expected) => {
    expect(podAddresses({ ...RESULT, ...change }, 'eth0')).toEqual(expected);
  });
});

describe("a pod's interfaces", () => {
  const tables = new KernelTables();
  tables.apply({ what: 'link', gone: false, link: link(3, 'cni0', { kind: 'bridge' }) });
  tables.apply({ what: 'link', gone: false, link: link(7, 'veth12', { mtu: 1450 }) });
  const eth0 = {
    name: 'eth0',
    mac: '0a:00:00:00:00:01',
    addresses: ['10.1.0.5/16'],
    routes: [{ dst: '0.0.0.0/0', gw: '10.1.0.1' }],
  };
  it('are what CNI reported, with the host end and MTU that the kernel shows', () => {
    expect(podInterfaces(RESULT, 'eth0', tables)).toEqual([{ ...eth0, hostName: 'veth12', mtu: 1450 }]);
  });
  it('have their host end before the kernel reports it', () => {
    expect(podInterfaces(RESULT, 'eth0', new KernelTables())).toEqual([{ ...eth0, hostName: 'veth12' }]);
  });
  it('have none where the plugin makes none (macvlan)', () => {
    const result: CniResult = {
      ...RESULT,
      interfaces: [{ name: 'eth0', sandbox: '/a' }],
      ips: [{ address: '10.1.0.5/16', interface: 0 }],
    };
    expect(podInterfaces(result, 'eth0', tables)).toEqual([
      { name: 'eth0', addresses: ['10.1.0.5/16'], routes: [{ dst: '0.0.0.0/0' }] },
    ]);
  });
  it('are one with all addresses when the result is too old to know interfaces', () => {
    const result: CniResult = {
      ...RESULT,
      interfaces: [],
      ips: [{ address: '10.1.0.5/16' }, { address: 'fd00::5/64' }],
    };
    expect(podInterfaces(result, 'eth0', tables)[0]).toMatchObject({
      name: 'eth0',
      addresses: ['10.1.0.5/16', 'fd00::5/64'],
    });
  });
});

describe('the spans of pod links', () => {
  const pod = { namespace: 'demo', name: 'web', uid: 'u' };
  const attachment = { containerId: 'c1', netns: '/n', ifName: 'eth0', args: '', capabilityArgs: {} };
  const setUp = () => {
    const tables = new KernelTables();
    const spans: Span[] = [];
    const tracer = new Tracer();
    tracer.subscribe((span) => spans.push(span));
    const links = new PodLinks(tables, tracer);
    const tell = (gone: boolean): void => {
      const change = { what: 'link', gone, link: link(7, 'veth12') } as const;
      tables.apply(change);
      links.changed(change);
    };
    const names = async (): Promise<string[]> => {
      await new Promise(setImmediate);
      return spans.map((span) => `${span.name} ${span.pod?.name ?? '-'}`);
    };
    return { links, tell, names };
  };
  it.each(['the kernel first', 'CNI first'])('are one for the coming and one for the going, %s', async (order) => {
    const { links, tell, names } = setUp();
    if (order === 'the kernel first') tell(false);
    links.attached(attachment, RESULT, pod, true);
    if (order === 'CNI first') tell(false);
    tell(false);
    expect(await names()).toEqual(['NEWLINK veth12 web']);
    links.released('c1');
    tell(true);
    expect(await names()).toEqual(['NEWLINK veth12 web', 'DELLINK veth12 web']);
  });
  it('are none for links that are no pod s, nor for the coming of one that was there before the agent', async () => {
    const { links, tell, names } = setUp();
    tell(false);
    expect(await names()).toEqual([]);
    links.attached(attachment, RESULT, pod, false);
    expect(await names()).toEqual([]);
    tell(true);
    expect(await names()).toEqual(['DELLINK veth12 web']);
  });
});
