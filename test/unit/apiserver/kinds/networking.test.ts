import { describe, expect, it } from 'vitest';
import { create, lines, NOW, row, update } from './support.ts';

type Fields = Record<string, unknown>;
const GROUP = 'networking.k8s.io';
const wrong = (plural: string, spec: Fields, metadata: Fields = {}): string[] =>
  lines(create(row(plural, GROUP), { metadata, spec }).errors);
const cells = (plural: string, fields: Fields): unknown[] => {
  const kind = row(plural, GROUP);
  return [...(kind.strategy.table?.row(create(kind, fields).object, NOW) ?? [])];
};

describe('a NetworkPolicy', () => {
  it.each<[Fields, Fields]>([
    [{}, { podSelector: {}, policyTypes: ['Ingress'] }],
    [
      { egress: [{ ports: [{ port: 53 }] }] },
      { podSelector: {}, policyTypes: ['Ingress', 'Egress'], egress: [{ ports: [{ port: 53, protocol: 'TCP' }] }] },
    ],
  ])('%j gets defaults', (spec, expected) => {
    expect(create(row('networkpolicies', GROUP), { spec }).object['spec']).toEqual(expected);
  });

  const port = (one: Fields): Fields => ({ ingress: [{ ports: [one] }] });
  const from = (peer: Fields): Fields => ({ ingress: [{ from: [peer] }] });
  it.each<[Fields, string[]]>([
    [port({ port: 80, endPort: 90 }), []],
    [port({ port: 'http' }), []],
    [
      port({ port: 80, endPort: 70 }),
      ['spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`'],
    ],
    [
      port({ port: 'http', endPort: 70 }),
      ['spec.ingress[0].ports[0].endPort: Invalid value: 70: may not be specified when `port` is non-numeric'],
    ],
    [
      port({ endPort: 70 }),
      ['spec.ingress[0].ports[0].endPort: Invalid value: 70: may not be specified when `port` is not specified'],
    ],
    [
      port({ port: 0, protocol: 'ICMP' }),
      [
        'spec.ingress[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"',
        'spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
      ],
    ],
    [from({}), ['spec.ingress[0].from[0]: Required value: must specify a peer']],
    [from({ podSelector: {}, namespaceSelector: {} }), []],
    [
      from({ podSelector: {}, ipBlock: { cidr: '10.0.0.0/8' } }),
      ['spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer'],
    ],
    [from({ ipBlock: {} }), ['spec.ingress[0].from[0].ipBlock.cidr: Required value']],
    [
      from({ ipBlock: { cidr: '10.0.0.0' } }),
      [
        'spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
      ],
    ],
    [from({ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }), []],
    [from({ ipBlock: { cidr: 'fd00::/8', except: ['fd00:1::/32'] } }), []],
    [
      from({ ipBlock: { cidr: '10.0.0.0/8', except: ['10.0.0.0/8', '11.0.0.0/16', 'fd00::/64'] } }),
      [
        'spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`',
        'spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`',
        'spec.ingress[0].from[0].ipBlock.except[2]: Invalid value: "fd00::/64": must be a strict subset of `cidr`',
      ],
    ],
    [
      { policyTypes: ['Both'] },
      ['spec.policyTypes[0]: Unsupported value: "Both": supported values: "Ingress", "Egress"'],
    ],
    [
      { policyTypes: ['Ingress', 'Egress', 'Ingress'] },
      ['spec.policyTypes: Invalid value: ["Ingress","Egress","Ingress"]: may not specify more than two policyTypes'],
    ],
  ])('%j', (spec, expected) => expect(wrong('networkpolicies', spec)).toEqual(expected));

  it('shows whom it is for', () => {
    expect(cells('networkpolicies', { spec: {} })).toEqual(['web', '<none>', '<unknown>']);
    expect(cells('networkpolicies', { spec: { podSelector: { matchLabels: { a: 'b' } } } })[1]).toBe('a=b');
  });
});

