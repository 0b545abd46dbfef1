// The resolver of simulated containers, and the file that it reads.

import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../labs/sim/clock.ts';
import { Dice } from '../../../../labs/sim/dice.ts';
import { candidates, type DnsQuery, NODE_RESOLV_CONF, resolvConfText, SimDns } from '../../../../labs/sim/dns.ts';

describe('candidates', () => {
  const searches = ['a.example', 'b.example'];
  it.each<[string, string, number, readonly string[]]>([
    ['fewer dots: searched first', 'db', 1, ['db.a.example', 'db.b.example', 'db']],
    ['as many dots: as it is first', 'db.x', 1, ['db.x', 'db.x.a.example', 'db.x.b.example']],
    [
      'a larger ndots',
      'www.example.com',
      3,
      ['www.example.com.a.example', 'www.example.com.b.example', 'www.example.com'],
    ],
    ['a dot at the end', 'db.', 5, ['db']],
    ['ndots 0', 'db', 0, ['db', 'db.a.example', 'db.b.example']],
  ])('%s', (_what, name, ndots, expected) => {
    expect(candidates(name, searches, ndots)).toEqual(expected);
  });

  it('the root is no search domain', () => {
    expect(candidates('db', ['.'], 1)).toEqual(['db']);
  });
});

describe('resolvConfText', () => {
  it('is what containerd writes', () => {
    const config = { servers: ['10.96.0.10', '192.0.2.1'], searches: ['svc.x', 'x'], options: ['ndots:5', 'edns0'] };
    expect(resolvConfText(config)).toBe(
      'search svc.x x\nnameserver 10.96.0.10\nnameserver 192.0.2.1\noptions ndots:5 edns0\n',
    );
  });

  it("is the node's where CRI says nothing", () => {
    expect(resolvConfText({ servers: [], searches: [], options: [] })).toBe(NODE_RESOLV_CONF);
    expect(resolvConfText(undefined)).toBe(NODE_RESOLV_CONF);
  });
});

describe('SimDns', () => {
  const CLUSTER = 'search default.svc.x svc.x x\nnameserver 10.96.0.10\noptions ndots:5\n';

  function start() {
    const clock = new VirtualClock();
    const queries: DnsQuery[] = [];
    const dns = new SimDns({
      clock,
      dice: new Dice(1),
      clusterServers: ['10.96.0.10'],
      clusterDomain: 'x',
      serviceAddress: (namespace, name) => (namespace === 'default' && name === 'db' ? '10.96.0.7' : undefined),
      onQuery: (query) => void queries.push(query),
    });
    const lookUp = async (resolvConf: string, name: string): Promise<readonly string[]> => {
      let found: readonly string[] | undefined;
      void dns.lookUp('default/web', resolvConf, name).then((addresses) => {
        found = addresses;
      });
      await clock.until(() => found !== undefined);
      return found ?? [];
    };
    return { clock, dns, queries, lookUp };
  }

  const rows = (queries: readonly DnsQuery[]): string[] =>
    queries.map(({ type, name, answer }) => `${type} ${name} ${answer}`);

  it('finds a service by its name alone, with both families', async () => {
    const { lookUp, queries } = start();
    expect(await lookUp(CLUSTER, 'db')).toEqual(['10.96.0.7']);
    expect(rows(queries).toSorted()).toEqual(['A db.default.svc.x NOERROR', 'AAAA db.default.svc.x NODATA']);
  });

  it('tries every search domain before a name of the Internet', async () => {
    const { lookUp, queries } = start();
    expect(await lookUp(CLUSTER, 'example.com')).toEqual(['203.0.113.10']);
    expect(queries).toHaveLength(8);
    expect(queries.filter(({ answer }) => answer === 'NXDOMAIN')).toHaveLength(6);
  });

  it("the node's own server knows nothing of the cluster", async () => {
    const { lookUp } = start();
    expect(await lookUp(NODE_RESOLV_CONF, 'db.default.svc.x')).toEqual([]);
    expect(await lookUp(NODE_RESOLV_CONF, 'www.example.com')).toEqual(['203.0.113.11']);
  });

  it('waits for a server that does not answer, as often as it has attempts, and then asks the next', async () => {
    const { lookUp, queries, clock } = start();
    const file = 'nameserver 192.0.2.99\nnameserver 192.0.2.53\noptions timeout:3\n';
    expect(await lookUp(file, 'example.com')).toEqual(['203.0.113.10']);
    expect(queries.filter(({ answer }) => answer === 'none').map(({ durationMs }) => durationMs)).toEqual([
      3_000, 3_000,
    ]);
    expect(clock.monotonic()).toBeLessThan(3_100);
    expect(await lookUp('nameserver 192.0.2.99\noptions attempts:3\nsearch a b\n', 'example.com')).toEqual([]);
    expect(queries.filter(({ durationMs }) => durationMs === 5_000)).toHaveLength(6);
  });

  it('answers as a fault has it', async () => {
    const { lookUp, dns, queries } = start();
    dns.inject = (name) => (name === 'example.com' ? { answer: 'SERVFAIL' } : { delayMs: 40 });
    expect(await lookUp(NODE_RESOLV_CONF, 'example.com')).toEqual([]);
    expect(queries.map(({ answer }) => answer)).toEqual(['SERVFAIL', 'SERVFAIL', 'NXDOMAIN', 'NXDOMAIN']);
    expect(queries.map(({ durationMs }) => durationMs).slice(2)).toEqual([40, 40]);
  });
});
