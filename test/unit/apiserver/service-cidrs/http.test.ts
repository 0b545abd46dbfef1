// ServiceCIDRs and IPAddresses as clients see them.

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { at, TestApiServer } from '../../../support/api-server.ts';

const NET = '/apis/networking.k8s.io/v1';
const SERVICES = '/api/v1/namespaces/default/services';

let stand: TestApiServer;
beforeAll(async () => {
  stand = await TestApiServer.start({ serviceCidrs: ['10.43.0.0/28'] });
});
afterAll(() => stand.stop());

const service = (name: string, spec: object = {}): object => ({
  metadata: { name },
  spec: { ports: [{ port: 80 }], ...spec },
});
const create = async (name: string, spec?: object): Promise<string> =>
  String(at(await stand.admit('POST', SERVICES, service(name, spec)), 'spec', 'clusterIP'));
const remove = (name: string): Promise<unknown> => stand.admit('DELETE', `${SERVICES}/${name}`);
async function ips(): Promise<[unknown, unknown][]> {
  const items = at(await stand.admit('GET', `${NET}/ipaddresses`), 'items');
  return Array.isArray(items)
    ? items.map((item) => [at(item, 'metadata', 'name'), at(item, 'spec', 'parentRef', 'name')])
    : [];
}
async function refusal(method: string, path: string, body?: object): Promise<[number, unknown]> {
  const { code, json } = await stand.call({ method, path, body, as: stand.admin });
  return [code, at(json, 'message')];
}
const ready = async (name: string): Promise<unknown> =>
  at(await stand.admit('GET', `${NET}/servicecidrs/${name}`), 'status', 'conditions', 0);

describe('the default range', () => {
  it('is the ServiceCIDR kubernetes, ready and protected; its first address is the service kubernetes', async () => {
    const cidr = await stand.admit('GET', `${NET}/servicecidrs/kubernetes`);
    expect(cidr).toMatchObject({
      metadata: { finalizers: ['networking.k8s.io/service-cidr-finalizer'] },
      spec: { cidrs: ['10.43.0.0/28'] },
      status: { conditions: [{ type: 'Ready', status: 'True', message: 'Kubernetes default Service CIDR is ready' }] },
    });
    expect(await ips()).toEqual([['10.43.0.1', 'kubernetes']]);
  });
});

describe('an address', () => {
  it('has an object that names its Service, as long as the Service has it', async () => {
    const address = await create('web');
    const ip = await stand.admit('GET', `${NET}/ipaddresses/${address}`);
    expect(ip).toMatchObject({
      metadata: {
        labels: {
          'ipaddress.kubernetes.io/ip-family': 'IPv4',
          'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
        },
      },
      spec: { parentRef: { resource: 'services', namespace: 'default', name: 'web' } },
    });
    await stand.admit(
      'PATCH',
      `${SERVICES}/web`,
      { spec: { type: 'ExternalName', externalName: 'example.com', clusterIP: '', clusterIPs: null } },
      { 'content-type': 'application/merge-patch+json' },
    );
    expect(await ips()).toEqual([['10.43.0.1', 'kubernetes']]);
    await stand.admit(
      'PATCH',
      `${SERVICES}/web`,
      { spec: { type: 'ClusterIP', externalName: null } },
      { 'content-type': 'application/merge-patch+json' },
    );
    expect(await ips()).toHaveLength(2);
    await remove('web');
    expect(await ips()).toEqual([['10.43.0.1', 'kubernetes']]);
  });

  it('is refused where it is taken or in no range, and dry runs take none', async () => {
    const invalid = (address: string, why: string): [number, string] => [
      422,
      `Service "x" is invalid: spec.clusterIPs: Invalid value: ["${address}"]: failed to allocate IP ${address}: ${why}`,
    ];
    const wants = (address: string) => refusal('POST', SERVICES, service('x', { clusterIP: address }));
    const outside = 'the provided network does not match the current range';
    expect(await wants('10.43.0.1')).toEqual(invalid('10.43.0.1', 'provided IP is already allocated'));
    for (const address of ['10.43.0.0', '10.43.0.15', '10.96.0.7']) {
      expect(await wants(address)).toEqual(invalid(address, outside));
    }
    const parentRef = { resource: 'gateways', group: 'example.com', name: 'g' };
    await stand.admit('POST', `${NET}/ipaddresses`, { metadata: { name: '10.43.0.9' }, spec: { parentRef } });
    expect(await wants('10.43.0.9')).toEqual(invalid('10.43.0.9', 'provided IP is already allocated'));
    await stand.admit('DELETE', `${NET}/ipaddresses/10.43.0.9`);
    await stand.admit('POST', `${SERVICES}?dryRun=All`, service('x'));
    expect(await ips()).toHaveLength(1);
  });
});

describe('more ranges', () => {
  it('are used when the first is full, and go when their addresses are gone', async () => {
    const names = Array.from({ length: 13 }, (_, index) => `s-${index}`);
    for (const name of names) expect(await create(name)).toMatch(/^10\.43\.0\./);
    expect(await refusal('POST', SERVICES, service('one-more'))).toEqual([
      500,
      'Internal error occurred: failed to allocate a serviceIP: range is full',
    ]);
    await stand.admit('POST', `${NET}/servicecidrs`, { metadata: { name: 'more' }, spec: { cidrs: ['10.44.0.0/24'] } });
    await vi.waitFor(async () =>
      expect(await ready('more')).toMatchObject({ status: 'True', message: 'Kubernetes Service CIDR is ready' }),
    );
    expect(await create('one-more')).toMatch(/^10\.44\.0\./);
    await stand.admit('DELETE', `${NET}/servicecidrs/more`);
    await vi.waitFor(async () => expect(await ready('more')).toMatchObject({ status: 'False', reason: 'Terminating' }));
    expect((await refusal('POST', SERVICES, service('two-more')))[0]).toBe(500);
    await remove('one-more');
    await vi.waitFor(async () => expect((await refusal('GET', `${NET}/servicecidrs/more`))[0]).toBe(404));
    for (const name of names) await remove(name);
  });
});

describe('repair', () => {
  it('makes an IPAddress anew that is deleted, and removes one that no Service has', async () => {
    const address = await create('web');
    await stand.admit('DELETE', `${NET}/ipaddresses/${address}`);
    await vi.waitFor(async () => expect(await ips()).toContainEqual([address, 'web']));
    const events = JSON.stringify(await stand.admit('GET', '/api/v1/namespaces/default/events'));
    expect(events).toContain(`Cluster IP [IPv4]: ${address} is not allocated; repairing`);
    await stand.admit('POST', `${NET}/ipaddresses`, {
      metadata: { name: '10.43.0.8', labels: { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' } },
      spec: { parentRef: { resource: 'services', namespace: 'default', name: 'gone' } },
    });
    await stand.admit('DELETE', `${NET}/ipaddresses/${address}`);
    await vi.waitFor(async () =>
      expect((await ips()).sort()).toEqual(
        [
          ['10.43.0.1', 'kubernetes'],
          [address, 'web'],
        ].sort(),
      ),
    );
  });
});
