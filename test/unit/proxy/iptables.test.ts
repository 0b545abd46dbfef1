// The iptables mode: names and rules of services as iptables-save has them, what is written for a change, what is repaired and what is
// removed; and the backend against an iptables that a test plays.

import { describe, expect, it } from 'vitest';
import { parseSave } from '../../../cni/iptables.ts';
import type { Exec } from '../../../lib/exec.ts';
import type { ServicePortMap } from '../../../proxy/backend.ts';
import { IptablesBackend } from '../../../proxy/iptables/iptables.ts';
import { endpointChain, isProxyChain, serviceChains } from '../../../proxy/iptables/names.ts';
import { firstDamage, fullScript, ownerOf, partialScript, removalScript } from '../../../proxy/iptables/script.ts';
import { probability, serviceRules } from '../../../proxy/iptables/service-rules.ts';
import { jumps, type ProxyTables, proxyTables } from '../../../proxy/iptables/tables.ts';
import type { RuleOptions } from '../../../proxy/options.ts';
import { makeService, makeSlice, OPTIONS, portMapOf } from './cases.ts';

const WHOLE = { maxChains: Number.POSITIVE_INFINITY };
const tablesOf = (portMap: ServicePortMap, options: RuleOptions = OPTIONS): ProxyTables =>
  proxyTables(
    [...portMap.values()].map(({ port, reachable }) => serviceRules(port, reachable, options)),
    options,
  );
/** The rules of services, without those that are always there. */
function rules(portMap: ServicePortMap, options?: RuleOptions): string[] {
  const { filter, nat } = tablesOf(portMap, options);
  const always = /KUBE-(POSTROUTING|MARK-MASQ|FORWARD) |NOTE: this must be the last rule/;
  const lines = (table: string, chains: ProxyTables['nat']): string[] =>
    [...chains].flatMap(([name, each]) => each.map((rule) => `${table} ${name} ${rule}`));
  return [...lines('filter', filter), ...lines('nat', nat)].filter((line) => !always.test(line.replace(/ -j .*/, ' ')));
}

describe('names', () => {
  // As kube-proxy's own tests have them.
  it.each([
    ['ns1/svc1:p80', 'XPGD46QRK7WJZT7O', '10.180.0.1:80', 'SXIVWICOYRO3J4NJ'],
    ['ns2/svc2:p80', 'GNZBNJ2PO5MGZ6GT', '10.180.0.2:80', 'RS4RBKLTHTF2IUXJ'],
  ])('%s', (name, hash, address, endpointHash) => {
    const port = { name, protocol: 'tcp' as const };
    expect(serviceChains(port)).toEqual({
      cluster: `KUBE-SVC-${hash}`,
      local: `KUBE-SVL-${hash}`,
      external: `KUBE-EXT-${hash}`,
      firewall: `KUBE-FW-${hash}`,
    });
    expect(endpointChain(port, address)).toBe(`KUBE-SEP-${endpointHash}`);
  });
  it.each([
    ['KUBE-SVC-XPGD46QRK7WJZT7O', true],
    ['KUBE-SERVICES', true],
    ['KUBE-PROXY-CANARY', true],
    ['KUBE-KUBELET-CANARY', false],
    ['KUBE-IPVS-FILTER', false],
    ['CNI-HOSTPORT-DNAT', false],
  ])('%s is the proxy’s: %j', (name, expected) => {
    expect(isProxyChain(name)).toBe(expected);
  });
});

const SVC = 'KUBE-SVC-';
/** Hashes as their place among those of the same rules: what they are is tested above. */
function short(lines: readonly string[]): string[] {
  const seen: string[] = [];
  return lines.map((line) =>
    line.replace(/KUBE-(SVC|SVL|EXT|FW|SEP)-([A-Z2-7]{16})/g, (_, kind: string, hash: string) => {
      if (!seen.includes(hash)) seen.push(hash);
      return `${kind}${seen.indexOf(hash) + 1}`;
    }),
  );
}

