// The requests of the floor: the very ones that the agent sent for a pod, as containerd recorded them, under another
// name. Pure; copying what the mounts show is the caller's.

import type { ContainerConfig } from '../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { PodSandboxConfig } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';

/** What containerd was asked for. */
export interface FloorTemplate {
  readonly sandbox: PodSandboxConfig;
  readonly container: ContainerConfig;
}

export interface FloorPlace {
  /** Name, uid and host name of the pod. */
  readonly name: string;
  readonly logDirectory: string;
  /** The cgroup below which the template's path of cgroups is made again, by runc. */
  readonly cgroupRoot: string;
  /** Where the copy of a host path of the template's lies. */
  readonly copyOf: (hostPath: string) => string;
}

/** `info["info"]` of a verbose PodSandboxStatus or ContainerStatus of containerd's. */
export interface RecordedInfo<Config> {
  readonly config: Config;
  /** Of a container. */
  readonly sandboxID?: string;
}

/** Throws when containerd reports no config. */
export function recordedInfo<Config>(info: Readonly<Record<string, string>>): RecordedInfo<Config> {
  const parsed: unknown = JSON.parse(info['info'] ?? '{}');
  if (typeof parsed !== 'object' || parsed === null || !('config' in parsed)) {
    throw new Error('containerd reports no config: its verbose status has no info.config');
  }
  return parsed as RecordedInfo<Config>;
}

/** The template's requests for another pod; everything that costs the runtime work stays as it was. */
export function floorRequests({ sandbox, container }: FloorTemplate, place: FloorPlace) {
  const { name } = place;
  const sandboxConfig: PodSandboxConfig = {
    ...sandbox,
    metadata: { ...sandbox.metadata, name, uid: `${name}-uid` },
    hostname: name,
    log_directory: place.logDirectory,
    linux: { ...sandbox.linux, cgroup_parent: `${place.cgroupRoot}/kubepods/besteffort/pod${name}` },
  };
  const config: ContainerConfig = {
    ...container,
    mounts: (container.mounts ?? []).map((mount) => ({ ...mount, host_path: place.copyOf(mount.host_path ?? '') })),
  };
  return { sandboxConfig, config };
}

/** The least that CRI takes for a pod: no seccomp profile, no DNS, no mounts. What a kubelet's own requests cost beyond it. */
export function bareTemplate({ container }: FloorTemplate): FloorTemplate {
  const options = { network: 'POD', pid: 'CONTAINER', ipc: 'POD' } as const;
  return {
    sandbox: {
      metadata: { name: '', uid: '', namespace: 'bench', attempt: 0 },
      linux: { security_context: { namespace_options: options } },
    },
    container: {
      metadata: { name: container.metadata?.name ?? '', attempt: 0 },
      ...(container.image == null ? {} : { image: container.image }),
      ...(container.command == null ? {} : { command: container.command }),
      ...(container.log_path == null ? {} : { log_path: container.log_path }),
      linux: { resources: { cpu_shares: 2, oom_score_adj: 1000 }, security_context: { namespace_options: options } },
    },
  };
}
