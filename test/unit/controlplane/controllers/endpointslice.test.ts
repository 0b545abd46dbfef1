// The EndpointSlice controller: what it plans, as tables, and what it writes with a client in memory.

import { describe, expect, it } from 'vitest';
import type { Pod, Service } from '../../../../client/types.ts';
import { EndpointSliceController } from '../../../../controlplane/controllers/endpointslice/endpointslice.ts';
import { MAX_ENDPOINTS, type NewSlice, planSlices } from '../../../../controlplane/controllers/endpointslice/plan.ts';
import { findPort, servicesOfChange } from '../../../../controlplane/controllers/shared/service-pods.ts';
import { triggerTime } from '../../../../controlplane/controllers/shared/trigger-time.ts';
import { parseRfc3339 } from '../../../../lib/rfc3339.ts';
import { apiError } from '../../../support/fake-client.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, NOW } from '../environment.ts';
import { makeService, stored, WEB_PORT, webPod, webPods, zoneNode } from './endpoints-cases.ts';

const node = zoneNode('n1', 'a');
const nodeOf = (name: string) => (name === 'n1' ? node : undefined);
const plan = (
  service: Service,
  pods: readonly Pod[],
  existing = [] as Parameters<typeof planSlices>[3],
  max?: number,
) => planSlices(service, pods, nodeOf, existing, max);
const only = (slices: readonly NewSlice[]): NewSlice => {
  expect(slices).toHaveLength(1);
  const [slice] = slices;
  if (slice === undefined) throw new Error('no slice');
  return slice;
};
const addresses = ({ endpoints = [] }: Pick<NewSlice, 'endpoints'>): string[] =>
  endpoints.map((endpoint) => endpoint.addresses.join());

