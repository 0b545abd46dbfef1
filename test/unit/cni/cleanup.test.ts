import { describe, expect, it } from 'vitest';
import { emptyNftObjects, planChainRemoval, snapshotFirewall } from '../../../cni/cleanup.ts';
import { masqueradeChain } from '../../../cni/iptables.ts';
import type { Exec } from '../../../lib/exec.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { tracedExec } from '../../../lib/traced-exec.ts';

const PORTMAP_IDLE = `*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-HOSTPORT-MASQ - [0:0]
:CNI-HOSTPORT-SETMARK - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-A POSTROUTING -s 10.0.0.0/8 -j MASQUERADE
-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
-A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000
COMMIT
`;
const removed = (save: string, keep: readonly string[] = []): readonly string[] =>
  planChainRemoval(save, new Set(keep)).removed;
const withLines = (save: string, ...lines: string[]): string => save.replace('COMMIT', `${lines.join('\n')}\nCOMMIT`);

describe('which CNI chains go', () => {
  it("portmap's three, with the rules that lead to them, when no port is mapped; nothing else", () => {
    expect(planChainRemoval(PORTMAP_IDLE, new Set()).script).toBe(`*nat
-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-D OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-D POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ
-D CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
-D CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000
-X CNI-HOSTPORT-DNAT
-X CNI-HOSTPORT-MASQ
-X CNI-HOSTPORT-SETMARK
COMMIT
`);
  });
  it('none while a port is mapped', () => {
    const busy = withLines(
      PORTMAP_IDLE.replace(':CNI-HOSTPORT-DNAT', ':CNI-DN-abc - [0:0]\n:CNI-HOSTPORT-DNAT'),
      '-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"n\\" id: \\"c -j X\\"" -m multiport --dports 80 -j CNI-DN-abc',
      '-A CNI-DN-abc -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.1.1.1:80',
    );
    expect(removed(busy)).toEqual([]);
  });
  it('none that were there before', () => {
    const keep = ['nat CNI-HOSTPORT-DNAT', 'nat CNI-HOSTPORT-MASQ', 'nat CNI-HOSTPORT-SETMARK'];
    expect(removed(PORTMAP_IDLE, keep)).toEqual([]);
  });
  it('a masquerading chain only when no rule leads to it', () => {
    const chains =
      '*nat\n:POSTROUTING ACCEPT [0:0]\n:CNI-aaa - [0:0]\n:CNI-bbb - [0:0]\n-A CNI-bbb -j MASQUERADE\nCOMMIT\n';
    expect(removed(withLines(chains, '-A POSTROUTING -s 10.1.1.1/32 -j CNI-aaa'))).toEqual(['nat CNI-bbb']);
  });
  it.each<[string, string[], string[]]>([
    ['both of firewall when they hold nothing of their own', [], ['filter CNI-ADMIN', 'filter CNI-FORWARD']],
    ["none of firewall while a pod's address is in it", ['-A CNI-FORWARD -s 10.1.1.1/32 -j ACCEPT'], []],
    ["none of firewall when the administrator's chain has rules", ['-A CNI-ADMIN -s 10.9.9.9/32 -j DROP'], []],
  ])('%s', (_, rules, gone) => {
    const save = `*filter
:FORWARD ACCEPT [0:0]
:CNI-ADMIN - [0:0]
:CNI-FORWARD - [0:0]
-A FORWARD -m comment --comment "CNI firewall plugin rules" -j CNI-FORWARD
-A CNI-FORWARD -m comment --comment "CNI firewall plugin admin overrides" -j CNI-ADMIN
${rules.join('\n')}
COMMIT
`;
    expect(removed(save)).toEqual(gone);
  });
  it('never one that is not named CNI-', () => {
    expect(removed('*nat\n:DOCKER - [0:0]\n:KUBE-SERVICES - [0:0]\nCOMMIT\n')).toEqual([]);
  });
});

describe('which nftables objects go', () => {
  const table = (name: string) => ({ table: { family: 'ip', name } });
  const chain = (name: string, more = {}) => ({
    chain: { family: 'ip', table: 'nat', name, hook: 'postrouting', policy: 'accept', ...more },
  });
  const nothing = { tables: [], chains: [] };
  it('a new iptables table whose chains are empty', () => {
    expect(emptyNftObjects([table('nat'), chain('POSTROUTING')], nothing)).toEqual(['delete table ip nat']);
  });
  it.each([
    ['with a rule', [chain('POSTROUTING'), { rule: { family: 'ip', table: 'nat', chain: 'POSTROUTING' } }]],
    ['with a policy of its own', [chain('POSTROUTING', { policy: 'drop' })]],
    ['with a chain that is no base chain', [{ chain: { family: 'ip', table: 'nat', name: 'MINE' } }]],
    ['with a set', [{ set: { family: 'ip', table: 'nat', name: 's' } }]],
  ])('not one %s', (_, objects) => {
    expect(emptyNftObjects([table('nat'), ...objects], nothing).filter((command) => /table/.test(command))).toEqual([]);
  });
  it('of a table that was there before, only the empty base chains that were not', () => {
    const before = { tables: ['ip nat'], chains: ['ip nat PREROUTING'] };
    const ruleset = [table('nat'), chain('PREROUTING'), chain('POSTROUTING')];
    expect(emptyNftObjects(ruleset, before)).toEqual(['delete chain ip nat POSTROUTING']);
  });
  it('no table that iptables does not make', () => {
    expect(emptyNftObjects([{ table: { family: 'inet', name: 'filter' } }, table('mine')], nothing)).toEqual([]);
  });
});

it.each([
  ['n', 'c1', 'CNI-9b00b9b7c2795a8a61a6eec1'],
  ['ndlt-h4u0', 'c-ndns-22206-1', 'CNI-727614b44c371f5244651683'],
])('the masquerading chain of network %s and container %s is the one the bridge plugin makes', (network, id, chain) => {
  expect(masqueradeChain(network, id)).toBe(chain);
});

it('a snapshot of the firewall that is traced has a span for each program', async () => {
  const tracer = new Tracer();
  const spans: Span[] = [];
  tracer.subscribe((span) => spans.push(span));
  const run: Exec = async (file) => ({
    code: file === 'nft' ? 1 : 0,
    signal: null,
    timedOut: false,
    stdout: '',
    stderr: file === 'nft' ? 'netlink: busy' : '',
  });
  await expect(snapshotFirewall(tracedExec(tracer, 'netfilter', run))).rejects.toThrow('netlink: busy');
  expect(spans).toMatchObject([
    { kind: 'netfilter', name: 'iptables-save', outcome: 'ok' },
    { kind: 'netfilter', name: 'ip6tables-save', outcome: 'ok' },
    { kind: 'netfilter', name: 'nft', outcome: 'error', error: 'netlink: busy', attributes: { exitCode: 1 } },
  ]);
});