describe('an Ingress', () => {
  const service = { name: 'web', port: { number: 80 } };
  const path = (more: Fields): Fields => ({
    rules: [{ http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service }, ...more }] } }],
  });
  const at = 'spec.rules[0].http.paths[0]';
  it.each<[Fields, string[]]>([
    [path({}), []],
    [{}, ['spec: Invalid value: null: either `defaultBackend` or `rules` must be specified']],
    [path({ pathType: undefined }), [`${at}.pathType: Required value: pathType must be specified`]],
    [
      path({ pathType: 'Glob' }),
      [`${at}.pathType: Unsupported value: "Glob": supported values: "Exact", "ImplementationSpecific", "Prefix"`],
    ],
    [path({ path: 'a' }), [`${at}.path: Invalid value: "a": must be an absolute path`]],
    [path({ path: '/a//b' }), [`${at}.path: Invalid value: "/a//b": must not contain '//'`]],
    [path({ path: '/a/..' }), [`${at}.path: Invalid value: "/a/..": cannot end with '/..'`]],
    [path({ path: '', pathType: 'ImplementationSpecific' }), []],
    [path({ backend: {} }), [`${at}.backend: Invalid value: "": resource or service backend is required`]],
    [
      path({ backend: { service, resource: { kind: 'A', name: 'b' } } }),
      [`${at}.backend: Invalid value: "": cannot set both resource and service backends`],
    ],
    [
      path({ backend: { service: { name: 'web', port: { number: 1, name: 'http' } } } }),
      [`${at}.backend: Invalid value: "": cannot set both port name & port number`],
    ],
    [
      path({ backend: { service: { name: 'web' } } }),
      [`${at}.backend: Required value: port name or number is required`],
    ],
    [path({ backend: { resource: { name: 'b' } } }), [`${at}.backend.resource.kind: Required value`]],
    [{ rules: [{ http: {} }] }, ['spec.rules[0].http.paths: Required value']],
    [
      { rules: [{ host: '1.2.3.4' }] },
      ['spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'],
    ],
    [{ rules: [{ host: '*.example.com' }] }, []],
    [
      { rules: [{ host: 'a.*.com' }] },
      [
        expect.stringMatching(
          /^spec\.rules\[0\]\.host: Invalid value: "a\.\*\.com": a wildcard DNS-1123 subdomain must start with '\*\.'/,
        ),
      ],
    ],
    [
      { ...path({}), tls: [{ hosts: ['A'], secretName: 'B' }] },
      [
        expect.stringMatching(/^spec\.tls\[0\]\.hosts\[0\]: Invalid value: "A"/),
        expect.stringMatching(/^spec\.tls\[0\]\.secretName: Invalid value: "B"/),
      ],
    ],
  ])('%j', (spec, expected) => expect(wrong('ingresses', spec)).toEqual(expected));

  it('names one class', () => {
    const annotations = { 'kubernetes.io/ingress.class': 'a' };
    const spec = { ...path({}), ingressClassName: 'b' };
    expect(wrong('ingresses', spec, { annotations })).toEqual([
      'annotations.kubernetes.io/ingress.class: Invalid value: "a": must match `ingressClassName` when both are specified',
    ]);
  });

  it('reports addresses', () => {
    const kind = row('ingresses', GROUP);
    const old = create(kind, { spec: path({}) }).object;
    expect(old['status']).toEqual({ loadBalancer: {} });
    const status = { loadBalancer: { ingress: [{ ip: '1.2.3' }, { hostname: '1.2.3.4' }] } };
    expect(lines(kind.strategy.validateStatusUpdate?.({ ...old, status }, old) ?? [])).toEqual([
      'status.loadBalancer.ingress[0].ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      'status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
    ]);
    const shown = { ...old, status: { loadBalancer: { ingress: [{ ip: '10.0.0.2' }, { hostname: 'lb' }] } } };
    expect(kind.strategy.table?.row(shown, NOW)).toEqual(['web', '<none>', '*', '10.0.0.2,lb', '80', '<unknown>']);
  });

  it('shows three hosts', () => {
    const rules = ['a', 'b', 'c', 'd', 'e'].map((host) => ({ host }));
    expect(cells('ingresses', { spec: { rules, tls: [{}] } }).slice(1, 5)).toEqual([
      '<none>',
      'a,b,c + 2 more...',
      '',
      '80, 443',
    ]);
  });
});

