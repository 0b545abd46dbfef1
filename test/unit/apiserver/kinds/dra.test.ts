import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { create, lines, lookupOf, NOW, row, update } from './support.ts';

type Fields = Record<string, unknown>;
const claims = row('resourceclaims', 'resource.k8s.io');
const templates = row('resourceclaimtemplates', 'resource.k8s.io');
const classes = row('deviceclasses', 'resource.k8s.io');
const slices = row('resourceslices', 'resource.k8s.io');

const exactly = { deviceClassName: 'gpu.example.com' };
const request = { name: 'gpu', exactly };
const requests = (...list: Fields[]): Fields => ({ devices: { requests: list } });
const wrong = (spec: Fields): string[] => lines(create(claims, { spec }).errors);

describe('a ResourceClaim', () => {
  it('asks for one device by default; fields of features that are off are dropped', () => {
    const wanted = { ...exactly, capacity: { requests: { memory: '1Gi' } }, tolerations: [{ key: 'a' }] };
    const { object, errors } = create(claims, { spec: requests({ name: 'gpu', exactly: wanted }) });
    expect(lines(errors)).toEqual([]);
    expect(object['spec']).toEqual(
      requests({
        name: 'gpu',
        exactly: {
          ...exactly,
          allocationMode: 'ExactCount',
          count: 1,
          tolerations: [{ key: 'a', operator: 'Equal' }],
        },
      }),
    );
    expect(object['status']).toEqual({});
  });

  const select = (expression: string): Fields =>
    requests({ name: 'gpu', exactly: { ...exactly, selectors: [{ cel: { expression } }] } });
  const at = 'spec.devices.requests[0]';
  const NO_REQUEST =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
  it.each<[Fields, string[]]>([
    [{}, []],
    [
      requests({ name: 'gpu' }),
      [`${at}: Required value: exactly one of \`exactly\` or \`firstAvailable\` is required`],
    ],
    [
      requests({ ...request, firstAvailable: [{ name: 'a', deviceClassName: 'b' }] }),
      [
        `${at}: Invalid value: null: exactly one of \`exactly\` or \`firstAvailable\` is required, but multiple fields are set`,
      ],
    ],
    [requests(request, request), ['spec.devices.requests[1].name: Duplicate value: "gpu"']],
    [requests({ name: 'gpu', exactly: {} }), [`${at}.exactly.deviceClassName: Required value`]],
    [
      requests({ name: 'gpu', exactly: { ...exactly, allocationMode: 'All', count: 2 } }),
      [`${at}.exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'`],
    ],
    [
      requests({ name: 'gpu', exactly: { ...exactly, allocationMode: 'Some' } }),
      [`${at}.exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"`],
    ],
    [
      requests({
        name: 'gpu',
        exactly: { ...exactly, tolerations: [{ operator: 'Exists', value: 'x', effect: 'Stay' }] },
      }),
      [
        `${at}.exactly.tolerations[0].value: Invalid value: "x": must be empty for operator \`Exists\``,
        `${at}.exactly.tolerations[0].effect: Unsupported value: "Stay": supported values: "NoExecute", "NoSchedule"`,
      ],
    ],
    [select('device.driver == "gpu.example.com"'), []],
    [select('device.capacity["gpu.example.com"].memory.compareTo(quantity("1Gi")) >= 0'), []],
    [select('device.attributes["gpu.example.com"].fast'), []],
    [
      select('device.driver'),
      [`${at}.exactly.selectors[0].cel.expression: Invalid value: "device.driver": must evaluate to bool`],
    ],
    [
      select('device.color == "red"'),
      [
        expect.stringMatching(
          /expression: Invalid value: "device\.color == \\"red\\"": compilation failed: ERROR: <input>:1:7: undefined field 'color'/,
        ),
      ],
    ],
    [
      select('x'.repeat(10_241)),
      [`${at}.exactly.selectors[0].cel.expression: Too long: may not be more than 10240 bytes`],
    ],
    [
      { devices: { requests: [request], constraints: [{ requests: ['cpu'], matchAttribute: 'model' }] } },
      [
        `spec.devices.constraints[0].requests[0]: Invalid value: "cpu": ${NO_REQUEST}`,
        'spec.devices.constraints[0].matchAttribute: Invalid value: "model": must include a domain',
      ],
    ],
    [
      { devices: { requests: [request], constraints: [{ requests: ['gpu'] }] } },
      ['spec.devices.constraints[0].matchAttribute: Required value'],
    ],
    [
      {
        devices: {
          requests: [request],
          config: [{ requests: ['gpu/x'] }, { opaque: { driver: 'a.b', parameters: [1] } }],
        },
      },
      [
        `spec.devices.config[0].requests[0]: Invalid value: "gpu/x": ${NO_REQUEST}`,
        'spec.devices.config[0].opaque: Required value',
        'spec.devices.config[1].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object',
      ],
    ],
  ])('%j', (spec, expected) => expect(wrong(spec)).toEqual(expected));

  it('has expressions of a bounded length in all', () => {
    const expression = `true${' '.repeat(10_000)}`;
    const all = Array.from({ length: 7 }, () => ({ cel: { expression } }));
    expect(wrong(requests({ name: 'gpu', exactly: { ...exactly, selectors: all } }))).toEqual([
      `${at}.exactly.selectors[6].cel.expression: Forbidden: too complex, exceeds cost limit`,
    ]);
  });

  it('reaches what others use in marked namespaces alone', () => {
    const { object } = create(claims, { spec: requests({ name: 'gpu', exactly: { ...exactly, adminAccess: true } }) });
    const allowed = (labels: Record<string, string>): string[] => {
      const namespace: KubeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'demo', labels } };
      const lookup = lookupOf({ group: '', plural: 'namespaces', object: namespace });
      const context = { user: { name: 'admin', groups: [] }, now: NOW, lookup };
      return lines(claims.strategy.allocate?.(object, context) ?? []);
    };
    expect(allowed({ 'resource.kubernetes.io/admin-access': 'true' })).toEqual([]);
    expect(allowed({})).toEqual([
      'spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace',
    ]);
  });

  it('keeps its spec', () => {
    const old = create(claims, { spec: requests(request) }).object;
    const { errors } = update(claims, old, (draft) => {
      draft['spec'] = requests({ ...request, name: 'other' });
    });
    expect(lines(errors)).toEqual([expect.stringMatching(/^spec: Invalid value: .*: field is immutable$/)]);
  });
});