describe('a new slice', () => {
  it('has name, labels, owner, ports and endpoints as upstream', () => {
    const service = makeService({}, { labels: { team: 'x', 'kubernetes.io/service-name': 'other' } });
    expect(only(plan(service, [webPod(1)]).create)).toEqual({
      metadata: {
        generateName: 'web-',
        namespace: 'demo',
        labels: {
          team: 'x',
          'kubernetes.io/service-name': 'web',
          'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        },
        ownerReferences: [
          {
            apiVersion: 'v1',
            kind: 'Service',
            name: 'web',
            uid: 'uid-web',
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      addressType: 'IPv4',
      ports: [{ name: '', port: 8080, protocol: 'TCP' }],
      endpoints: [
        {
          addresses: ['10.0.0.1'],
          conditions: { ready: true, serving: true, terminating: false },
          targetRef: { kind: 'Pod', namespace: 'demo', name: 'p1', uid: 'uid-p1' },
          nodeName: 'n1',
          zone: 'a',
        },
      ],
    });
  });

  it('of a headless service has its label', () => {
    const { metadata } = only(plan(makeService({ clusterIP: 'None' }), [webPod(1)]).create);
    expect(metadata.labels['service.kubernetes.io/headless']).toBe('');
  });

  it('without endpoints has no ports', () => {
    const slice = only(plan(makeService(), []).create);
    expect([slice.endpoints, slice.ports]).toEqual([[], []]);
  });
});

describe('conditions', () => {
  it.each([
    ['ready', {}, {}, { ready: true, serving: true, terminating: false }],
    ['not ready', { ready: false }, {}, { ready: false, serving: false, terminating: false }],
    ['on its way out', { leaving: true }, {}, { ready: false, serving: true, terminating: true }],
    ['both', { leaving: true, ready: false }, {}, { ready: false, serving: false, terminating: true }],
    [
      'published though not ready',
      { ready: false },
      { publishNotReadyAddresses: true },
      { ready: true, serving: false, terminating: false },
    ],
    [
      'published on its way out',
      { leaving: true },
      { publishNotReadyAddresses: true },
      { ready: true, serving: true, terminating: true },
    ],
  ])('%s', (_, facts, spec, conditions) => {
    const slice = only(plan(makeService(spec), [webPod(1, facts)]).create);
    expect(slice.endpoints?.map((each) => each.conditions)).toEqual([conditions]);
  });
});

describe('which pods', () => {
  it.each([
    ['one that has ended', { phase: 'Succeeded' }, []],
    ['one that has failed', { phase: 'Failed' }, []],
    ['one without an address', { ips: [] }, []],
    ['one of the other family', { ips: ['fd00::1'] }, []],
    ['one of both families', { ips: ['fd00::1', '10.0.0.9'] }, ['10.0.0.9']],
    ['one of a node that is not there', { node: 'gone' }, []],
  ])('%s', (_, facts, expected) => {
    expect(addresses(only(plan(makeService(), [webPod(1, facts)]).create))).toEqual(expected);
  });

  it('one of a node that is not there is named, or published where that is requested', () => {
    const pods = [webPod(1, { node: 'gone' })];
    expect(plan(makeService(), pods).withoutNode).toEqual([{ pod: 'p1', node: 'gone' }]);
    const published = plan(makeService({ publishNotReadyAddresses: true }), pods);
    expect([published.withoutNode, addresses(only(published.create))]).toEqual([[], ['10.0.0.1']]);
  });

  it('a slice for each family of the service', () => {
    const pods = [webPod(1, { ips: ['10.0.0.1', 'fd00::1'] })];
    const { create } = plan(makeService({ ipFamilies: ['IPv4', 'IPv6'] }), pods);
    expect(create.map((slice) => [slice.addressType, addresses(slice)])).toEqual([
      ['IPv4', ['10.0.0.1']],
      ['IPv6', ['fd00::1']],
    ]);
  });

  it('the host name of a pod whose subdomain is the service', () => {
    const spec = { hostname: 'web-0', subdomain: 'web' };
    const names = (more: object): unknown =>
      only(plan(makeService(), [webPod(1, { spec: more })]).create).endpoints?.map(({ hostname }) => hostname);
    expect(names(spec)).toEqual(['web-0']);
    expect(names({ ...spec, subdomain: 'other' })).toEqual([undefined]);
  });
});

describe('ports', () => {
  const named = { name: 'http', containerPort: 8080, protocol: 'TCP' };
  const container = { name: 'c', ports: [named] };
  it.each([
    ['a number', { ...WEB_PORT, targetPort: 81 }, {}, 81],
    ['none: the service’s own', { port: 80 }, {}, 80],
    ['a name', { ...WEB_PORT, targetPort: 'http' }, { containers: [container] }, 8080],
    [
      'a name of another protocol',
      { ...WEB_PORT, targetPort: 'http', protocol: 'UDP' },
      { containers: [container] },
      undefined,
    ],
    ['a name that is not there', { ...WEB_PORT, targetPort: 'x' }, { containers: [container] }, undefined],
    [
      'a name of a sidecar',
      { ...WEB_PORT, targetPort: 'http' },
      { initContainers: [{ ...container, restartPolicy: 'Always' }] },
      8080,
    ],
    ['a name of an init container', { ...WEB_PORT, targetPort: 'http' }, { initContainers: [container] }, undefined],
  ])('%s', (_, port, spec, expected) => {
    expect(findPort(webPod(1, { spec }), port)).toBe(expected);
  });

  it('pods with other numbers for a name are in other slices', () => {
    const ports = (containerPort: number) => ({ containers: [{ name: 'c', ports: [{ ...named, containerPort }] }] });
    const pods = [webPod(1, { spec: ports(1) }), webPod(2, { spec: ports(2) }), webPod(3, { spec: ports(1) })];
    const { create } = plan(makeService({ ports: [{ ...WEB_PORT, name: 'p', targetPort: 'http' }] }), pods);
    expect(create.map((slice) => [slice.ports, addresses(slice)])).toEqual([
      [[{ name: 'p', port: 1, protocol: 'TCP' }], ['10.0.0.1', '10.0.0.3']],
      [[{ name: 'p', port: 2, protocol: 'TCP' }], ['10.0.0.2']],
    ]);
  });
});

describe('changes', () => {
  const service = makeService();
  const make = (pods: readonly Pod[], name = 's1') => stored(only(plan(service, pods).create), name);

  it('nothing where nothing changed', () => {
    const zones = [{ addressType: 'IPv4', hints: undefined }];
    const none = { create: [], update: [], remove: [], withoutNode: [], zones };
    expect(plan(service, [webPod(1)], [make([webPod(1)])])).toEqual(none);
    expect(plan(service, [], [make([])])).toEqual(none);
  });

  it('readiness, in the slice where the endpoint is', () => {
    const { update, create, remove } = plan(service, [webPod(1, { ready: false })], [make([webPod(1)])]);
    expect([create, remove]).toEqual([[], []]);
    expect(update.map((slice) => [slice.metadata.name, slice.endpoints?.[0]?.conditions?.ready])).toEqual([
      ['s1', false],
    ]);
  });

  it('labels of the service', () => {
    const { update } = plan(makeService({}, { labels: { a: 'b' } }), [webPod(1)], [make([webPod(1)])]);
    expect(update.map(({ metadata }) => metadata.labels?.['a'])).toEqual(['b']);
  });

  it('the last pod goes: its slice is emptied, not replaced', () => {
    const { update, create, remove } = plan(service, [], [make([webPod(1)])]);
    expect([create, remove]).toEqual([[], []]);
    expect(update.map((slice) => [slice.metadata.name, slice.endpoints, slice.ports])).toEqual([['s1', [], []]]);
  });

  it('the first pod comes: the empty slice takes it', () => {
    const { update, create, remove } = plan(service, [webPod(1)], [make([])]);
    expect([create, remove]).toEqual([[], []]);
    expect(update.map((slice) => [slice.metadata.name, addresses(slice)])).toEqual([['s1', ['10.0.0.1']]]);
  });

  it('slices of an earlier service of that name are deleted', () => {
    const old = make([webPod(1)]);
    const again = makeService({}, { uid: 'uid-again' });
    const { create, remove, update } = plan(again, [webPod(1)], [old]);
    expect([create.length, update, remove.map(({ metadata }) => metadata.name)]).toEqual([1, [], ['s1']]);
  });

  it('a pod that was made again under its name is another target', () => {
    const again = webPod(1);
    const { update } = plan(service, [{ ...again, metadata: { ...again.metadata, uid: 'new' } }], [make([webPod(1)])]);
    expect(update.map((slice) => slice.endpoints?.[0]?.targetRef?.uid)).toEqual(['new']);
  });
});

describe('filling, with three endpoints in a slice', () => {
  const service = makeService();
  const [first] = plan(service, webPods(3), [], 3).create;
  const full = stored(first ?? {}, 'full');
  const half = stored(only(plan(service, [webPod(4), webPod(5)], [], 3).create), 'half');
  const low = stored(only(plan(service, [webPod(6)], [], 3).create), 'low');
  const names = (result: ReturnType<typeof plan>): unknown => ({
    create: result.create.map(addresses),
    update: result.update.map((slice) => [slice.metadata.name, addresses(slice)]),
    remove: result.remove.map(({ metadata }) => metadata.name),
  });
  const pods = (...numbers: number[]): Pod[] => numbers.map((number) => webPod(number));
  const ip = (...numbers: number[]): string[] => numbers.map((number) => `10.0.0.${number}`);

  it('seven pods are three slices', () => {
    expect(plan(service, webPods(7), [], 3).create.map(({ endpoints }) => endpoints?.length)).toEqual([3, 3, 1]);
  });
  it('one more goes to the fullest that has room', () => {
    expect(names(plan(service, pods(1, 2, 3, 4, 5, 6, 7), [full, half, low], 3))).toEqual({
      create: [],
      update: [['half', ip(4, 5, 7)]],
      remove: [],
    });
  });
  it('a slice that changes anyway takes it', () => {
    expect(names(plan(service, pods(1, 2, 4, 5, 6, 7), [full, half, low], 3))).toEqual({
      create: [],
      update: [['full', ip(1, 2, 7)]],
      remove: [],
    });
  });
  it('where none has room for all that are left, a new one is made', () => {
    expect(names(plan(service, pods(1, 2, 3, 4, 5, 7, 8), [full, half], 3))).toEqual({
      create: [ip(7, 8)],
      update: [],
      remove: [],
    });
  });
  it('a slice that becomes empty is used for what is new, or deleted', () => {
    expect(names(plan(service, pods(1, 2, 3, 4, 5), [full, half, low], 3))).toEqual({
      create: [],
      update: [],
      remove: ['low'],
    });
    expect(names(plan(service, pods(1, 2, 3, 7, 8, 9), [full, low], 3))).toEqual({
      create: [],
      update: [['low', ip(7, 8, 9)]],
      remove: [],
    });
  });
  it('a selector that matches 5,000 pods', () => {
    const many = Array.from({ length: 5000 }, (_, index) =>
      webPod(index, { ips: [`10.1.${index >> 8}.${index & 255}`] }),
    );
    const { create } = plan(service, many);
    expect(create.map(({ endpoints }) => endpoints?.length)).toEqual(Array.from({ length: 50 }, () => MAX_ENDPOINTS));
  });
});

describe('hints', () => {
  const hints = (trafficDistribution: string | undefined, facts = {}, annotations = {}): unknown =>
    only(
      plan(makeService(trafficDistribution === undefined ? {} : { trafficDistribution }, { annotations }), [
        webPod(1, facts),
      ]).create,
    ).endpoints?.[0]?.hints;
  it.each([
    [undefined, {}, {}, undefined],
    ['PreferClose', {}, {}, { forZones: [{ name: 'a' }] }],
    ['PreferSameZone', {}, {}, { forZones: [{ name: 'a' }] }],
    ['PreferSameNode', {}, {}, { forZones: [{ name: 'a' }], forNodes: [{ name: 'n1' }] }],
    ['PreferClose', { ready: false }, {}, undefined],
    ['PreferClose', {}, { 'service.kubernetes.io/topology-mode': 'Auto' }, undefined],
    ['PreferClose', {}, { 'service.kubernetes.io/topology-mode': 'Disabled' }, { forZones: [{ name: 'a' }] }],
  ])('%s %j %j', (distribution, facts, annotations, expected) => {
    expect(hints(distribution, facts, annotations)).toEqual(expected);
  });

  it('come and go with the field, in slices that do not change otherwise', () => {
    const plain = stored(only(plan(makeService(), [webPod(1)]).create), 's1');
    const close = makeService({ trafficDistribution: 'PreferClose' });
    const { update } = plan(close, [webPod(1)], [plain]);
    expect(update.map((slice) => slice.endpoints?.[0]?.hints)).toEqual([{ forZones: [{ name: 'a' }] }]);
    const [hinted] = update;
    const back = plan(makeService(), [webPod(1)], hinted === undefined ? [] : [hinted]);
    expect(back.update.map((slice) => slice.endpoints?.[0]?.hints)).toEqual([undefined]);
  });
});

describe('services that a change of a pod touches', () => {
  const web = makeService();
  const blue = makeService({ selector: { color: 'blue' } }, { name: 'blue' });
  const none = makeService({ selector: {} }, { name: 'none' });
  const services = [web, blue, none];
  const old = webPod(1);
  const relabelled = (labels: Record<string, string>, ready = true): Pod => webPod(1, { labels, ready });
  it.each([
    ['added', { type: 'added', object: old }, ['demo/web']],
    ['removed', { type: 'removed', object: old }, ['demo/web']],
    ['a heartbeat', { type: 'modified', old, object: webPod(1) }, []],
    ['ready no more', { type: 'modified', old, object: webPod(1, { ready: false }) }, ['demo/web']],
    ['another address', { type: 'modified', old, object: webPod(1, { ips: ['10.9.9.9'] }) }, ['demo/web']],
    ['on its way out', { type: 'modified', old, object: webPod(1, { leaving: true }) }, ['demo/web']],
    ['one more label', { type: 'modified', old, object: relabelled({ app: 'web', color: 'blue' }) }, ['demo/blue']],
    ['another label', { type: 'modified', old, object: relabelled({ color: 'blue' }) }, ['demo/blue', 'demo/web']],
    [
      'one more label and ready no more',
      { type: 'modified', old, object: relabelled({ app: 'web', color: 'blue' }, false) },
      ['demo/blue', 'demo/web'],
    ],
  ] as const)('%s', (_, change, expected) => {
    expect(servicesOfChange(change, services).toSorted()).toEqual(expected);
  });
});

describe('the trigger time', () => {
  const at = (text: string) => parseRfc3339(text);
  const later = '2026-01-01T00:05:00Z';
  const latest = '2026-01-01T00:09:00Z';
  it('is the service’s at first, then the earliest change since, then none', () => {
    const service = makeService();
    const first = triggerTime(undefined, service, [webPod(1), webPod(2)]);
    expect(first.time).toBe(at(NOW));
    const pods = [webPod(1, { since: latest }), webPod(2, { since: later })];
    const second = triggerTime(first.known, service, pods);
    expect(second.time).toBe(at(later));
    expect(triggerTime(second.known, service, pods).time).toBeUndefined();
  });
});

describe('the controller', () => {
  function start(service = makeService(), pods = [webPod(1)]) {
    const env = environment();
    env.informers.nodes.replace([node]);
    env.informers.services.replace([]);
    env.informers.pods.replace(pods);
    env.informers.endpointSlices.replace([]);
    let version = 1000;
    env.client.onWrite = ({ verb, body }) => {
      if (verb === 'delete') return body;
      const object = body as { metadata: { name?: string; uid?: string } };
      version++;
      return {
        ...object,
        metadata: { name: `web-${version}`, uid: `u-${version}`, ...object.metadata, resourceVersion: String(version) },
      };
    };
    const controller = new EndpointSliceController(env.context, env.informers);
    env.run(controller);
    env.informers.services.upsert(service);
    return { ...env, controller };
  }

  it('writes nothing more until the cache shows what it wrote', async () => {
    const { client, informers, stop } = start();
    await settle();
    expect(client.writes.map(({ verb }) => verb)).toEqual(['create']);
    const created = client.writes[0]?.body as Parameters<typeof stored>[0];
    informers.pods.upsert(webPod(2));
    await settle();
    expect(client.writes).toHaveLength(1);
    const { metadata, ...rest } = created as { metadata: object };
    informers.endpointSlices.upsert({
      ...(rest as ReturnType<typeof stored>),
      metadata: { ...metadata, name: 'web-1001', namespace: 'demo', uid: 'u-1001', resourceVersion: '1001' },
    });
    await settle();
    expect(client.writes.map(({ verb }) => verb)).toEqual(['create', 'replace']);
    stop.abort();
  });

  it('says when the change was that it writes', async () => {
    const { client, stop } = start();
    await settle();
    expect(client.writes[0]?.body).toMatchObject({
      metadata: { annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': NOW } },
    });
    stop.abort();
  });

  it.each([
    ['ExternalName', makeService({ type: 'ExternalName' })],
    ['without a selector', makeService({ selector: {} })],
  ])('leaves a service alone that is %s', async (_, service) => {
    const { client, stop } = start(service);
    await settle();
    expect(client.writes).toEqual([]);
    stop.abort();
  });

  it('reports a failure as an event of the service', async () => {
    const env = start(makeService(), [webPod(1, { node: 'gone' })]);
    await settle();
    expect(env.events).toEqual([
      'web FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service demo/web: skipping Pod p1 for Service demo/web: Node gone Not Found',
    ]);
    env.stop.abort();
  });

  it('tries a conflict again without an event', async () => {
    const env = environment();
    env.informers.nodes.replace([node]);
    env.informers.pods.replace([webPod(1)]);
    env.client.failures.push(apiError(409, 'Conflict'));
    env.client.onWrite = () => stored(only(plan(makeService(), [webPod(1)]).create), 's1');
    env.run(new EndpointSliceController(env.context, env.informers));
    env.informers.services.upsert(makeService());
    await settle();
    expect([env.events, env.client.writes]).toEqual([[], []]);
    await env.clock.advance(5);
    await settle();
    expect([env.events, env.client.writes.length]).toEqual([[], 1]);
    env.stop.abort();
  });
});
