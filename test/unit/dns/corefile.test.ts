// Corefiles as settings, and what is refused, with its line.

import { describe, expect, it, test } from 'vitest';
import { parseCorefile } from '../../../dns/corefile/corefile.ts';

const KUBEADM = `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
`;

/** The only server of a Corefile with these lines in it. */
function server(...lines: readonly string[]) {
  const [found] = parseCorefile(`. {\n${lines.join('\n')}\n}\n`);
  if (found === undefined) throw new Error('no server');
  return found;
}

function refusal(text: string): string {
  try {
    parseCorefile(text);
  } catch (error) {
    if (error instanceof Error) return error.message;
    throw error;
  }
  return 'accepted';
}

test('the one that kubeadm writes', () => {
  const [found, ...others] = parseCorefile(KUBEADM);
  expect(others).toEqual([]);
  expect(found).toMatchObject({
    zones: [{ zone: '', port: 53 }],
    errors: true,
    health: { at: { host: '', port: 8080 }, lameduckMs: 5000 },
    ready: { host: '', port: 8181 },
    prometheus: { host: '', port: 9153 },
    reload: { intervalMs: 30_000, jitterMs: 15_000 },
    loop: true,
    loadbalance: true,
    cache: {
      zones: [''],
      success: { capacity: 9984, maxTtl: 30, minTtl: 5, except: ['cluster.local'] },
      denial: { capacity: 9984, maxTtl: 30, minTtl: 5, except: ['cluster.local'] },
      servfailTtl: 5,
    },
    kubernetes: { zones: ['cluster.local', 'in-addr.arpa', 'ip6.arpa'], pods: 'insecure', ttl: 30 },
    forwards: [{ from: '', to: [{ file: '/etc/resolv.conf', line: 13 }], maxConcurrent: 1000, policy: 'random' }],
  });
});

describe('grammar', () => {
  it.each([
    ['several blocks', 'a.example {\n}\nb.example:1053 {\n}', ['a.example:53', 'b.example:1053']],
    ['several zones', 'a.example, B.Example. c.example {\n}', ['a.example:53', 'b.example:53', 'c.example:53']],
    ['zones on several lines', 'a.example,\nb.example {\n}', ['a.example:53', 'b.example:53']],
    ['a port alone', ':1053 {\n}', [':1053']],
    ['dns://', 'dns://.:1053 {\n}', [':1053']],
    ['a range at a label', '10.0.0.0/24 {\n}', ['0.0.10.in-addr.arpa:53']],
    ['a range between labels', '10.4.0.0/15 {\n}', ['4.10.in-addr.arpa:53', '5.10.in-addr.arpa:53']],
    ['comments and quotes', '# one\n. { # two\n "errors" # three\n}', [':53']],
  ])('%s', (_, text, expected) => {
    const found = parseCorefile(text).flatMap(({ zones }) => zones.map(({ zone, port }) => `${zone}:${port}`));
    expect(found).toEqual(expected);
  });
});