describe('rules', () => {
  it('a cluster address with two endpoints', () => {
    expect(short(rules(portMapOf([makeService('web'), makeSlice('web', ['10.1.0.1', '10.1.0.2'])])))).toEqual([
      'nat KUBE-SERVICES -m comment --comment "ns/web:p80 cluster IP" -m tcp -p tcp -d 172.30.0.41 --dport 80 -j SVC1',
      'nat SVC1 -m comment --comment "ns/web:p80 cluster IP" -m tcp -p tcp -d 172.30.0.41 --dport 80 ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ',
      'nat SVC1 -m comment --comment "ns/web:p80 -> 10.1.0.1:80" -m statistic --mode random --probability 0.5000000000 -j SEP2',
      'nat SVC1 -m comment --comment "ns/web:p80 -> 10.1.0.2:80" -j SEP3',
      'nat SEP2 -m comment --comment "ns/web:p80" -s 10.1.0.1 -j KUBE-MARK-MASQ',
      'nat SEP2 -m comment --comment "ns/web:p80" -m tcp -p tcp -j DNAT --to-destination 10.1.0.1:80',
      'nat SEP3 -m comment --comment "ns/web:p80" -s 10.1.0.2 -j KUBE-MARK-MASQ',
      'nat SEP3 -m comment --comment "ns/web:p80" -m tcp -p tcp -j DNAT --to-destination 10.1.0.2:80',
    ]);
  });

  it('no endpoints: refused', () => {
    expect(
      rules(portMapOf([makeService('web', { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] })])),
    ).toEqual([
      'filter KUBE-EXTERNAL-SERVICES -m comment --comment "ns/web has no endpoints" -m addrtype --dst-type LOCAL -m tcp -p tcp --dport 30080 -j REJECT',
      'filter KUBE-SERVICES -m comment --comment "ns/web has no endpoints" -m tcp -p tcp -d 172.30.0.41 --dport 80 -j REJECT',
    ]);
  });

  const outside = (spec: object, more: object = {}) =>
    short(
      rules(
        portMapOf([
          makeService('web', { ports: [{ name: 'p80', port: 80, protocol: 'TCP', nodePort: 30080 }], ...spec }, more),
          makeSlice('web', ['10.1.0.1', ['10.1.0.2', { on: 'there' }]]),
        ]),
      ),
    ).filter((line) => !/SEP|cluster IP/.test(line.split(' -')[0] ?? '') && !/ (SEP\d)/.test(line));

  it('a node port, policy Cluster: masqueraded', () => {
    expect(outside({ type: 'NodePort' }).filter((line) => /EXT|NODEPORTS/.test(line))).toEqual([
      'nat KUBE-NODEPORTS -m comment --comment "ns/web:p80" -m tcp -p tcp --dport 30080 -j EXT1',
      'nat EXT1 -m comment --comment "masquerade traffic for ns/web:p80 external destinations" -j KUBE-MARK-MASQ',
      'nat EXT1 -j SVC1',
    ]);
  });

  it('a node port, policy Local: pods and the node itself reach all endpoints, others those of the node', () => {
    expect(outside({ type: 'NodePort', externalTrafficPolicy: 'Local' }).filter((line) => /EXT/.test(line))).toEqual([
      'nat KUBE-NODEPORTS -m comment --comment "ns/web:p80" -m tcp -p tcp --dport 30080 -j EXT1',
      'nat EXT1 -m comment --comment "pod traffic for ns/web:p80 external destinations" -s 10.0.0.0/8 -j SVC1',
      'nat EXT1 -m comment --comment "masquerade LOCAL traffic for ns/web:p80 external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ',
      'nat EXT1 -m comment --comment "route LOCAL traffic for ns/web:p80 external destinations" -m addrtype --src-type LOCAL -j SVC1',
      'nat EXT1 -j SVL1',
    ]);
  });

  it('a load balancer’s address with source ranges, and its health check port', () => {
    const spec = {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 31000,
      loadBalancerSourceRanges: ['192.0.2.0/24', ' 203.0.113.0/25'],
    };
    const ingress = [{ ip: '1.2.3.4' }, { ip: '1.2.3.5', ipMode: 'Proxy' }, { hostname: 'x' }];
    expect(
      outside(spec, { status: { loadBalancer: { ingress } } }).filter((line) => /FW|FIREWALL|health/.test(line)),
    ).toEqual([
      'filter KUBE-NODEPORTS -m comment --comment "ns/web:p80 health check node port" -m tcp -p tcp --dport 31000 -j ACCEPT',
      'filter KUBE-PROXY-FIREWALL -m comment --comment "ns/web:p80 traffic not accepted by FW1" -m tcp -p tcp -d 1.2.3.4 --dport 80 -j DROP',
      'nat KUBE-SERVICES -m comment --comment "ns/web:p80 loadbalancer IP" -m tcp -p tcp -d 1.2.3.4 --dport 80 -j FW1',
      'nat FW1 -m comment --comment "ns/web:p80 loadbalancer IP" -s 192.0.2.0/24 -j EXT1',
      'nat FW1 -m comment --comment "ns/web:p80 loadbalancer IP" -s 203.0.113.0/25 -j EXT1',
      'nat FW1 -m comment --comment "ns/web:p80 loadbalancer IP" -s 1.2.3.4 -j EXT1',
      'nat FW1 -m comment --comment "other traffic to ns/web:p80 will be dropped by KUBE-PROXY-FIREWALL"',
    ]);
  });

  it('no endpoint on this node: dropped, inside and outside, each by its own policy', () => {
    const away = makeSlice('web', [['10.1.0.2', { on: 'there' }]]);
    const spec = { internalTrafficPolicy: 'Local', externalTrafficPolicy: 'Local', externalIPs: ['192.0.2.9'] };
    expect(
      short(rules(portMapOf([makeService('web', spec), away]))).filter((line) => line.startsWith('filter')),
    ).toEqual([
      'filter KUBE-EXTERNAL-SERVICES -m comment --comment "ns/web:p80 has no local endpoints" -m tcp -p tcp -d 192.0.2.9 --dport 80 -j DROP',
      'filter KUBE-SERVICES -m comment --comment "ns/web:p80 has no local endpoints" -m tcp -p tcp -d 172.30.0.41 --dport 80 -j DROP',
    ]);
  });

  it('a client stays with its endpoint', () => {
    const spec = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } };
    const found = rules(portMapOf([makeService('web', spec), makeSlice('web', ['10.1.0.1'])]));
    const [chain] = /KUBE-SEP-\w+/.exec(found.join()) ?? [];
    expect(found.filter((line) => line.includes('recent'))).toEqual([
      `nat ${serviceChains({ name: 'ns/web:p80', protocol: 'tcp' }).cluster} -m comment --comment "ns/web:p80 -> 10.1.0.1:80" -m recent --name ${chain} --rcheck --seconds 60 --reap -j ${chain}`,
      `nat ${chain} -m comment --comment "ns/web:p80" -m recent --name ${chain} --set -m tcp -p tcp -j DNAT --to-destination 10.1.0.1:80`,
    ]);
  });

  it.each([
    ['--masquerade-all', { ...OPTIONS, masqueradeAll: true }, '--dport 80 -j KUBE-MARK-MASQ'],
    ['no --cluster-cidr', { ...OPTIONS, clusterCidr: undefined }, undefined],
  ])('%s', (_, options, expected) => {
    const found = rules(portMapOf([makeService('web'), makeSlice('web', ['10.1.0.1'])]), options);
    const line = found.find((each) => each.includes('cluster IP') && each.includes('KUBE-MARK-MASQ'));
    expect(line?.endsWith(expected ?? '')).toBe(expected === undefined ? undefined : true);
  });

  it.each([
    ['all addresses', OPTIONS, ['-m addrtype --dst-type LOCAL ! -d 127.0.0.0/8']],
    ['with 127.0.0.1', { ...OPTIONS, localhostNodePorts: true }, ['-m addrtype --dst-type LOCAL']],
    ['some', { ...OPTIONS, nodePortIPs: ['192.0.2.2', '192.0.2.3'] }, ['-d 192.0.2.2', '-d 192.0.2.3']],
  ])('node ports at %s', (_, options, expected) => {
    const last = tablesOf(new Map(), options).nat.get('KUBE-SERVICES') ?? [];
    const note = '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"';
    expect(last).toEqual(expected.map((where) => `${note} ${where} -j KUBE-NODEPORTS`));
  });

  it.each([
    [2, '0.5000000000'],
    [3, '0.3333333333'],
    [7, '0.1428571429'],
  ])('one of %i has the probability %s', (count, expected) => {
    expect(probability(count)).toBe(expected);
  });
});

