// RunPodSandbox's request as what Docker is to create, and what it says of a sandbox as CRI's messages. Pure.

import type { ContainerCreateOptions, ContainerInspectInfo } from 'dockerode';
import type { DNSConfig__Output } from '../../proto/gen/runtime/v1/DNSConfig.ts';
import type { PodSandbox } from '../../proto/gen/runtime/v1/PodSandbox.ts';
import type { PodSandboxConfig__Output } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { PodSandboxState__Output } from '../../proto/gen/runtime/v1/PodSandboxState.ts';
import type { PodSandboxStatus } from '../../proto/gen/runtime/v1/PodSandboxStatus.ts';
import { CriError, invalid, unsupported } from '../errors.ts';
import { encodeRecord, type SandboxRecord, sandboxName } from '../records.ts';
import type { DockerFacts } from './facts.ts';
import { checkNamespaces, sandboxSecurity, userOf } from './security.ts';

/** The pause process ends last, and costs next to no CPU: the kubelet's and containerd's figures. */
const PAUSE_OOM_SCORE_ADJ = -998;
const PAUSE_CPU_SHARES = 2;

export interface SandboxContext {
  readonly facts: DockerFacts;
  /** The sandbox image's name. */
  readonly image: string;
  readonly runtimeHandler: string;
  /** ns. */
  readonly createdAt: string;
  /** The text of the seccomp profile, where the sandbox names a file. */
  readonly seccomp?: string | undefined;
}

export function isHostNetwork(record: Pick<SandboxRecord, 'namespaces'>): boolean {
  return record.namespaces?.network === 'NODE';
}

/** OCI's runtime of a handler; '' is Docker's default one. */
function runtimeOf(handler: string, facts: DockerFacts): { Runtime?: string } {
  if (handler === '') return {};
  if (!facts.runtimes.has(handler)) {
    throw new CriError('INVALID_ARGUMENT', `failed to get sandbox runtime: no runtime for "${handler}" is configured`);
  }
  return { Runtime: handler };
}

/** CRI's cgroup parent as Docker's driver takes it: a path, or the name of a systemd slice. */
export function cgroupParentOf(parent: string, { cgroupDriver }: DockerFacts): { CgroupParent?: string } {
  if (parent === '') return {};
  const last = parent.slice(parent.lastIndexOf('/') + 1);
  if (cgroupDriver === 'cgroupfs') return { CgroupParent: parent };
  if (!last.endsWith('.slice')) {
    throw invalid('linux.cgroup_parent', `"${parent}" is no slice, and Docker's cgroup driver is systemd`);
  }
  return { CgroupParent: last };
}

export function sandboxRecord(config: PodSandboxConfig__Output, context: SandboxContext): SandboxRecord {
  if (config.metadata === null) throw invalid('config.metadata', 'missing');
  return {
    kind: 'sandbox',
    metadata: config.metadata,
    labels: config.labels,
    annotations: config.annotations,
    createdAt: context.createdAt,
    runtimeHandler: context.runtimeHandler,
    namespaces: config.linux?.security_context?.namespace_options ?? null,
    logDirectory: config.log_directory,
    portMappings: config.port_mappings,
  };
}

/** The pause container. Throws CriError for what Docker cannot do. */
export function sandboxOptions(config: PodSandboxConfig__Output, context: SandboxContext): ContainerCreateOptions {
  const { facts } = context;
  if (config.windows !== null) throw unsupported('windows', 'this is Linux');
  const record = sandboxRecord(config, context);
  const security = config.linux?.security_context ?? null;
  checkNamespaces(record.namespaces);
  const host = isHostNetwork(record);
  return {
    name: sandboxName(record.metadata),
    Image: context.image,
    Labels: encodeRecord(record),
    User: userOf(security),
    // On the host's network the name is the host's as well.
    ...(host || config.hostname === '' ? {} : { Hostname: config.hostname }),
    HostConfig: {
      ...sandboxSecurity(security, facts, context.seccomp),
      ...cgroupParentOf(config.linux?.cgroup_parent ?? '', facts),
      ...runtimeOf(context.runtimeHandler, facts),
      // Docker makes an empty network namespace, and CNI fills it.
      NetworkMode: host ? 'host' : 'none',
      UTSMode: host ? 'host' : '',
      IpcMode: record.namespaces?.ipc === 'NODE' ? 'host' : 'shareable',
      PidMode: record.namespaces?.pid === 'NODE' ? 'host' : '',
      Sysctls: config.linux?.sysctls ?? {},
      ReadonlyRootfs: true,
      CpuShares: PAUSE_CPU_SHARES,
      OomScoreAdj: Math.max(PAUSE_OOM_SCORE_ADJ, facts.minOomScoreAdj),
      LogConfig: { Type: 'none', Config: {} },
      RestartPolicy: { Name: 'no' },
    },
  };
}

/** resolv.conf of a sandbox; undefined where it is to have the node's. */
export function resolvConf(dns: DNSConfig__Output | null): string | undefined {
  if (dns === null) return undefined;
  const { searches, servers, options } = dns;
  if (searches.length + servers.length + options.length === 0) return undefined;
  const lines = [
    ...(searches.length === 0 ? [] : [`search ${searches.join(' ')}`]),
    ...servers.map((server) => `nameserver ${server}`),
    ...(options.length === 0 ? [] : [`options ${options.join(' ')}`]),
  ];
  return `${lines.join('\n')}\n`;
}

/** Ready: its process runs, and its network was set up to the end. */
export function sandboxState(running: boolean, hostNetwork: boolean, attached: boolean): PodSandboxState__Output {
  return running && (hostNetwork || attached) ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY';
}

export function listedSandbox(id: string, record: SandboxRecord, state: PodSandboxState__Output): PodSandbox {
  return {
    id,
    metadata: record.metadata,
    state,
    created_at: record.createdAt,
    labels: record.labels,
    annotations: record.annotations,
    runtime_handler: record.runtimeHandler,
  };
}

export function sandboxStatus(
  id: string,
  record: SandboxRecord,
  state: PodSandboxState__Output,
  addresses: readonly string[],
): PodSandboxStatus {
  const [ip = '', ...others] = state === 'SANDBOX_READY' ? addresses : [];
  return {
    ...listedSandbox(id, record, state),
    network: { ip, additional_ips: others.map((address) => ({ ip: address })) },
    linux: { namespaces: { options: record.namespaces } },
  };
}

export const isRunning = (inspected: Pick<ContainerInspectInfo, 'State'>): boolean => inspected.State.Running;
