// What the kubelet's HTTPS API has to be given. Types only.

import type { ReviewClient } from '../../client/reviews.ts';
import type { Pod, PodStatus } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ConnectionTimeouts } from '../../lib/connection-guard.ts';
import type { ConnectionLimits } from '../../lib/connection-limits.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { AgentOptions } from '../config/options.ts';
import type { LogReader, LogWriter } from '../ports/logs.ts';
import type { ContainerId, ContainerRuntime, PodSnapshot, PodUID } from '../ports/runtime.ts';
import type { OwnPages, UsagePages } from '../ports/stats.ts';
import type { NodeLogs } from './node-logs.ts';

/** The pods as their workers see them; PodsAgent has this shape. */
export interface ServedPods {
  getPod(namespace: string, name: string): Pod | undefined;
  listPods(): readonly Pod[];
  statusOf(uid: PodUID): PodStatus | undefined;
  snapshotOf(uid: PodUID): PodSnapshot | undefined;
  /** The newest instance of a container (the one before it with `previous`), running or dead. */
  containerIdFor(
    namespace: string,
    name: string,
    container: string,
    options?: { readonly previous?: boolean },
  ): ContainerId | undefined;
}

export interface KubeletServerOptions {
  readonly options: Pick<AgentOptions, 'nodeName' | 'nodeIPs' | 'certDir' | 'config'>;
  readonly pods: ServedPods;
  readonly runtime: Pick<ContainerRuntime, 'execUrl' | 'attachUrl' | 'portForwardUrl' | 'listPods'> & LogWriter;
  readonly logs: LogReader;
  /** The node's log directory, /var/log, and what reads its journal. */
  readonly nodeLogs: Pick<NodeLogs, 'directory' | 'exec'>;
  /** What the machine and its pods use. */
  readonly usage: UsagePages;
  /** What the agent does. */
  readonly own: OwnPages;
  /** For TokenReview and SubjectAccessReview; absent in standalone mode, where only client certificates count. */
  readonly reviews?: ReviewClient;
  /** /healthz/syncloop: undefined is healthy, else why not. */
  readonly syncLoopHealth?: () => string | undefined;
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** For tests; by default as many connections as the process's descriptors allow, and the usual time-outs. */
  readonly connections?: { readonly limits?: ConnectionLimits; readonly timeouts?: Partial<ConnectionTimeouts> };
  readonly log?: (level: 'debug' | 'info' | 'warn' | 'error', message: string) => void;
}

export interface KubeletServer {
  /** Binds the configured address and port. Rejects with UserError when the port is taken or the certificate unusable. */
  listen(): Promise<void>;
  /** The port in use; 0 before `listen`. */
  readonly port: number;
  /** PEM of the serving certificate; '' before `listen`. */
  readonly certificate: string;
  /** Stops listening and ends every connection, streams too. Idempotent. */
  close(): Promise<void>;
}
