// Network policies on one node, in one process: list-watches of pods, namespaces and policies, and the table in the kernel. An ordinary
// client of an API server.

import { setMaxListeners } from 'node:events';
import type { Server } from 'node:http';
import { ApiClient } from '../client/api.ts';
import type { ClusterAccess } from '../client/kubeconfig.ts';
import { resourcePath } from '../client/paths.ts';
import { Reflector } from '../client/reflector.ts';
import type { Identified } from '../client/store.ts';
import type { Pod } from '../client/types.ts';
import { logWatch } from '../client/watch-log.ts';
import type { Clock } from '../lib/clock.ts';
import { UserError } from '../lib/errors.ts';
import { type Exec, exec } from '../lib/exec.ts';
import { closeServer, listen, respondMetrics } from '../lib/http-listen.ts';
import { NftWriter } from '../lib/nft-writer.ts';
import { RestClientMetrics } from '../lib/rest-client-metrics.ts';
import type { Tracer } from '../lib/trace.ts';
import { tracedExec } from '../lib/traced-exec.ts';
import { type Namespace, type NetworkPolicy, PolicyEnforcer } from './enforcer.ts';
import { NetpolMetrics } from './metrics.ts';

/** Whether packets between two ports of a bridge pass the rules: only then do policies hold between pods of one node. */
const BRIDGES_ARE_FILTERED = '/proc/sys/net/bridge/bridge-nf-call-iptables';

export interface NetpolOptions {
  /** Identity: it may list and watch pods, namespaces and network policies. */
  readonly access: ClusterAccess;
  readonly nodeName: string;
  /** Name of the table, which is this process's alone. */
  readonly table: string;
  /** How often the kernel's table is compared and repaired. ms. */
  readonly syncPeriodMs: number;
  /** "address:port" of /metrics; absent: none. */
  readonly metricsAddress?: string;
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly log: (message: string) => void;
  readonly signal: AbortSignal;
  /** Called once all that was there has been written. */
  readonly onReady?: () => void;
  readonly run?: Exec;
}

/** Runs until the signal aborts; its rules stay. Rejects with UserError where bridged packets pass no rules. */
export async function runNetpol(options: NetpolOptions): Promise<void> {
  const { clock, log, signal, nodeName, table, syncPeriodMs, tracer } = options;
  const { run = exec } = options;
  // Of the network namespace in which nft runs.
  if ((await run('cat', [BRIDGES_ARE_FILTERED])).stdout.trim() !== '1') {
    throw new UserError(
      'packets between pods of one bridge pass no rules here: load br_netfilter and set net.bridge.bridge-nf-call-iptables=1',
    );
  }
  setMaxListeners(0, signal);
  const client = new ApiClient(options.access, { tracer, clock, userAgent: 'nodelet-netpol' });
  const watch = <T extends Identified>(what: string, path: string): Reflector<T> =>
    new Reflector<T>({
      client,
      path,
      clock,
      ...logWatch(what, log),
    });
  const pods = watch<Pod>('pods', resourcePath('v1', 'pods'));
  const namespaces = watch<Namespace>('namespaces', resourcePath('v1', 'namespaces'));
  const policies = watch<NetworkPolicy>('networkpolicies', resourcePath('networking.k8s.io/v1', 'networkpolicies'));
  const requests = new RestClientMetrics(new URL(options.access.server).host);
  tracer.subscribe(requests.take);
  const metrics = new NetpolMetrics(requests, clock.now());
  const server = options.metricsAddress === undefined ? undefined : await serveMetrics(options.metricsAddress, metrics);
  const nft = tracedExec(tracer, 'netfilter', run);
  const enforcer = new PolicyEnforcer({
    pods: pods.store,
    namespaces: namespaces.store,
    policies: policies.store,
    writer: new NftWriter({ table: `inet ${table}`, comment: `network policies of the node ${nodeName}`, run: nft }),
    ...{ metrics, clock, log, nodeName, syncPeriodMs },
    onFirstSync: options.onReady,
  });
  try {
    const watching = Promise.all([pods.run(signal), namespaces.run(signal), policies.run(signal)]);
    const synced = Promise.all([pods, namespaces, policies].map(({ store }) => store.whenSynced()));
    await Promise.race([synced, watching]);
    await Promise.all([watching, enforcer.run(signal)]);
  } finally {
    if (server !== undefined) closeServer(server);
    client.close();
  }
}

/** Rejects where the address is taken. */
function serveMetrics(address: string, metrics: NetpolMetrics): Promise<Server> {
  return listen((request, response) => {
    if (request.url?.split('?')[0] === '/metrics') respondMetrics(response, metrics.text());
    else response.writeHead(404).end();
  }, address);
}