describe('what is written', () => {
  const one = tablesOf(portMapOf([makeService('a'), makeSlice('a', ['10.1.0.1'])]));
  const both = tablesOf(
    portMapOf(
      [makeService('a'), makeSlice('a', ['10.1.0.1'])],
      [makeService('b', { clusterIP: '172.30.0.42' }), makeSlice('b', ['10.1.0.2'])],
    ),
  );
  it('nothing where nothing differs', () => {
    expect(partialScript(one, one, WHOLE)).toBe('');
  });
  it('of one more service, its chains and the list of services', () => {
    const script = partialScript(one, both, WHOLE);
    expect(script.match(/^:(?:KUBE-\w+)/gm)).toEqual([`:${SVC}`.slice(0, -1), ':KUBE-SEP', ':KUBE-SERVICES']);
    expect(script).not.toContain('10.1.0.1');
  });
  it('of one less, its chains are removed once nothing leads there', () => {
    const script = partialScript(both, one, WHOLE).trim().split('\n');
    expect(script.slice(-3).map((line) => line.replace(/-[A-Z2-7]{16}/, ''))).toEqual([
      '-X KUBE-SVC',
      '-X KUBE-SEP',
      'COMMIT',
    ]);
  });
  it('much of it in parts: a service is whole in one, and what leads there comes last', () => {
    const sections = fullScript(both, [], [], 'me', { maxChains: 2 })
      .split('*nat\n')
      .slice(1)
      .map((text) => short(text.match(/^:\S+/gm) ?? []));
    expect(sections).toEqual([
      [':KUBE-MARK-MASQ', ':KUBE-POSTROUTING'],
      [':SVC1', ':SEP2'],
      [':SVC1', ':SEP2'],
      [':KUBE-SERVICES', ':KUBE-NODEPORTS', ':KUBE-PROXY-CANARY'],
    ]);
  });

  const leading = jumps(OPTIONS);
  /** iptables-save after a full script, but for its own form of rules. */
  const saved = (tables: ProxyTables) => {
    const chains = (table: 'filter' | 'nat', names: readonly string[]): string => {
      const from = (name: string): string[] =>
        leading.filter((jump) => jump.table === table && jump.from === name).map(({ rule }) => `-A ${name} ${rule}`);
      const own = [...tables[table]].flatMap(([name, each]) => each.map((rule) => `-A ${name} ${rule}`));
      return [
        `*${table}`,
        ...names.map((name) => `:${name} ACCEPT [0:0]`),
        ...[...tables[table].keys(), 'KUBE-PROXY-CANARY'].map((name) => `:${name} - [0:0]`),
        '-A KUBE-PROXY-CANARY -m comment --comment nodelet-12345678',
        ...names.flatMap(from),
        ...own,
        'COMMIT',
      ].join('\n');
    };
    return [
      '*mangle\n:KUBE-PROXY-CANARY - [0:0]\nCOMMIT',
      chains('filter', ['INPUT', 'FORWARD', 'OUTPUT']),
      chains('nat', ['PREROUTING', 'OUTPUT', 'POSTROUTING']),
    ].join('\n');
  };
  it('what is there already is not linked again, and what no service has is removed', () => {
    const script = fullScript(one, leading, parseSave(saved(both)), 'me', WHOLE);
    expect(script).not.toContain('-I ');
    expect(script.match(/^-X KUBE-(SVC|SEP)/gm)).toEqual(['-X KUBE-SVC', '-X KUBE-SEP']);
    expect(fullScript(one, leading, [], 'me', WHOLE).match(/^-I \S+/gm)).toHaveLength(leading.length);
  });

  it.each([
    ['nothing', (text: string) => text, undefined],
    [
      'a rule of a service',
      (text: string) => text.replace(/^-A KUBE-SVC.*KUBE-MARK-MASQ\n/m, ''),
      /chain KUBE-SVC-\w+ of table nat has other rules/,
    ],
    [
      'the jump from PREROUTING',
      (text: string) => text.replace(/^-A PREROUTING.*\n/m, ''),
      /rule "PREROUTING .*" of table nat is gone/,
    ],
    [
      'the canary of mangle',
      (text: string) => text.replace(':KUBE-PROXY-CANARY', ':X'),
      /chain KUBE-PROXY-CANARY of table mangle is gone/,
    ],
    [
      'the whole table',
      (text: string) => text.replace(/\*nat[\s\S]*/, ''),
      /chain KUBE-PROXY-CANARY of table nat is gone/,
    ],
  ])('removed by hand: %s', (_, damage, expected) => {
    const found = firstDamage(one, leading, parseSave(damage(saved(one))));
    if (expected === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(expected);
  });

  it('whose they are', () => {
    expect(ownerOf(parseSave(saved(one)))).toBe('nodelet-12345678');
    expect(ownerOf(parseSave('*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT'))).toBe('');
    expect(ownerOf(parseSave('*nat\n:CNI-1 - [0:0]\nCOMMIT'))).toBeUndefined();
  });

  it('all of it is removed, and nothing else', () => {
    const foreign = saved(one).replace(
      '*nat\n',
      '*nat\n:OTHER - [0:0]\n:KUBE-KUBELET-CANARY - [0:0]\n-A OTHER -j ACCEPT\n',
    );
    const script = removalScript(parseSave(foreign));
    const nat = script.split('*nat\n')[1] ?? '';
    expect(nat.match(/^-D \S+/gm)).toEqual(['-D PREROUTING', '-D OUTPUT', '-D POSTROUTING']);
    expect(nat.match(/^-X \S+/gm)?.length).toBe(nat.match(/^:\S+/gm)?.length);
    expect(nat).not.toMatch(/OTHER|KUBELET/);
    expect(removalScript(parseSave('*nat\n:OTHER - [0:0]\nCOMMIT'))).toBe('');
  });
});

describe('the backend', () => {
  const portMap = portMapOf([makeService('a'), makeSlice('a', ['10.1.0.1'])]);
  function play(fails = 0) {
    const scripts: string[] = [];
    let left = fails;
    const run: Exec = async (file, args, options = {}) => {
      const ended = { signal: null, timedOut: false, stderr: '' };
      if (args.includes('--version')) return { ...ended, code: 0, stdout: 'iptables-restore v1.8.9 (nf_tables)' };
      if (file === 'iptables-save') return { ...ended, code: 0, stdout: '' };
      if (left-- > 0)
        return { ...ended, code: 4, stdout: '', stderr: 'Another app is currently holding the xtables lock.' };
      scripts.push(String(options.stdin));
      return { ...ended, code: 0, stdout: '' };
    };
    return { scripts, backend: new IptablesBackend('me', run) };
  }
  it('writes all of it at first, then what differs', async () => {
    const { scripts, backend } = play();
    const first = await backend.apply(portMap, OPTIONS, true);
    expect(first.total).toEqual({ filter: 3, nat: 10 });
    expect((await backend.apply(portMap, OPTIONS, false)).written).toEqual({ filter: 0, nat: 0 });
    expect(scripts).toHaveLength(1);
  });
  it('writes all of it again after a failure', async () => {
    const { scripts, backend } = play(1);
    await expect(backend.apply(portMap, OPTIONS, true)).rejects.toThrow('xtables lock');
    await backend.apply(portMap, OPTIONS, false);
    expect(scripts.map((script) => script.startsWith('*mangle'))).toEqual([true]);
  });
});
