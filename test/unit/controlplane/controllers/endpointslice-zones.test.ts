// Hints by zone (service.kubernetes.io/topology-mode: Auto): shares of zones, which endpoint is for which zone, what stays as it is, events, and
// which services a change of nodes brings back.

import { describe, expect, it } from 'vitest';
import type { Endpoint, Node, Pod, Service } from '../../../../client/types.ts';
import { EndpointSliceController } from '../../../../controlplane/controllers/endpointslice/endpointslice.ts';
import { planSlices } from '../../../../controlplane/controllers/endpointslice/plan.ts';
import {
  type HintedSlice,
  isOverloaded,
  type ZoneShares,
  zoneHints,
  zoneShares,
} from '../../../../controlplane/controllers/endpointslice/topology.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment } from '../environment.ts';
import { makeService, stored, webPod, zoneNode } from './endpoints-cases.ts';

const AUTO = { annotations: { 'service.kubernetes.io/topology-mode': 'Auto' } };

interface NodeFacts {
  readonly ready?: string;
  readonly cpu?: string;
  readonly label?: string;
}
function node(name: string, zone?: string, { ready = 'True', cpu = '2', label }: NodeFacts = {}): Node {
  const made = zoneNode(name, zone);
  const labels = { ...made.metadata.labels, ...(label === undefined ? {} : { [label]: '' }) };
  const status = { allocatable: { cpu }, conditions: [{ type: 'Ready', status: ready }] };
  return { ...made, metadata: { ...made.metadata, labels }, status };
}

describe('the shares of zones', () => {
  it.each<readonly [string, readonly Node[], Record<string, number> | undefined]>([
    ['no nodes', [], undefined],
    ['one zone', [node('1', 'a'), node('2', 'a')], undefined],
    ['two', [node('1', 'b', { cpu: '500m' }), node('2', 'a', { cpu: '1500m' })], { a: 0.75, b: 0.25 }],
    ['one that is not Ready does not count', [node('1', 'a'), node('2', 'b', { ready: 'Unknown' })], undefined],
    [
      'nor does one of the control plane, whatever it lacks',
      [node('1', 'a'), node('2', 'b'), node('3', undefined, { label: 'node-role.kubernetes.io/control-plane' })],
      { a: 0.5, b: 0.5 },
    ],
    ['one without a zone: none', [node('1', 'a'), node('2', 'b'), node('3')], undefined],
    ['one without CPUs: none', [node('1', 'a'), node('2', 'b', { cpu: '0' })], undefined],
  ])('%s', (_, nodes, expected) => {
    const found = zoneShares(nodes);
    expect(found === undefined ? undefined : Object.fromEntries(found)).toEqual(expected);
  });
});

/** "a": ready in zone a; "a!": not ready; "a>b": with a hint for zone b. */
function slice(text: string, changed = true): HintedSlice {
  const endpoints = text.split(' ').map((each, index): Endpoint => {
    const [place = '', hint] = each.split('>');
    const zone = place.replace('!', '');
    return {
      addresses: [`10.0.0.${index}`],
      conditions: { ready: !place.endsWith('!') },
      ...(zone === '' ? {} : { zone }),
      ...(hint === undefined ? {} : { hints: { forZones: [{ name: hint }] } }),
    };
  });
  return { endpoints, changed };
}
const shares = (zones: Record<string, number>): ZoneShares => new Map(Object.entries(zones));
const shown = (slices: readonly HintedSlice[], zones: ZoneShares): unknown => {
  const found = zoneHints(slices, zones);
  if ('disabled' in found) return found.disabled;
  return found.endpoints.map((endpoints) =>
    endpoints.map(({ hints }) => hints?.forZones?.map(({ name }) => name).join() ?? '-').join(' '),
  );
};

describe('endpoints of a service', () => {
  const halves = shares({ a: 0.5, b: 0.5 });
  it.each<readonly [string, readonly HintedSlice[], ZoneShares, unknown]>([
    ['each for its own zone', [slice('a b a b')], halves, ['a b a b']],
    ['those that are not ready have none', [slice('a b a! b!')], halves, ['a b - -']],
    ['a zone with too many gives', [slice('a a a b')], halves, ['b a a b']],
    ['a zone without endpoints gets', [slice('a a')], halves, ['b a']],
    [
      'over slices, those that are made first',
      [slice('a b'), slice('c c a'), slice('a a'), slice('b c a')],
      shares({ a: 0.35, b: 0.35, c: 0.3 }),
      ['b b', 'c c a', 'a a', 'b c a'],
    ],
    ['a slice that does not change keeps its hints', [slice('a b'), slice('a>b b>a', false)], halves, ['a b', 'b a']],
    ['unless one lacks', [slice('a>a b', false)], halves, ['a b']],
    ['or is for a zone that is gone', [slice('a>c b>b', false)], halves, ['a b']],
    ['or a zone has too many', [slice('a>a b>a', false)], halves, ['a b']],
    [
      'no zone of an endpoint',
      [slice('a b a'), { endpoints: [{ addresses: ['10.0.0.9'], conditions: { ready: true } }], changed: true }],
      halves,
      'One or more endpoints do not have a zone specified',
    ],
    ['fewer endpoints than zones', [slice('a b!')], halves, 'Insufficient number of endpoints (1 endpoints, 2 zones)'],
    [
      'shares that no spread can meet',
      [slice('a b c')],
      shares({ a: 0.7, b: 0.15, c: 0.15 }),
      'Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (3 endpoints, 3 zones)',
    ],
    [
      'nothing known of the nodes',
      [slice('a b')],
      undefined,
      'Insufficient Node information: allocatable CPU or zone not specified on one or more nodes',
    ],
  ])('%s', (_, slices, zones, expected) => {
    expect(shown(slices, zones)).toEqual(expected);
  });

  it.each<readonly [string, Record<string, number>, ZoneShares, boolean]>([
    ['none has hints', {}, undefined, false],
    ['in proportion', { a: 2, b: 2 }, halves, false],
    ['a little less', { a: 5, b: 6 }, halves, false],
    ['too few', { a: 1, b: 5 }, halves, true],
    ['none in a new zone', { a: 2, b: 2 }, shares({ a: 0.4, b: 0.4, c: 0.2 }), true],
    ['nodes of one zone alone are left', { a: 2, b: 2 }, undefined, true],
  ])('a change of nodes: %s', (_, counts, zones, expected) => {
    expect(isOverloaded(new Map(Object.entries(counts)), zones)).toBe(expected);
  });
});

