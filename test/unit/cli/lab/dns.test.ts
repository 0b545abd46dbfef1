// Where a lab's DNS listens, what its pods have in their resolv.conf, and the objects by which a cluster knows it.

import { expect, it, test } from 'vitest';
import { COREFILE, dnsObjects, dnsState } from '../../../../cli/lab/dns.ts';
import { firstNodes } from '../../../../cli/lab/node/plan.ts';
import { parseCorefile } from '../../../../dns/corefile/corefile.ts';

const nodes = { range: '10.192.64.0/18', serviceRange: '10.100.0.0/16', list: firstNodes(2) };

it.each([
  ['a proxy', '10.244.3.0/24', undefined, true, ['10.244.3.1', '10.96.0.10', '10.96.0.10']],
  ['no proxy', '10.244.3.0/24', undefined, false, ['10.244.3.1', '10.244.3.1', '10.96.0.10']],
  ['nodes with proxies', '10.192.64.0/18', nodes, true, ['10.192.96.1', '10.100.0.10', '10.100.0.10']],
  ['nodes without', '10.192.64.0/18', nodes, false, ['10.192.96.1', '10.192.96.1', '10.100.0.10']],
] as const)('a lab with %s', (_, subnet, its, hasProxy, expected) => {
  const { address, server, serviceIP } = dnsState(subnet, its, hasProxy);
  expect([address, server, serviceIP]).toEqual(expected);
});

test('Service, Endpoints and slice have the same ports, and the control plane makes no second slice', () => {
  const objects = dnsObjects({ address: '10.244.3.1', serviceIP: '10.96.0.10' });
  const found = new Map(objects.map(({ plural, object }) => [plural, object]));
  const ports = [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'dns-tcp', port: 53, protocol: 'TCP' },
    { name: 'metrics', port: 9153, protocol: 'TCP' },
  ];
  expect(found.get('services')).toMatchObject({ spec: { clusterIP: '10.96.0.10', ports } });
  expect(found.get('endpointslices')).toMatchObject({ endpoints: [{ addresses: ['10.244.3.1'] }], ports });
  expect(found.get('endpoints')).toMatchObject({
    metadata: { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: [{ addresses: [{ ip: '10.244.3.1' }], ports }],
  });
});

test('the lab’s Corefile is one that the server takes', () => {
  expect(parseCorefile(COREFILE)).toHaveLength(1);
});
