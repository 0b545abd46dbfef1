// PodSandboxConfig: RunPodSandbox's request for a pod. Pure.

import type { Container, Pod } from '../../../client/types.ts';
import type { EpochMs } from '../../../lib/clock.ts';
import { isSidecar } from '../../../lib/sidecar.ts';
import type { PodSandboxConfig } from '../../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { PortMapping } from '../../../proto/gen/runtime/v1/PortMapping.ts';
import { cgroupParent } from '../../model/cgroup-names.ts';
import { normalizeSysctl } from '../../model/sysctl-name.ts';
import type { NodeSettings } from '../options.ts';
import { podResolvConf, type ResolvConf } from './dns.ts';
import { kernelHostname } from './hostname.ts';
import { sandboxAnnotations, sandboxLabels } from './labels.ts';
import type { IdRange } from './namespaces.ts';
import { podLogsDirectory } from './paths.ts';
import { sandboxResources } from './resources.ts';
import { sandboxSecurity } from './security.ts';

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;

function containerPorts(container: Container): PortMapping[] {
  return (container.ports ?? []).flatMap((port) => {
    const protocol = PROTOCOLS.find((known) => known === (port.protocol ?? 'TCP'));
    if (protocol === undefined) return [];
    return [
      {
        protocol,
        container_port: port.containerPort,
        host_port: port.hostPort ?? 0,
        host_ip: port.hostIP ?? '',
      },
    ];
  });
}

/**
 * Ports of everything that runs for the pod's whole life, also of a pod on the host's network, which the runtime maps
 * nowhere; the same mapping named twice counts once. Kubelets up to 1.34 leave sidecars out, whose host ports then lead
 * nowhere although the scheduler keeps them free.
 */
export function portMappings(pod: Pod): PortMapping[] {
  const lasting = [...(pod.spec.initContainers ?? []).filter(isSidecar), ...pod.spec.containers];
  const byKey = new Map<string, PortMapping>();
  for (const mapping of lasting.flatMap(containerPorts)) {
    const key = `${mapping.protocol}/${mapping.container_port}/${mapping.host_port}/${mapping.host_ip}`;
    if (!byKey.has(key)) byKey.set(key, mapping);
  }
  return [...byKey.values()];
}

export interface SandboxContext {
  readonly node: NodeSettings;
  /** The node's resolv.conf, parsed; undefined when pods inherit none. */
  readonly resolvConf: ResolvConf | undefined;
  readonly userns: IdRange | undefined;
  /** When the pod was first seen, epoch ms. */
  readonly seenAt: EpochMs;
}

/** Throws RangeError when the pod's host name is not possible. */
export function podSandboxConfig(pod: Pod, attempt: number, context: SandboxContext): PodSandboxConfig {
  const { node } = context;
  const { metadata, spec } = pod;
  const dns = podResolvConf(pod, { servers: node.clusterDNS, domain: node.clusterDomain }, context.resolvConf);
  const sysctls = Object.fromEntries(
    (spec.securityContext?.sysctls ?? []).map(({ name, value }) => [normalizeSysctl(name), value]),
  );
  return {
    metadata: { name: metadata.name, uid: metadata.uid, namespace: metadata.namespace, attempt },
    ...(spec.hostNetwork === true ? {} : { hostname: kernelHostname(pod, node.clusterDomain) }),
    log_directory: podLogsDirectory(node.podLogsDir, metadata),
    dns_config: { servers: [...dns.servers], searches: [...dns.searches], options: [...dns.options] },
    port_mappings: portMappings(pod),
    labels: sandboxLabels(pod),
    annotations: sandboxAnnotations(pod, context.seenAt),
    linux: {
      cgroup_parent: cgroupParent(node.cgroups, pod),
      security_context: sandboxSecurity(pod, context.userns),
      sysctls,
      ...sandboxResources(pod, node),
    },
  };
}
