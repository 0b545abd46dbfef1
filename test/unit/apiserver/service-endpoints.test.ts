// The endpoints of the service `kubernetes`: which there are for which servers, and that they are put right.

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { serviceEndpoints } from '../../../apiserver/service-endpoints.ts';
import { at, TestApiServer } from '../../support/api-server.ts';

describe('for the servers', () => {
  const ports = [{ name: 'https', protocol: 'TCP', port: 6443 }];
  it.each([
    ['10.0.0.1', ['10.0.0.1'], 'IPv4', ['10.0.0.1']],
    ['10.0.0.2 10.0.0.1', ['10.0.0.1', '10.0.0.2'], 'IPv4', ['10.0.0.1', '10.0.0.2']],
    ['fd00::2 fd00::1', ['fd00::1', 'fd00::2'], 'IPv6', ['fd00::1', 'fd00::2']],
    ['fd00::1 10.0.0.1', ['10.0.0.1', 'fd00::1'], 'IPv4', ['10.0.0.1']],
  ])('%s', (given, ips, addressType, inSlice) => {
    const [endpoints, slice] = serviceEndpoints(given.split(' '), 6443);
    expect(endpoints?.fields).toEqual({ subsets: [{ addresses: ips.map((ip) => ({ ip })), ports }] });
    const listed = inSlice.map((address) => ({ addresses: [address], conditions: { ready: true } }));
    expect(slice?.fields).toEqual({ addressType, endpoints: listed, ports });
  });
});

describe('of a server alone', () => {
  let stand: TestApiServer;
  beforeAll(async () => {
    stand = await TestApiServer.start({ advertiseAddress: '192.0.2.7' });
  });
  afterAll(() => stand.stop());
  const paths = {
    endpoints: '/api/v1/namespaces/default/endpoints/kubernetes',
    slice: '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes',
  };
  const read = async (path: string): Promise<unknown> => (await stand.call({ path, as: stand.admin })).json;

  it('are there when it serves, and again within ten seconds when they are changed or gone', async () => {
    const [endpoints, slice] = [await read(paths.endpoints), await read(paths.slice)];
    expect(at(endpoints, 'subsets', 0, 'addresses')).toEqual([{ ip: '192.0.2.7' }]);
    expect(at(slice, 'endpoints', 0, 'addresses')).toEqual(['192.0.2.7']);
    await stand.admit('DELETE', paths.slice);
    const patch = {
      subsets: [],
      metadata: { labels: { own: 'stays', 'endpointslice.kubernetes.io/skip-mirror': null } },
    };
    await stand.admit('PATCH', paths.endpoints, patch, { 'content-type': 'application/merge-patch+json' });
    stand.clock.elapse(10_000);
    await vi.waitFor(async () => expect(at(await read(paths.slice), 'endpoints')).toEqual(at(slice, 'endpoints')));
    await vi.waitFor(async () => expect(at(await read(paths.endpoints), 'subsets')).toEqual(at(endpoints, 'subsets')));
    const labels = { own: 'stays', 'endpointslice.kubernetes.io/skip-mirror': 'true' };
    const repaired = await read(paths.endpoints);
    expect(at(repaired, 'metadata', 'labels')).toEqual(labels);
    // What is right is not written again.
    stand.clock.elapse(10_000);
    await stand.admit('POST', '/api/v1/namespaces', {
      kind: 'Namespace',
      apiVersion: 'v1',
      metadata: { name: 'later' },
    });
    expect(await read(paths.endpoints)).toEqual(repaired);
  });
});
