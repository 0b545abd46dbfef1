import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { create, lines, lookupOf, NOW, object, row, update } from './support.ts';

type Fields = Record<string, unknown>;

function cells(plural: string, fields: Fields, group = ''): unknown[] {
  const kind = row(plural, group);
  const made = object(kind, { metadata: { creationTimestamp: new Date(NOW - 60_000).toISOString() }, ...fields });
  return [...(kind.strategy.table?.row(made, NOW) ?? [])];
}

function headers(plural: string, group = ''): string {
  const columns = row(plural, group).strategy.table?.columns ?? [];
  return columns
    .map((column) => ((column.priority ?? 0) > 0 ? `(${column.name})` : column.name).toUpperCase())
    .join(' ');
}

describe('tables', () => {
  it.each([
    ['pods', '', 'NAME READY STATUS RESTARTS AGE (IP) (NODE) (NOMINATED NODE) (READINESS GATES)'],
    [
      'nodes',
      '',
      'NAME STATUS ROLES AGE VERSION (INTERNAL-IP) (EXTERNAL-IP) (OS-IMAGE) (KERNEL-VERSION) (CONTAINER-RUNTIME)',
    ],
    ['namespaces', '', 'NAME STATUS AGE'],
    ['services', '', 'NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE (SELECTOR)'],
    ['configmaps', '', 'NAME DATA AGE'],
    ['secrets', '', 'NAME TYPE DATA AGE'],
    ['serviceaccounts', '', 'NAME SECRETS AGE'],
    ['endpoints', '', 'NAME ENDPOINTS AGE'],
    ['events', '', 'LAST SEEN TYPE REASON OBJECT (SUBOBJECT) (SOURCE) MESSAGE (FIRST SEEN) (COUNT) (NAME)'],
    ['leases', 'coordination.k8s.io', 'NAME HOLDER AGE'],
    ['endpointslices', 'discovery.k8s.io', 'NAME ADDRESSTYPE PORTS ENDPOINTS AGE'],
    ['runtimeclasses', 'node.k8s.io', 'NAME HANDLER AGE'],
    ['clustertrustbundles', 'certificates.k8s.io', 'NAME SIGNERNAME AGE'],
    ['priorityclasses', 'scheduling.k8s.io', 'NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY'],
  ])('%s', (plural, group, expected) => {
    expect(headers(plural, group)).toBe(expected);
    expect(cells(plural, {}, group)).toHaveLength(row(plural, group).strategy.table?.columns.length ?? 0);
  });
});

describe('nodes', () => {
  const status = {
    conditions: [{ type: 'Ready', status: 'True' }],
    addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
    nodeInfo: { kubeletVersion: 'v1.34.0' },
  };
  it('show readiness, roles and addresses', () => {
    const labels = { 'node-role.kubernetes.io/worker': '', 'kubernetes.io/role': 'edge' };
    expect(cells('nodes', { metadata: { labels }, status })).toEqual([
      'web',
      'Ready',
      'edge,worker',
      '<unknown>',
      'v1.34.0',
      '10.0.0.1',
      '<none>',
      '<unknown>',
      '<unknown>',
      '<unknown>',
    ]);
    expect(cells('nodes', { spec: { unschedulable: true }, status })[1]).toBe('Ready,SchedulingDisabled');
    expect(cells('nodes', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } })[1]).toBe('NotReady');
    expect(cells('nodes', {})[1]).toBe('Unknown');
  });

  it('register with their status, and change it through the subresource alone', () => {
    const node = create(row('nodes'), { status: { capacity: { cpu: '4' } } });
    expect(node.object['status']).toEqual({ capacity: { cpu: '4' }, allocatable: { cpu: '4' } });
    const changed = update(row('nodes'), node.object, (draft) => {
      draft['status'] = {};
    });
    expect(changed.object['status']).toEqual({ capacity: { cpu: '4' }, allocatable: { cpu: '4' } });
  });

  it.each<[string, Fields, RegExp]>([
    [
      'a taint has a key',
      { spec: { taints: [{ effect: 'NoSchedule' }] } },
      /^metadata\.taints\[0\]\.key: Invalid value: "": name part must be non-empty/,
    ],
    [
      'a taint effect is a known one',
      { spec: { taints: [{ key: 'a', effect: 'No' }] } },
      /^metadata\.taints\[0\]\.effect: Unsupported value: "No"/,
    ],
    [
      'taints differ',
      {
        spec: {
          taints: [
            { key: 'a', effect: 'NoSchedule' },
            { key: 'a', effect: 'NoSchedule' },
          ],
        },
      },
      /^metadata\.taints\[1\]: Duplicate value: "a:NoSchedule"$/,
    ],
    [
      'capacity is not negative',
      { status: { capacity: { cpu: '-1' } } },
      /^status\.capacity\[cpu\]: Invalid value: "-1": must be greater than or equal to 0$/,
    ],
  ])('%s', (_rule, fields, expected) => {
    expect(lines(create(row('nodes'), fields).errors)).toContainEqual(expect.stringMatching(expected));
  });

  it('keep their provider and pod range', () => {
    const node = create(row('nodes'), { spec: { providerID: 'a', podCIDR: '10.0.0.0/24' } }).object;
    const errors = lines(
      update(row('nodes'), node, (draft) => {
        draft['spec'] = { providerID: 'b', podCIDR: '10.1.0.0/24' };
      }).errors,
    );
    expect(errors).toEqual([
      'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
      'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
    ]);
  });
});