describe("a claim's status", () => {
  const device = { driver: 'gpu.example.com', pool: 'node-a', device: 'gpu-0' };
  const allocation = { devices: { results: [{ request: 'gpu', ...device }] } };
  const consumer = { resource: 'pods', name: 'web', uid: 'u1' };
  const claim = (status: Fields): KubeObject => ({ ...create(claims, { spec: requests(request) }).object, status });
  const report = (status: Fields, before: Fields = {}): string[] =>
    lines(claims.strategy.validateStatusUpdate?.(claim(status), claim(before)) ?? []);
  it.each<[Fields, Fields, string[]]>([
    [{ allocation, reservedFor: [consumer] }, {}, []],
    [
      { reservedFor: [consumer] },
      {},
      ['status.reservedFor: Forbidden: may not be specified when `allocated` is not set'],
    ],
    [{ allocation, reservedFor: [consumer, consumer] }, {}, ['status.reservedFor[1].uid: Duplicate value: "u1"']],
    [
      { allocation: { devices: { results: [{ request: 'cpu', ...device, pool: '' }] } } },
      {},
      [
        expect.stringMatching(
          /^status\.allocation\.devices\.results\[0\]\.request: Invalid value: "cpu": must be the name/,
        ),
        'status.allocation.devices.results[0].pool: Required value',
      ],
    ],
    [
      { allocation: { devices: { results: [] } } },
      { allocation },
      [expect.stringMatching(/^status\.allocation: Invalid value: .*: field is immutable$/)],
    ],
    [
      { allocation, devices: [{ ...device, device: 'gpu-1' }] },
      { allocation },
      ['status.devices[0]: Invalid value: "gpu.example.com/node-a/gpu-1": must be an allocated device in the claim'],
    ],
    [
      { allocation, devices: [{ ...device, networkData: { ips: ['10.9.8.7'] } }] },
      { allocation },
      [
        'status.devices[0].networkData.ips[0]: Invalid value: "10.9.8.7": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)',
      ],
    ],
  ])('%j', (status, before, expected) => expect(report(status, before)).toEqual(expected));

  it('of a device goes with its allocation', () => {
    const next = claim({ devices: [device] });
    claims.strategy.prepareForStatusUpdate?.(next, claim({ allocation, devices: [device] }));
    expect(next['status']).toEqual({});
  });

  it('is one word in a table', () => {
    const state = (status: Fields): unknown => claims.strategy.table?.row(claim(status), NOW)[1];
    expect([state({}), state({ allocation }), state({ allocation, reservedFor: [consumer] })]).toEqual([
      'pending',
      'allocated',
      'allocated,reserved',
    ]);
  });
});

