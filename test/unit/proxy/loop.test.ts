// The proxy's loop against a backend that a test plays: what fails is written again, as a whole, and what someone else has changed is repaired.

import { expect, it } from 'vitest';
import { Store } from '../../../client/store.ts';
import type { EndpointSlice, Node, Service } from '../../../client/types.ts';
import { RestClientMetrics } from '../../../lib/rest-client-metrics.ts';
import { Tracer } from '../../../lib/trace.ts';
import type { Backend } from '../../../proxy/backend.ts';
import { ProxyMetrics } from '../../../proxy/metrics.ts';
import { ServiceProxy } from '../../../proxy/proxy.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';
import { makeService, OPTIONS } from './cases.ts';

const SYNC_PERIOD_MS = 30_000;

function start() {
  const clock = new VirtualClock();
  const services = new Store<Service>();
  /** What the backend was to write; `failure` and `damage` are its next answers. */
  const writes: string[] = [];
  const kernel = { failure: '', damage: '' };
  const backend: Backend = {
    apply: async (portMap, _options, full) => {
      writes.push(`${full ? 'all' : 'changes'} of ${portMap.size}`);
      if (kernel.failure !== '') throw new Error(kernel.failure);
      return { total: {}, written: {}, withoutLocal: { internal: 0, external: 0 } };
    },
    damage: async () => (kernel.damage === '' ? undefined : kernel.damage),
  };
  const log: string[] = [];
  const metrics = new ProxyMetrics('iptables', new RestClientMetrics('api:6443'), clock.now());
  const proxy = new ServiceProxy({
    services,
    slices: new Store<EndpointSlice>(),
    nodes: new Store<Node>(),
    backend,
    metrics,
    health: { update: () => undefined },
    tracer: new Tracer(),
    clock,
    log: (line) => log.push(line),
    nodeName: 'node',
    syncPeriodMs: SYNC_PERIOD_MS,
    options: () => OPTIONS,
    nodeIPs: () => new Set(),
  });
  const stop = new AbortController();
  const running = proxy.run(stop.signal);
  const end = (): Promise<void> => {
    stop.abort();
    return running;
  };
  return { clock, services, writes, kernel, log, metrics, proxy, end };
}

it('another program has the lock of iptables: all is written again with growing pauses, and what comes meanwhile is in it', async () => {
  const { clock, services, writes, kernel, log, metrics, proxy, end } = start();
  await settle();
  expect(writes.splice(0)).toEqual(['all of 0']);
  kernel.failure = 'iptables-restore: Another app is currently holding the xtables lock';
  services.upsert(makeService('web'));
  await settle();
  expect(proxy.times.waitingSince).toBeDefined();
  await clock.advance(100);
  await clock.advance(200);
  expect(writes.splice(0)).toEqual(['changes of 1', 'all of 1', 'all of 1']);
  expect(log.splice(0)).toEqual(
    [100, 200, 400].map((ms) => `rules are not written: ${kernel.failure}; again in ${ms} ms`),
  );
  kernel.failure = '';
  await clock.advance(400);
  expect(writes.splice(0)).toEqual(['all of 1']);
  expect(proxy.times.waitingSince).toBeUndefined();
  expect(await metrics.text()).toMatch(
    /^kubeproxy_sync_proxy_rules_iptables_restore_failures_total\{ip_family="IPv4"\} 3$/m,
  );
  await end();
});

it('a rule that was removed by hand is written again at the next look, with all others', async () => {
  const { clock, writes, kernel, log, end } = start();
  await settle();
  writes.length = 0;
  await clock.advance(SYNC_PERIOD_MS);
  expect(writes).toEqual([]);
  kernel.damage = 'chain KUBE-SERVICES of table nat has other rules';
  await clock.advance(SYNC_PERIOD_MS - 1);
  expect(writes).toEqual([]);
  await clock.advance(1);
  expect(writes).toEqual(['all of 0']);
  expect(log).toEqual([`${kernel.damage}: all rules are written again`]);
  await end();
});
