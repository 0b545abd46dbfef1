// What the CRI adapter has to know: where the runtime is, and the node's settings that go into sandbox and
// container configs. Types only.

import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { CgroupLayout } from '../model/cgroup-names.ts';
import type { SandboxId } from '../ports/runtime.ts';
import type { CriClient } from './cri-client.ts';

/** Settings of the node, by the KubeletConfiguration's names where it has them. */
export interface NodeSettings {
  /** The agent's own root: pods/<uid>/… is below. */
  readonly rootDir: string;
  /** /var/log/pods by default. */
  readonly podLogsDir: string;
  /** /var/log/containers by default: where the links that log shippers follow are made. */
  readonly containerLogsDir: string;
  readonly cgroups: CgroupLayout;
  readonly cgroupVersion: 1 | 2;
  /** Whether the kernel limits a cgroup's swap (memory.swap.max of v2, memory.memsw.limit_in_bytes of v1). */
  readonly swapController: boolean;
  /** Whether SELinux is on. */
  readonly selinux: boolean;
  readonly clusterDNS: readonly string[];
  readonly clusterDomain: string;
  /** KubeletConfiguration.resolvConf; '' means that pods inherit nothing. */
  readonly resolvConf: string;
  readonly seccompDefault: boolean;
  /** Directory of Localhost seccomp profiles: `<kubelet root>/seccomp`. */
  readonly seccompProfileRoot: string;
  readonly cpuCFSQuota: boolean;
  /** µs; 100000 by default. */
  readonly cpuCFSQuotaPeriodUs: number;
  /** Bytes of memory the machine has, for oom_score_adj. */
  readonly memoryCapacityBytes: number;
  /** Sizes of huge pages on this machine as CRI names them ("2MB", "1GB"), in the order of the kernel's directory. */
  readonly hugepageSizes: readonly string[];
}

/** How events reach us; `auto` probes. */
export type EventSource = 'cri' | 'containerd' | 'poll';

export interface CriRuntimeOptions {
  /** `unix:///run/containerd/containerd.sock`, or the bare path. */
  readonly endpoint: string;
  /** Defaults to `endpoint`. */
  readonly imageEndpoint?: string;
  /** Instead of a connection to the endpoints: the simulator's runtime. */
  readonly client?: CriClient;
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly node: NodeSettings;
  /** Deadline of ordinary calls, ms; runtimeRequestTimeout, 2 min by default. */
  readonly requestTimeoutMs?: number;
  /** Period of the safety-net relist while an event stream serves, ms; up to six times that where nothing happens. Default 10 s. */
  readonly relistPeriodMs?: number;
  /** Use this source of events instead of probing. */
  readonly eventSource?: EventSource;
  /** Addresses that a sandbox was given outside the runtime, where they are known: one question less for each pod. */
  readonly addressesOf?: (sandbox: SandboxId) => readonly string[] | undefined;
  /** Called with errors that no caller gets: a broken event stream, a failed relist. */
  readonly onTrouble?: (message: string) => void;
  /** Called when the runtime's pods were listed, with success. */
  readonly onRelist?: (durationMs: number) => void;
  /** Records a Warning event of a pod's sandbox, or once of the node. */
  readonly onWarning?: (of: Pod | 'node', reason: string, message: string) => void;
}
