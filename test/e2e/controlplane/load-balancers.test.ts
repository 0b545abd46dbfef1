// Services of type LoadBalancer with stock kubectl, against an API server and the control plane: the address, where it comes from, what
// `kubectl describe` shows, and how it is given back. Packets are in test/e2e/proxy and test/e2e/nodes.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../../../client/api.ts';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Service } from '../../../client/types.ts';
import { type Kubectl, kubectlFor } from '../kubectl/support.ts';
import { kubectls } from '../support/kubectls.ts';
import { Cluster, eventually } from './cluster.ts';

const versions = (await kubectls()).filter(({ full }) => full);
const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';

let cluster: Cluster;
let admin: ApiClient;
beforeAll(async () => {
  cluster = await Cluster.start();
  admin = await cluster.client();
  // Two addresses.
  await cluster.startControlPlane([], undefined, ['*'], undefined, '192.0.2.240/30');
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

// Side by side would share the two addresses.
describe.each(versions)('kubectl $version', ({ command, version }) => {
  const namespace = `balanced-${version.replace('.', '-')}`;
  let kubectl: Kubectl;
  const run = (...args: string[]): Promise<string> => kubectl.ok('-n', namespace, ...args);
  const get = (name: string): Promise<Service> => admin.get(resourcePath('v1', 'services', { namespace, name }));
  const has = (name: string, what: string, isIt: (service: Service) => boolean): Promise<Service> =>
    eventually(`${name} ${what}`, async () => {
      const service = await get(name);
      return isIt(service) ? service : undefined;
    });
  const addressOf = ({ status }: Service): string | undefined => status?.loadBalancer?.ingress?.[0]?.ip;
  const withAddress = async (name: string, ip: string): Promise<Service> =>
    await has(name, `with ${ip}`, (service) => addressOf(service) === ip);
  const reported = (name: string, event: RegExp): Promise<string> =>
    eventually(`${event} of ${name}`, async () => {
      const shown = await run('describe', 'service', name);
      return event.test(shown) ? shown : undefined;
    });

  beforeAll(async () => {
    const home = join(cluster.root, `home-${version}`);
    await mkdir(home);
    kubectl = kubectlFor(command, cluster.kubeconfig, home);
    await kubectl.ok('create', 'namespace', namespace);
  });

  it('gives addresses, says so, has none left, and takes them back', async () => {
    await run('create', 'service', 'loadbalancer', 'web', '--tcp=80:8080');
    const web = await withAddress('web', '192.0.2.241');
    expect(web.status?.loadBalancer?.ingress).toEqual([{ ip: '192.0.2.241', ipMode: 'VIP' }]);
    expect(web.metadata.finalizers).toEqual([FINALIZER]);
    expect(await run('get', 'service', 'web', '--no-headers')).toMatch(/^web +LoadBalancer +\S+ +192\.0\.2\.241 +80:/);
    await reported('web', /Normal +EnsuringLoadBalancer .*service-controller +Ensuring load balancer/);
    const described = await reported('web', /Normal +EnsuredLoadBalancer .*service-controller +Ensured load balancer/);
    expect(described).toMatch(/LoadBalancer Ingress: +192\.0\.2\.241/);
    await run('create', 'service', 'clusterip', 'typed', '--tcp=80:8080');
    await run('patch', 'service', 'typed', '-p', '{"spec":{"type":"LoadBalancer"}}');
    await withAddress('typed', '192.0.2.242');
    await reported('typed', /Normal +Type .*service-controller +ClusterIP -> LoadBalancer/);
    await run('create', 'service', 'loadbalancer', 'third', '--tcp=80:8080');
    await reported(
      'third',
      /Warning +SyncLoadBalancerFailed .*Error syncing load balancer: failed to ensure load balancer: no address of 192\.0\.2\.240\/30 is free: all 2 are in use/,
    );
    // What it gives back goes to the one that waits, at once.
    await run('patch', 'service', 'typed', '-p', '{"spec":{"type":"ClusterIP"}}');
    const typed = await has('typed', 'without a finalizer', ({ metadata }) => metadata.finalizers === undefined);
    expect(addressOf(typed)).toBeUndefined();
    await withAddress('third', '192.0.2.242');
    await run('delete', 'service', 'web', 'third');
    for (const name of ['web', 'third']) {
      await eventually(`${name} to be gone`, async () => {
        try {
          await get(name);
          return undefined;
        } catch (error) {
          if (isNotFound(error)) return true;
          throw error;
        }
      });
    }
  });

  it('gives the address that is asked for, and none to a load balancer of another class', async () => {
    const made = (name: string, spec: object): Promise<unknown> =>
      admin.create(resourcePath('v1', 'services', { namespace }), {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name },
        spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec },
      });
    await made('theirs', { loadBalancerClass: 'example.com/other' });
    await made('chosen', { loadBalancerIP: '192.0.2.242' });
    await withAddress('chosen', '192.0.2.242');
    await run('patch', 'service', 'chosen', '-p', '{"spec":{"loadBalancerIP":"192.0.2.241"}}');
    await withAddress('chosen', '192.0.2.241');
    await reported('chosen', /Normal +LoadbalancerIP .*service-controller +192\.0\.2\.242 -> 192\.0\.2\.241/);
    await run('patch', 'service', 'chosen', '-p', '{"spec":{"loadBalancerIP":"198.51.100.1"}}');
    await reported('chosen', /the requested address 198\.51\.100\.1 is not one of 192\.0\.2\.240\/30/);
    const theirs = await get('theirs');
    expect([addressOf(theirs), theirs.metadata.finalizers]).toEqual([undefined, undefined]);
    await run('delete', 'service', 'chosen', 'theirs');
  });
});
