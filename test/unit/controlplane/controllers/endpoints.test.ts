// Endpoints and their mirroring: subsets, what is cut short, what is written, and the slices of Endpoints made by hand.

import { describe, expect, it } from 'vitest';
import type { EndpointSlice, Endpoints } from '../../../../client/types.ts';
import { EndpointsController, plannedEndpoints } from '../../../../controlplane/controllers/endpoints/endpoints.ts';
import { subsetsOf, truncate } from '../../../../controlplane/controllers/endpoints/subsets.ts';
import { EndpointSliceMirroringController } from '../../../../controlplane/controllers/endpointslice-mirroring/endpointslice-mirroring.ts';
import { mayMirror, planMirror } from '../../../../controlplane/controllers/endpointslice-mirroring/mirror.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { environment, meta, NOW } from '../environment.ts';
import { makeService, stored, WEB_PORT, webPod, webPods } from './endpoints-cases.ts';

const ref = (number: number) => ({ kind: 'Pod', namespace: 'demo', name: `p${number}`, uid: `uid-p${number}` });
const address = (number: number) => ({ ip: `10.0.0.${number}`, nodeName: 'n1', targetRef: ref(number) });
const http = { port: 8080, protocol: 'TCP' };

describe('subsets', () => {
  it('ready and not ready addresses of one list of ports', () => {
    expect(subsetsOf(makeService(), [webPod(10), webPod(2), webPod(3, { ready: false })])).toEqual([
      { addresses: [address(2), address(10)], notReadyAddresses: [address(3)], ports: [http] },
    ]);
  });
  it('pods on their way out are left out, unless all are published', () => {
    const pods = [webPod(1, { leaving: true })];
    expect(subsetsOf(makeService(), pods)).toEqual([]);
    expect(subsetsOf(makeService({ publishNotReadyAddresses: true }), pods)).toMatchObject([
      { addresses: [{ ip: '10.0.0.1' }] },
    ]);
  });
  it('a headless service may have no ports', () => {
    expect(subsetsOf(makeService({ clusterIP: 'None', ports: [] }), [webPod(1)])).toEqual([
      { addresses: [address(1)] },
    ]);
    expect(subsetsOf(makeService({ ports: [] }), [webPod(1)])).toEqual([]);
  });
  it('ports that only some pods have are a subset of their own', () => {
    const ports = [
      { ...WEB_PORT, name: 'a' },
      { ...WEB_PORT, name: 'b', targetPort: 'named' },
    ];
    const named = { containers: [{ name: 'c', ports: [{ name: 'named', containerPort: 9, protocol: 'TCP' }] }] };
    const found = subsetsOf(makeService({ ports }), [webPod(1), webPod(2, { spec: named })]);
    expect(found.map((subset) => [subset.ports?.map(({ name }) => name), subset.addresses?.length])).toEqual([
      [['a'], 2],
      [['b'], 1],
    ]);
  });
  it.each([
    ['all fit', 3, 2, 5, 3, 2],
    ['ready ones first', 3, 2, 4, 3, 1],
    ['no room for others', 5, 2, 4, 4, 0],
  ])('%s', (_, ready, unready, max, left, leftUnready) => {
    const pods = [
      ...webPods(ready),
      ...Array.from({ length: unready }, (_each, index) => webPod(100 + index, { ready: false })),
    ];
    const { subsets, truncated } = truncate(subsetsOf(makeService(), pods), max);
    expect(truncated).toBe(ready + unready > max);
    expect([subsets[0]?.addresses?.length ?? 0, subsets[0]?.notReadyAddresses?.length ?? 0]).toEqual([
      left,
      leftUnready,
    ]);
  });
});

describe('Endpoints', () => {
  const made = (more: Parameters<typeof makeService>[0] = {}): Endpoints => {
    const { metadata, subsets } = plannedEndpoints(makeService(more), [webPod(1)], undefined) ?? {};
    return { metadata: { ...metadata, ...meta('web', 'demo') }, ...(subsets === undefined ? {} : { subsets }) };
  };
  it('have the labels of the service, and who manages them', () => {
    const planned = plannedEndpoints(makeService({ clusterIP: 'None' }, { labels: { a: 'b' } }), [], undefined);
    expect(planned?.metadata).toEqual({
      name: 'web',
      namespace: 'demo',
      labels: {
        a: 'b',
        'endpoints.kubernetes.io/managed-by': 'endpoint-controller',
        'service.kubernetes.io/headless': '',
      },
      annotations: {},
    });
  });
  it('are left alone where nothing changed', () => {
    expect(plannedEndpoints(makeService(), [webPod(1)], made())).toBeUndefined();
    expect(plannedEndpoints(makeService(), [webPod(1, { ready: false })], made())).toBeDefined();
  });
  it('say when they are cut short', () => {
    const many = Array.from({ length: 1001 }, (_, index) =>
      webPod(index, { ips: [`10.1.${index >> 8}.${index & 255}`] }),
    );
    const planned = plannedEndpoints(makeService(), many, undefined);
    expect(planned?.metadata?.annotations).toEqual({ 'endpoints.kubernetes.io/over-capacity': 'truncated' });
    expect(planned?.subsets?.[0]?.addresses).toHaveLength(1000);
  });
  it('go with their service; those that someone made without one stay, but for what the start finds', async () => {
    const env = environment();
    const left = { metadata: meta('left', 'demo') };
    const leader = {
      metadata: { ...meta('leader', 'demo'), annotations: { 'control-plane.alpha.kubernetes.io/leader': '{}' } },
    };
    env.run(new EndpointsController(env.context, env.informers));
    env.informers.endpoints.replace([left, leader]);
    env.informers.endpoints.upsert({ metadata: meta('own', 'demo') });
    await settle();
    expect(env.client.writes.map(({ verb, path }) => [verb, path])).toEqual([
      ['delete', '/api/v1/namespaces/demo/endpoints/left'],
    ]);
    env.stop.abort();
  });
});