describe('namespaces', () => {
  it('are Active, carry their name as a label, and are held by a finalizer', () => {
    const { object: made, errors } = create(row('namespaces'), { metadata: { name: 'demo' } });
    expect(errors).toEqual([]);
    expect(made).toMatchObject({
      metadata: { labels: { 'kubernetes.io/metadata.name': 'demo' } },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    });
  });

  it('have DNS labels for names', () => {
    expect(lines(create(row('namespaces'), { metadata: { name: 'a.b' } }).errors)).toContain(
      'metadata.name: Invalid value: "a.b": must not contain dots',
    );
  });

  it('are finalized through the subresource alone', () => {
    const { object: made } = create(row('namespaces'), { metadata: { name: 'demo' } });
    expect(
      update(row('namespaces'), made, (draft) => {
        draft['spec'] = {};
      }).object['spec'],
    ).toEqual({ finalizers: ['kubernetes'] });
  });
});

describe('config maps and secrets', () => {
  it.each<[string, string, Fields, RegExp]>([
    [
      'a config key has no slash',
      'configmaps',
      { data: { 'a/b': '' } },
      /^data\[a\/b\]: Invalid value: "a\/b": a valid config key must consist of/,
    ],
    ['a config key is not ".."', 'configmaps', { data: { '..': '' } }, /must not be '\.\.'$/],
    [
      'a key is in one map only',
      'configmaps',
      { data: { a: '' }, binaryData: { a: '' } },
      /^data\[a\]: Invalid value: "a": duplicate of key present in binaryData$/,
    ],
    [
      'a config map has 1 MiB at most',
      'configmaps',
      { data: { a: 'x'.repeat(1_048_577) } },
      /Too long: may not be more than 1048576 bytes$/,
    ],
    [
      'a TLS secret has both parts',
      'secrets',
      { type: 'kubernetes.io/tls', data: { 'tls.crt': 'eA==' } },
      /^data\[tls\.key\]: Required value$/,
    ],
    [
      'a registry secret is JSON',
      'secrets',
      { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': 'eA==' } },
      /^data\[\.dockerconfigjson\]: Invalid value: "<secret contents redacted>"/,
    ],
    [
      'a basic-auth secret has a user or a password',
      'secrets',
      { type: 'kubernetes.io/basic-auth' },
      /^data\[username\]: Required value$/,
    ],
    [
      'a token secret names its account',
      'secrets',
      { type: 'kubernetes.io/service-account-token' },
      /^metadata\.annotations\[kubernetes\.io\/service-account\.name\]: Required value$/,
    ],
  ])('%s', (_rule, plural, fields, expected) => {
    expect(lines(create(row(plural), fields).errors)).toContainEqual(expect.stringMatching(expected));
  });

  it('stringData is folded into data', () => {
    const { object: made } = create(row('secrets'), { data: { a: 'eA==' }, stringData: { b: 'x y' } });
    expect(made).toMatchObject({ type: 'Opaque', data: { a: 'eA==', b: 'eCB5' } });
    expect(made['stringData']).toBeUndefined();
  });

  it.each(['configmaps', 'secrets'])('immutable %s stay so', (plural) => {
    const { object: made } = create(row(plural), { immutable: true, data: { a: 'eA==' } });
    const change = (apply: (draft: KubeObject) => void) => lines(update(row(plural), made, apply).errors);
    expect(
      change((draft) => {
        draft['data'] = { a: 'eQ==' };
      }),
    ).toEqual(['data: Forbidden: field is immutable when `immutable` is set']);
    expect(
      change((draft) => {
        draft['immutable'] = false;
      }),
    ).toEqual(['immutable: Forbidden: field is immutable when `immutable` is set']);
    expect(
      change((draft) => {
        draft.metadata.labels = { a: 'b' };
      }),
    ).toEqual([]);
  });

  it('a secret keeps its type', () => {
    const { object: made } = create(row('secrets'), {});
    expect(
      lines(
        update(row('secrets'), made, (draft) => {
          draft['type'] = 'other';
        }).errors,
      ),
    ).toEqual(['type: Invalid value: "other": field is immutable']);
  });
});

describe('services', () => {
  const ports = [{ port: 80 }];
  it('get an address, a target port and the usual policies', () => {
    const { object: made, errors } = create(row('services'), { spec: { ports, selector: { app: 'web' } } });
    expect(errors).toEqual([]);
    expect(made['spec']).toMatchObject({
      type: 'ClusterIP',
      clusterIP: expect.stringMatching(/^10\.96\.\d+\.\d+$/),
      sessionAffinity: 'None',
      internalTrafficPolicy: 'Cluster',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    });
    expect(made['status']).toEqual({ loadBalancer: {} });
  });

  it('never share an address or a node port', () => {
    const first = create(row('services'), { spec: { type: 'NodePort', ports } }).object;
    const lookup = lookupOf({ group: '', plural: 'services', object: first });
    const second = create(row('services'), { spec: { type: 'NodePort', ports } }, lookup).object;
    const show = (one: KubeObject) => cells('services', { spec: one['spec'] }).slice(2, 5);
    expect(show(second)[0]).not.toBe(show(first)[0]);
    expect(show(second)[2]).not.toBe(show(first)[2]);
    expect(show(first)[2]).toMatch(/^80:3[0-2]\d{3}\/TCP$/);
    expect(lines(create(row('services'), { spec: { clusterIP: show(first)[0], ports } }, lookup).errors)[0]).toMatch(
      /provided IP is already allocated$/,
    );
  });

  it('keep what the server chose when an update leaves it out', () => {
    const made = create(row('services'), { spec: { type: 'NodePort', ports } }).object;
    const { object: after, errors } = update(row('services'), made, (draft) => {
      draft['spec'] = { type: 'NodePort', ports };
    });
    expect(errors).toEqual([]);
    expect(after['spec']).toEqual(made['spec']);
  });

  it.each<[string, Fields, RegExp]>([
    ['there are ports', {}, /^spec\.ports: Required value$/],
    ['several ports have names', { ports: [{ port: 1 }, { port: 2 }] }, /^spec\.ports\[0\]\.name: Required value$/],
    [
      'ports differ',
      {
        ports: [
          { port: 1, name: 'a' },
          { port: 1, name: 'b' },
        ],
      },
      /^spec\.ports\[1\]: Duplicate value/,
    ],
    [
      'a port is in range',
      { ports: [{ port: 0 }] },
      /^spec\.ports\[0\]\.port: Invalid value: 0: must be between 1 and 65535, inclusive$/,
    ],
    ['a type is a known one', { ports, type: 'Magic' }, /^spec\.type: Unsupported value: "Magic"/],
    [
      'a node port needs a type that has them',
      { ports: [{ port: 1, nodePort: 30001 }] },
      /^spec\.ports\[0\]\.nodePort: Forbidden: may not be used when `type` is 'ClusterIP'$/,
    ],
    [
      'a node port is in range',
      { type: 'NodePort', ports: [{ port: 1, nodePort: 80 }] },
      /The range of valid ports is 30000-32767$/,
    ],
    ['an external name is required', { type: 'ExternalName' }, /^spec\.externalName: Required value$/],
    [
      'an address is one',
      { ports, clusterIP: 'here' },
      /^spec\.clusterIPs\[0\]: Invalid value: "here": must be a valid IP address/,
    ],
    ['a selector is made of labels', { ports, selector: { 'a b': 'c' } }, /^spec\.selector: Invalid value: "a b"/],
  ])('%s', (_rule, spec, expected) => {
    expect(lines(create(row('services'), { spec }).errors)).toContainEqual(expect.stringMatching(expected));
  });
});

describe('events', () => {
  const event = {
    metadata: { name: 'web.1' },
    involvedObject: { kind: 'Pod', name: 'web', namespace: 'demo' },
    reason: 'Started',
    message: 'it began',
    type: 'Normal',
    source: { component: 'kubelet', host: 'n1' },
    lastTimestamp: new Date(NOW - 10_000).toISOString(),
    count: 2,
  };
  it('are the same in both versions', () => {
    const newer = row('events', 'events.k8s.io');
    const old = object(row('events'), event);
    const shown = newer.storedAs?.fromStored(old);
    expect(shown).toMatchObject({
      apiVersion: 'events.k8s.io/v1',
      note: 'it began',
      regarding: { name: 'web' },
      deprecatedCount: 2,
    });
    expect(shown === undefined ? undefined : newer.storedAs?.toStored(shown)).toEqual(old);
    expect(shown === undefined ? [] : newer.strategy.table?.row(shown, NOW)).toEqual(
      row('events').strategy.table?.row(old, NOW),
    );
    expect(shown === undefined ? '' : newer.strategy.selectableFields?.['regarding.name']?.(shown)).toBe('web');
  });

  it('show what happened to what', () => {
    expect(cells('events', event).slice(0, 7)).toEqual([
      '10s',
      'Normal',
      'Started',
      'pod/web',
      '',
      'kubelet, n1',
      'it began',
    ]);
  });

  it('are in the namespace of what they are about', () => {
    expect(
      lines(create(row('events'), { ...event, involvedObject: { kind: 'Pod', name: 'a', namespace: 'other' } }).errors),
    ).toEqual(['involvedObject.namespace: Invalid value: "other": does not match event.namespace']);
  });

  it('of the newer kind say who reports', () => {
    const errors = lines(
      create(row('events', 'events.k8s.io'), {
        eventTime: '2025-01-01T00:00:00.000000Z',
        regarding: { kind: 'Pod', name: 'web', namespace: 'demo' },
        type: 'Normal',
        reason: 'A',
        action: 'B',
      }).errors,
    );
    expect(errors).toEqual([
      'reportingController: Required value',
      'reportingController: Invalid value: "": name part must be non-empty',
      expect.stringContaining('reportingController: Invalid value: "": name part must consist of'),
      'reportingInstance: Required value',
    ]);
  });
});

describe('the rest', () => {
  it.each<[string, string, string, Fields, RegExp]>([
    [
      'a lease lasts',
      'leases',
      'coordination.k8s.io',
      { spec: { leaseDurationSeconds: 0 } },
      /^spec\.leaseDurationSeconds: Invalid value: 0: must be greater than 0$/,
    ],
    [
      'a lease is not taken over a negative number of times',
      'leases',
      'coordination.k8s.io',
      { spec: { leaseTransitions: -1 } },
      /^spec\.leaseTransitions: Invalid value: -1/,
    ],
    ['a binding names a node', 'bindings', '', { target: {} }, /^target\.name: Required value$/],
    [
      'a binding is to a node',
      'bindings',
      '',
      { target: { kind: 'Pod', name: 'a' } },
      /^target\.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"$/,
    ],
    [
      'endpoints have addresses',
      'endpoints',
      '',
      { subsets: [{ ports: [{ port: 1 }] }] },
      /^subsets\[0\]: Required value: must specify `addresses` or `notReadyAddresses`$/,
    ],
    ['a slice has a type', 'endpointslices', 'discovery.k8s.io', { endpoints: [] }, /^addressType: Required value$/],
    [
      'a slice holds addresses of its type',
      'endpointslices',
      'discovery.k8s.io',
      { addressType: 'IPv6', endpoints: [{ addresses: ['10.0.0.1'] }] },
      /must be an IPv6 address$/,
    ],
    [
      'a runtime class has a handler',
      'runtimeclasses',
      'node.k8s.io',
      {},
      /^handler: Invalid value: "": a lowercase RFC 1123 label/,
    ],
    [
      'a priority has a ceiling',
      'priorityclasses',
      'scheduling.k8s.io',
      { value: 2_000_000_000 },
      /^value: Forbidden: maximum allowed value of a user defined priority is 1000000000$/,
    ],
    [
      'names with system- are reserved',
      'priorityclasses',
      'scheduling.k8s.io',
      { metadata: { name: 'system-x' }, value: 1 },
      /^metadata\.name: Forbidden: .* for system use only\. error: system-x is not a known system priority class$/,
    ],
    [
      'those that the system has keep their value',
      'priorityclasses',
      'scheduling.k8s.io',
      { metadata: { name: 'system-node-critical' }, value: 1 },
      /error: value of system-node-critical PriorityClass must be 2000001000$/,
    ],
  ])('%s', (_rule, plural, group, fields, expected) => {
    expect(lines(create(row(plural, group), fields).errors)).toContainEqual(expect.stringMatching(expected));
  });
});