describe('an IngressClass', () => {
  const parameters = { apiGroup: 'k8s.example.com', kind: 'Params', name: 'p' };
  it.each<[Fields, string[]]>([
    [{ controller: 'example.com/c', parameters }, []],
    [{}, ['spec.controller: Required value']],
    [
      { controller: 'c' },
      ['spec.controller: Invalid value: "c": must be a domain-prefixed path (such as "acme.io/foo")'],
    ],
    [
      { controller: 'a.b/c', parameters: { ...parameters, scope: 'Namespace' } },
      ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
    ],
    [
      { controller: 'a.b/c', parameters: { ...parameters, namespace: 'x' } },
      ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
    ],
    [
      { controller: 'a.b/c', parameters: { ...parameters, scope: 'Node' } },
      ['spec.parameters.scope: Unsupported value: "Node": supported values: "Cluster", "Namespace"'],
    ],
  ])('%j', (spec, expected) => expect(wrong('ingressclasses', spec)).toEqual(expected));

  it('keeps its controller', () => {
    const kind = row('ingressclasses', GROUP);
    const old = create(kind, { spec: { controller: 'a.b/c', parameters } }).object;
    const { errors } = update(kind, old, (draft) => {
      draft['spec'] = { controller: 'a.b/d' };
    });
    expect(lines(errors)).toEqual(['spec.controller: Invalid value: "a.b/d": field is immutable']);
    expect(kind.strategy.table?.row(old, NOW).slice(1, 3)).toEqual(['a.b/c', 'Params.k8s.example.com/p']);
  });
});

describe('a ServiceCIDR', () => {
  it.each<[string[], string[]]>([
    [['10.0.0.0/24', 'fd00::/112'], []],
    [[], ['spec.cidrs: Required value: at least one CIDR required']],
    [['10.0.0.1/24'], ['spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length']],
    [['FD00::/112'], ['spec.cidrs[0]: Invalid value: "FD00::/112": must be in canonical form ("fd00::/112")']],
    [
      ['::ffff:10.0.0.0/112'],
      ['spec.cidrs[0]: Invalid value: "::ffff:10.0.0.0/112": must not have an IPv4-mapped IPv6 address'],
    ],
    [
      ['10.0.0.0/24', '10.1.0.0/24'],
      [
        'spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64',
      ],
    ],
  ])('%j', (cidrs, expected) => expect(wrong('servicecidrs', { cidrs })).toEqual(expected));

  it('may get a second range', () => {
    const kind = row('servicecidrs', GROUP);
    const old = create(kind, { spec: { cidrs: ['10.0.0.0/24'] } }).object;
    const change = (cidrs: string[]): string[] =>
      lines(
        update(kind, old, (draft) => {
          draft['spec'] = { cidrs };
        }).errors,
      );
    expect(change(['10.0.0.0/24', 'fd00::/112'])).toEqual([]);
    expect(change(['10.0.1.0/24'])).toEqual(['spec.cidrs[0]: Invalid value: "10.0.1.0/24": field is immutable']);
    expect(change([])).toEqual([expect.stringMatching(/^spec\.cidrs: Invalid value: .*field is immutable$/)]);
  });
});

describe('an IPAddress', () => {
  const spec = { parentRef: { resource: 'services', namespace: 'demo', name: 'web' } };
  it.each<[string, Fields, string[]]>([
    ['10.0.0.1', spec, []],
    ['fd00::1', spec, []],
    ['x', spec, ['metadata.name: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)']],
    ['fd00:0::1', spec, ['metadata.name: Invalid value: "fd00:0::1": must be in canonical form ("fd00::1")']],
    ['10.0.0.1', {}, ['spec.parentRef: Required value']],
    ['10.0.0.1', { parentRef: {} }, ['spec.parentRef.resource: Required value', 'spec.parentRef.name: Required value']],
  ])('%s %j', (name, fields, expected) => expect(wrong('ipaddresses', fields, { name })).toEqual(expected));

  it('keeps its owner and shows it', () => {
    const kind = row('ipaddresses', GROUP);
    const old = create(kind, { metadata: { name: '10.0.0.1' }, spec }).object;
    const { errors } = update(kind, old, (draft) => {
      draft['spec'] = { parentRef: { resource: 'services', name: 'other' } };
    });
    expect(lines(errors)).toEqual([expect.stringMatching(/^spec\.parentRef: Invalid value: .*field is immutable$/)]);
    expect(kind.strategy.table?.row(old, NOW)).toEqual(['10.0.0.1', 'services/demo/web', '<unknown>']);
  });
});