describe('options', () => {
  it.each([
    [
      'forward',
      'forward example.org 10.0.0.1 10.0.0.2:1053 [fd00::1]:54 fd00::2 dns://10.0.0.3',
      {
        from: 'example.org',
        to: [
          ['10.0.0.1', 53],
          ['10.0.0.2', 1053],
          ['fd00::1', 54],
          ['fd00::2', 53],
          ['10.0.0.3', 53],
        ].map(([address, port]) => ({ address, port })),
      },
    ],
    ['policy', 'forward . 10.0.0.1 {\npolicy sequential\n}', { policy: 'sequential' }],
    ['except', 'forward . 10.0.0.1 {\nexcept a.example B.example\n}', { except: ['a.example', 'b.example'] }],
    [
      'times',
      'forward . 10.0.0.1 {\nread_timeout 1m30s\nexpire 300ms\nhealth_check 1s no_rec domain a.example\n}',
      {
        readTimeoutMs: 90_000,
        expireMs: 300,
        healthCheckMs: 1000,
        healthCheckRecursion: false,
        healthCheckDomain: 'a.example',
      },
    ],
    [
      'counts',
      'forward . 10.0.0.1 {\nmax_fails 0\nmax_concurrent 7\nmax_connect_attempts 3\nmax_idle_conns 4\n}',
      { maxFails: 0, maxConcurrent: 7, maxConnectAttempts: 3, maxIdleConns: 4 },
    ],
    [
      'flags',
      'forward . 10.0.0.1 {\nforce_tcp\nprefer_udp\nfailfast_all_unhealthy_upstreams\nfailover SERVFAIL refused\n}',
      { forceTcp: true, preferUdp: true, failFast: true, failover: [2, 5] },
    ],
  ])('forward: %s', (_, text, expected) => {
    expect(server(text).forwards[0]).toMatchObject(expected);
  });
  test('several forwards, in their order', () => {
    const { forwards } = server('forward a.example 10.0.0.1', 'forward . 10.0.0.2');
    expect(forwards.map(({ from }) => from)).toEqual(['a.example', '']);
  });
  it.each([
    ['cache', { success: { maxTtl: 3600 }, denial: { maxTtl: 1800 }, zones: [''] }],
    ['cache a.example', { zones: ['a.example'] }],
    ['cache 60 a.example', { zones: ['a.example'], success: { maxTtl: 60 } }],
    [
      'cache {\nsuccess 5000 60 10\ndenial 100 30\n}',
      { success: { capacity: 5000, maxTtl: 60, minTtl: 10 }, denial: { capacity: 1024, maxTtl: 30 } },
    ],
    ['cache {\nservfail 0\nkeepttl\ndisable denial\n}', { servfailTtl: 0, keepTtl: true, denial: { except: [''] } }],
  ])('%s', (text, expected) => {
    expect(server(text).cache).toMatchObject(expected);
  });
  test('hosts', () => {
    const text = [
      'hosts /tmp/hosts a.example {',
      '10.0.0.1 one.a.example two',
      'ttl 60',
      'no_reverse',
      'reload 1s',
      'fallthrough',
      '}',
    ];
    expect(server(...text).hosts).toEqual({
      file: '/tmp/hosts',
      zones: ['a.example'],
      inline: ['10.0.0.1 one.a.example two'],
      ttl: 60,
      reverse: false,
      reloadMs: 1000,
      fallThrough: [''],
    });
  });
  test('log', () => {
    const { logs } = server('log', 'log a.example "{proto} {name}" {', 'class denial error', '}');
    expect(logs).toMatchObject([
      { zones: [''], classes: ['all'] },
      { zones: ['a.example'], format: '{proto} {name}', classes: ['denial', 'error'] },
    ]);
    expect(logs[0]?.format).toContain('{remote}:{port} - {>id}');
  });
  test('addresses of HTTP servers', () => {
    const found = server('health localhost:8090', 'ready 127.0.0.1:1', 'prometheus', 'reload 10s 9s');
    expect(found).toMatchObject({
      health: { at: { host: 'localhost', port: 8090 }, lameduckMs: 0 },
      ready: { host: '127.0.0.1', port: 1 },
      prometheus: { host: 'localhost', port: 9153 },
      reload: { intervalMs: 10_000, jitterMs: 5000 },
    });
  });
});