describe('a ResourceClaimTemplate', () => {
  it('is validated as a claim', () => {
    const spec = { metadata: { labels: { a: '-' } }, spec: requests({ name: 'gpu' }) };
    expect(lines(create(templates, { spec }).errors)).toEqual([
      expect.stringMatching(/^spec\.metadata\.labels: Invalid value: "-": a valid label/),
      'spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required',
    ]);
  });
});

describe('a DeviceClass', () => {
  it.each<[Fields, string[]]>([
    [{ selectors: [{ cel: { expression: 'device.driver == "a"' } }] }, []],
    [{ selectors: [{}] }, ['spec.selectors[0].cel: Required value']],
    [
      { config: [{ opaque: { driver: '', parameters: {} } }] },
      [
        'spec.config[0].opaque.driver: Required value',
        expect.stringContaining('spec.config[0].opaque.driver: Invalid value: "": a lowercase RFC 1123 subdomain'),
      ],
    ],
  ])('%j', (spec, expected) => expect(lines(create(classes, { spec }).errors)).toEqual(expected));
});

describe('a ResourceSlice', () => {
  const base = { driver: 'gpu.example.com', pool: { name: 'node-a', resourceSliceCount: 1 }, nodeName: 'node-a' };
  const device = (more: Fields): Fields => ({ ...base, devices: [{ name: 'gpu-0', ...more }] });
  const at = 'spec.devices[0]';
  it.each<[Fields, string[]]>([
    [device({ attributes: { model: { string: 'a' }, 'x.example.com/v': { version: '1.2.3-rc.1' } } }), []],
    [device({ capacity: { memory: { value: '1Gi', requestPolicy: { default: '1' } } }, taints: [{ key: 'a' }] }), []],
    [
      { ...base, nodeName: undefined },
      [
        'spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required',
      ],
    ],
    [
      { ...base, allNodes: true },
      [
        'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set',
      ],
    ],
    [
      { ...base, pool: { name: 'node-a', generation: -1 } },
      [
        'spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero',
        'spec.pool.generation: Invalid value: -1: must be greater than or equal to zero',
      ],
    ],
    [{ ...base, devices: [{ name: 'a' }, { name: 'a' }] }, ['spec.devices[1].name: Duplicate value: "a"']],
    [
      device({ attributes: { model: {} } }),
      [`${at}.attributes[model]: Required value: exactly one value must be specified`],
    ],
    [
      device({ attributes: { model: { string: 'a', int: 1 } } }),
      [`${at}.attributes[model]: Invalid value: {"string":"a","int":1}: exactly one value must be specified`],
    ],
    [
      device({ attributes: { 'my-name': { version: '1' } } }),
      [
        expect.stringMatching(
          /^spec\.devices\[0\]\.attributes\[my-name\]: Invalid value: "my-name": a valid C identifier/,
        ),
        `${at}.attributes[my-name].version: Invalid value: "1": must be a string compatible with semver.org spec 2.0.0`,
      ],
    ],
  ])('%j', (spec, expected) => expect(lines(create(slices, { spec }).errors)).toEqual(expected));

  it('keeps its driver, pool and node; what is off is dropped', () => {
    const old = create(slices, { spec: device({ taints: [{ key: 'a' }], allNodes: true }) }).object;
    expect(old['spec']).toEqual(device({}));
    const { errors } = update(slices, old, (draft) => {
      draft['spec'] = { ...base, driver: 'other.example.com' };
    });
    expect(lines(errors)).toEqual(['spec.driver: Invalid value: "other.example.com": field is immutable']);
    expect(slices.strategy.table?.row(old, NOW)).toEqual(['web', 'node-a', 'gpu.example.com', 'node-a', '<unknown>']);
    expect(slices.strategy.selectableFields?.['spec.driver']?.(old)).toBe('gpu.example.com');
  });
});
