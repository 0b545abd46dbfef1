// The server with its kinds plugged in, and what `nodelet apiserver` runs: files at the lab's paths, kubeconfigs for
// every component, and a server until a signal stops it.

import { dirname, join } from 'node:path';
import { whenAborted } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { narrowMode } from '../lib/file-mode.ts';
import type { Tracer } from '../lib/trace.ts';
import type { PluginChoice } from './admission/table.ts';
import type { AuditOptions } from './audit/audit.ts';
import type { AuthOptions } from './auth/options.ts';
import type { Component } from './component-status.ts';
import { discovery } from './discovery/index.ts';
import type { RequestLimits } from './http/in-flight.ts';
import { RESOURCE_KINDS } from './kinds/index.ts';
import { RowTable } from './kinds/rows.ts';
import type { ApiServerOptions, EtcdOptions, Http2ServingOptions, RunningApiServer } from './options.ts';
import { writeKubeconfig } from './pki/kubeconfig.ts';
import type { ClientName, Pki } from './pki/types.ts';
import { checkBody } from './schema/decode.ts';
import { startApiServer as startWith } from './server.ts';
import { restoreStore } from './storage/restore.ts';

export type { ApiServerOptions, RunningApiServer } from './options.ts';
export { ensurePki } from './pki/ensure.ts';
export { writeKubeconfig } from './pki/kubeconfig.ts';
export { restoreStore } from './storage/restore.ts';

/** Starts the API server with every kind there is. Rejects with UserError: port taken, store in use. */
export function startApiServer(options: ApiServerOptions): Promise<RunningApiServer> {
  const kinds = new RowTable(RESOURCE_KINDS);
  return startWith(options, { kinds, checkBody, discovery: discovery(kinds) });
}

export interface LabApiServerOptions {
  /** The lab's directory: pki/, apiserver/store.db, kubeconfig and kubeconfigs/ are below it. */
  readonly root: string;
  readonly bindAddress: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** The host in the kubeconfigs; 127.0.0.1 where the server listens on every address. */
  readonly advertiseHost?: string;
  /** An IP address of this server for the rest of the cluster. */
  readonly advertiseAddress?: string;
  /** More names for the serving certificate. */
  readonly hosts?: readonly string[];
  readonly components?: readonly Component[];
  readonly nodeName?: string;
  readonly nodeAudiences?: readonly string[];
  readonly encryptionProviderConfig?: string;
  readonly encryptionReload?: boolean;
  readonly admission?: PluginChoice;
  readonly etcd?: EtcdOptions;
  readonly auth?: AuthOptions;
  readonly audit?: AuditOptions;
  readonly limits?: Partial<RequestLimits>;
  readonly http2?: Partial<Http2ServingOptions>;
  readonly serviceCidrs?: readonly string[];
  /** A snapshot to put in the store's place before the start. */
  readonly restore?: string;
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly log?: (line: string) => void;
}

/** Starts the server on a lab's files and writes the kubeconfigs, which name the port it got. */
export async function startLabApiServer(options: LabApiServerOptions): Promise<RunningApiServer> {
  const {
    root,
    advertiseHost,
    nodeName,
    nodeAudiences = [],
    encryptionProviderConfig,
    etcd,
    auth = {},
    log,
    hosts = [],
  } = options;
  const dbPath = join(root, 'apiserver', 'store.db');
  await narrowMode(dirname(dbPath));
  if (options.restore !== undefined) log?.(restoreStore(dbPath, options.restore, options.clock.now()));
  const server = await startApiServer({
    pkiDir: join(root, 'pki'),
    dbPath,
    address: options.bindAddress,
    port: options.port,
    hosts: advertiseHost === undefined ? hosts : [advertiseHost, ...hosts],
    ...(advertiseHost === undefined ? {} : { advertiseHost }),
    ...(options.advertiseAddress === undefined ? {} : { advertiseAddress: options.advertiseAddress }),
    components: options.components ?? [],
    ...(nodeName === undefined ? {} : { nodeName }),
    nodeAudiences,
    auth,
    ...(encryptionProviderConfig === undefined ? {} : { encryptionProviderConfig }),
    ...(options.encryptionReload === undefined ? {} : { encryptionReload: options.encryptionReload }),
    ...(options.admission === undefined ? {} : { admission: options.admission }),
    ...(etcd === undefined ? {} : { etcd }),
    ...(options.audit === undefined ? {} : { audit: options.audit }),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    ...(options.http2 === undefined ? {} : { http2: options.http2 }),
    ...(options.serviceCidrs === undefined ? {} : { serviceCidrs: options.serviceCidrs }),
    ...(log === undefined ? {} : { log }),
    tracer: options.tracer,
    clock: options.clock,
  });
  try {
    await writeKubeconfigs(root, server.pki, server.url);
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

const FILES: readonly { readonly file: string; readonly client: ClientName; readonly user: string }[] = [
  { file: 'kubeconfig', client: 'admin', user: 'kubernetes-admin' },
  { file: 'kubeconfigs/agent.kubeconfig', client: 'agent', user: 'agent' },
  { file: 'kubeconfigs/scheduler.kubeconfig', client: 'scheduler', user: 'scheduler' },
  { file: 'kubeconfigs/controller-manager.kubeconfig', client: 'controller-manager', user: 'controller-manager' },
  { file: 'kubeconfigs/proxy.kubeconfig', client: 'proxy', user: 'proxy' },
  { file: 'kubeconfigs/dns.kubeconfig', client: 'dns', user: 'dns' },
];

/** Writes <root>/kubeconfig (admin) and <root>/kubeconfigs/*.kubeconfig. */
export async function writeKubeconfigs(root: string, pki: Pki, server: string): Promise<void> {
  for (const { file, client, user } of FILES) {
    await writeKubeconfig(join(root, file), { server, ca: pki.ca.cert, user, client: pki.clients[client] });
  }
}

export interface RunApiServerOptions extends LabApiServerOptions {
  /** Ends the server. */
  readonly signal: AbortSignal;
  readonly onReady?: (server: RunningApiServer) => void;
}

/** Runs the server until `signal` aborts. Rejects with UserError when it cannot start. */
export async function runApiServer(options: RunApiServerOptions): Promise<void> {
  const server = await startLabApiServer(options);
  options.onReady?.(server);
  await whenAborted(options.signal);
  await server.close();
}