describe('refused, with the line', () => {
  it.each([
    ['nothing', '', 'Corefile:1 - Error during parsing: there is no server block'],
    ['an unknown directive', '. {\n\n nope\n}', "Corefile:3 - Error during parsing: Unknown directive 'nope'"],
    [
      'a plugin that is not there',
      '. {\n errors\n rewrite name a b\n}',
      "Corefile:3 - Error during parsing: the plugin 'rewrite' is not there",
    ],
    [
      'template',
      '. {\n template IN A {\n answer "x"\n }\n}',
      "Corefile:2 - Error during parsing: the plugin 'template' is not there",
    ],
    [
      'a name of every object',
      '. {\n constructor\n}',
      "Corefile:2 - Error during parsing: Unknown directive 'constructor'",
    ],
    [
      'an option',
      '. {\n cache {\n  serve_stale\n }\n}',
      "Corefile:3 - Error during parsing: 'serve_stale' of cache is not there",
    ],
    [
      'an unknown option',
      '. {\n forward . 1.1.1.1 {\n  tlss\n }\n}',
      "Corefile:3 - Error during parsing: unknown property 'tlss'",
    ],
    [
      'how the API server is reached',
      '. {\n kubernetes cluster.local {\n endpoint http://x\n }\n}',
      "Corefile:3 - Error during parsing: 'endpoint' of kubernetes is given by --kubeconfig of nodelet dns",
    ],
    [
      'a mode of pods',
      '. {\n kubernetes cluster.local {\n pods maybe\n }\n}',
      'Corefile:3 - Error during parsing: wrong value for pods: maybe,  must be one of: disabled, verified, insecure',
    ],
    [
      'a TTL',
      '. {\n kubernetes cluster.local {\n ttl 3601\n }\n}',
      'Corefile:3 - Error during parsing: 3601 must be in range [0, 3600]',
    ],
    [
      'reverse zones alone',
      '. {\n kubernetes in-addr.arpa\n}',
      'Corefile:2 - Error during parsing: non-reverse zone name must be used',
    ],
    [
      'both ways to choose namespaces',
      '. {\n kubernetes a.b {\n namespaces x\n namespace_labels y\n }\n}',
      'Corefile:2 - Error during parsing: namespaces and namespace_labels cannot both be set',
    ],
    [
      'no upstream',
      '. {\n forward .\n}',
      "Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after '.'",
    ],
    [
      'an upstream over TLS',
      '. {\n forward . tls://1.1.1.1\n}',
      'Corefile:2 - Error during parsing: forward over tls is not there: tls://1.1.1.1',
    ],
    [
      'an upstream by name',
      '. {\n forward . dns.example\n}',
      'Corefile:2 - Error during parsing: not an IP address or file: "dns.example" (names as upstreams are not there)',
    ],
    [
      'a policy',
      '. {\n forward . 1.1.1.1 {\n policy best\n }\n}',
      "Corefile:3 - Error during parsing: unknown policy 'best'",
    ],
    [
      'a time',
      '. {\n health {\n lameduck soon\n }\n}',
      'Corefile:3 - Error during parsing: "soon" is no time like 5s, 300ms or 1m30s',
    ],
    [
      'a short interval',
      '. {\n reload 1s\n}',
      'Corefile:2 - Error during parsing: interval value must be greater or equal to 2s',
    ],
    [
      'arguments',
      '. {\n loop now\n}',
      "Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'now'",
    ],
    [
      'options of errors',
      '. {\n errors {\n  consolidate 5m ".*"\n }\n}',
      "Corefile:3 - Error during parsing: 'consolidate' of errors is not there",
    ],
    [
      'a plugin twice',
      '. {\n cache\n cache\n}',
      'Corefile:3 - Error during parsing: plugin/cache: this plugin can only be used once per Server Block',
    ],
    [
      'a zone twice',
      '. {\n}\n.:53 {\n}',
      'Corefile:3 - Error during parsing: cannot serve dns://.:53 - it is already defined',
    ],
    ['an open brace', '. {\n errors\n', 'Corefile:1 - Error during parsing: Unexpected EOF: a brace is not closed'],
    [
      'no braces',
      '.:53\n errors\n',
      'Corefile:1 - Error during parsing: a server block needs braces, and ".:53" is followed by none',
    ],
    ['a stray brace', '. {\n errors }\n}', 'Corefile:2 - Error during parsing: a brace is out of place'],
    ['an open quote', '. {\n log "x\n}', 'Corefile:2 - Error during parsing: a quote is not closed'],
    ['snippets', '(snip) {\n errors\n}', 'Corefile:1 - Error during parsing: snippets are not there'],
    [
      'variables',
      '. {\n forward . {$UP}\n}',
      'Corefile:2 - Error during parsing: environment variables ({$UP}) are not there',
    ],
    ['other transports', 'tls://. {\n}', 'Corefile:1 - Error during parsing: servers of tls:// are not there'],
    ['no zone', 'a..b {\n}', 'Corefile:1 - Error during parsing: "a..b" is no zone'],
    [
      'a range of IPv6',
      'fd00::/16 {\n}',
      'Corefile:1 - Error during parsing: ranges of IPv6 addresses are not there: "fd00::/16"',
    ],
  ])('%s', (_, text, expected) => {
    expect(refusal(text)).toBe(expected);
  });
});