describe('slices', () => {
  const nodes = [node('n1', 'a'), node('n2', 'b')];
  const pods = [webPod(1), webPod(2), webPod(3), webPod(4, { node: 'n2' })];
  const plan = (service: Service, of: readonly Pod[], existing: Parameters<typeof planSlices>[3] = []) =>
    planSlices(
      service,
      of,
      (name) => nodes.find(({ metadata }) => metadata.name === name),
      existing,
      2,
      zoneShares(nodes),
    );
  const zones = (slices: readonly { readonly endpoints?: readonly Endpoint[] }[]): string[] =>
    slices.map(({ endpoints = [] }) => endpoints.map(({ hints }) => hints?.forZones?.[0]?.name ?? '-').join(' '));

  it('are made with hints, stay as they are, and lose them with the annotation', () => {
    const { create } = plan(makeService({}, AUTO), pods);
    expect(zones(create)).toEqual(['b a', 'a b']);
    const made = create.map((each, index) => stored(each, `s${index}`));
    const again = plan(makeService({}, AUTO), pods, made);
    expect([again.create, again.update, again.remove]).toEqual([[], [], []]);
    const without = plan(makeService(), pods, made);
    expect(zones(without.update)).toEqual(['- -', '- -']);
    // The annotation counts more than the field.
    expect(plan(makeService({ trafficDistribution: 'PreferClose' }, AUTO), pods, made).update).toEqual([]);
  });

  it('without enough endpoints have none', () => {
    const { create, zones: found } = plan(makeService({}, AUTO), []);
    expect([create.length, found]).toEqual([
      1,
      [{ addressType: 'IPv4', hints: { disabled: 'Insufficient number of endpoints (0 endpoints, 2 zones)' } }],
    ]);
  });
});

it('the controller: events, and nodes that come, go and lose their zone', async () => {
  const env = environment();
  env.informers.nodes.replace([node('n1', 'a'), node('n2', 'b')]);
  env.informers.pods.replace([webPod(1), webPod(2), webPod(3, { node: 'n2' }), webPod(4, { node: 'n2' })]);
  env.informers.endpointSlices.replace([]);
  let version = 1;
  // The cache shows each write at once.
  env.client.onWrite = ({ body }) => {
    const object = body as ReturnType<typeof stored>;
    const metadata = {
      ...object.metadata,
      name: 'web-1',
      namespace: 'demo',
      uid: 'u',
      resourceVersion: `${++version}`,
    };
    const made = { ...object, metadata };
    queueMicrotask(() => env.informers.endpointSlices.upsert(made));
    return made;
  };
  env.run(new EndpointSliceController(env.context, env.informers));
  const service = makeService({}, AUTO);
  const hints = (): string => {
    const { endpoints = [] } = (env.client.writes.at(-1)?.body ?? {}) as { endpoints?: Endpoint[] };
    return endpoints.map((endpoint) => endpoint.hints?.forZones?.[0]?.name ?? '-').join(' ');
  };
  const enabled = 'web TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4';
  const disabled = (why: string): string => `web TopologyAwareHintsDisabled: ${why}, addressType: IPv4`;
  const unknown = 'Insufficient Node information: allocatable CPU or zone not specified on one or more nodes';
  env.informers.services.upsert(service);
  await settle();
  expect([hints(), env.events]).toEqual(['a a b b', [enabled]]);
  // Three times the CPUs in zone b, of a node without pods.
  env.informers.nodes.upsert(node('n3', 'b', { cpu: '4' }));
  await settle();
  expect([hints(), env.events]).toEqual(['b a b b', [enabled]]);
  env.informers.nodes.upsert(node('n3', 'b', { cpu: '4', ready: 'Unknown' }));
  await settle();
  expect(hints()).toBe('a a b b');
  env.informers.nodes.upsert(node('n3', undefined, { cpu: '4' }));
  await settle();
  expect([hints(), env.events]).toEqual(['- - - -', [enabled, disabled(unknown)]]);
  env.informers.nodes.remove(node('n3'));
  env.informers.services.upsert({ ...service, metadata: { ...service.metadata, resourceVersion: '77' } });
  await settle();
  expect([hints(), env.events.at(-1)]).toEqual(['a a b b', enabled]);
  env.informers.services.upsert(makeService());
  await settle();
  expect([hints(), env.events.at(-1)]).toEqual(['- - - -', disabled('Topology Aware Hints has been disabled')]);
  env.stop.abort();
});