describe('mirroring', () => {
  const byHand: Endpoints = {
    metadata: {
      ...meta('db', 'demo'),
      labels: { tier: 'db' },
      annotations: { note: 'x', 'endpoints.kubernetes.io/last-change-trigger-time': NOW },
    },
    subsets: [
      {
        addresses: [{ ip: '192.0.2.1', hostname: 'one' }, { ip: 'fd00::1' }],
        notReadyAddresses: [{ ip: '192.0.2.2' }],
        ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
      },
    ],
  };
  const service = makeService({ selector: {} }, { name: 'db' });

  it.each([
    ['of a service without a selector', {}, {}, service, true],
    ['of a service with one', {}, {}, makeService(), false],
    ['without a service', {}, {}, undefined, false],
    ['that says not to', { 'endpointslice.kubernetes.io/skip-mirror': 'true' }, {}, service, false],
    ['of a leader election', {}, { 'control-plane.alpha.kubernetes.io/leader': '{}' }, service, false],
  ])('Endpoints %s', (_, labels, annotations, owner, expected) => {
    const metadata = { ...byHand.metadata, labels, annotations };
    expect(mayMirror({ ...byHand, metadata }, owner)).toBe(expected);
  });

  it('a slice for each family', () => {
    const { create, update, remove } = planMirror(byHand, []);
    expect([update, remove]).toEqual([[], []]);
    expect(create).toEqual([
      {
        metadata: {
          labels: {
            tier: 'db',
            'kubernetes.io/service-name': 'db',
            'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
          },
          annotations: { note: 'x' },
          ownerReferences: [
            {
              apiVersion: 'v1',
              kind: 'Endpoints',
              name: 'db',
              uid: 'uid-db',
              controller: true,
              blockOwnerDeletion: true,
            },
          ],
        },
        addressType: 'IPv4',
        ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
        endpoints: [
          { addresses: ['192.0.2.1'], conditions: { ready: true }, hostname: 'one' },
          { addresses: ['192.0.2.2'], conditions: { ready: false } },
        ],
      },
      expect.objectContaining({
        addressType: 'IPv6',
        endpoints: [{ addresses: ['fd00::1'], conditions: { ready: true } }],
      }),
    ]);
  });

  const slices = (): EndpointSlice[] => planMirror(byHand, []).create.map((body, index) => stored(body, `s${index}`));
  it('nothing where nothing changed', () => {
    expect(planMirror(byHand, slices())).toEqual({ create: [], update: [], remove: [], invalid: 0, skipped: 0 });
  });
  it('another port: the slice of that family is used again', () => {
    const [subset] = byHand.subsets ?? [];
    const moved = { ...byHand, subsets: [{ ...subset, ports: [{ name: 'sql', port: 1, protocol: 'TCP' }] }] };
    const { create, update, remove } = planMirror(moved, slices());
    expect([create, remove, update.map((each) => each.stored.metadata.name)]).toEqual([[], [], ['s0', 's1']]);
  });
  it('what is too much, and what is no address', () => {
    const subsets = [{ addresses: ['1', '10.0.0.1', '10.0.0.2', '10.0.0.3'].map((ip) => ({ ip })), ports: [] }];
    const { invalid, skipped, create } = planMirror({ ...byHand, subsets }, [], 2);
    expect([invalid, skipped, create[0]?.endpoints?.length]).toEqual([1, 1, 2]);
  });

  it('the controller makes them, and takes them away when the service gets a selector', async () => {
    const env = environment();
    let version = 500;
    env.client.onWrite = ({ body }) => {
      version++;
      const object = body as { metadata: object };
      return {
        ...object,
        metadata: { ...object.metadata, name: `s${version}`, uid: `u${version}`, resourceVersion: String(version) },
      };
    };
    env.run(new EndpointSliceMirroringController(env.context, env.informers));
    env.informers.services.replace([service]);
    env.informers.endpoints.replace([byHand]);
    await settle();
    expect(env.client.writes.map(({ verb }) => verb)).toEqual(['create', 'create']);
    for (const [index, write] of env.client.writes.entries()) {
      const made = write.body as EndpointSlice;
      const name = `s${501 + index}`;
      env.informers.endpointSlices.upsert({
        ...made,
        metadata: {
          ...made.metadata,
          name,
          namespace: 'demo',
          uid: `u${501 + index}`,
          resourceVersion: String(501 + index),
        },
      });
    }
    await settle();
    expect(env.client.writes).toHaveLength(2);
    env.informers.services.upsert(makeService({}, { name: 'db', uid: service.metadata.uid }));
    await settle();
    expect(env.client.writes.slice(2).map(({ verb, path }) => `${verb} ${path.split('/').at(-1)}`)).toEqual([
      'delete s501',
      'delete s502',
    ]);
    env.stop.abort();
  });
});
