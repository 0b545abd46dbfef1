// The text of a pod's /etc/hosts. Pure; files.ts writes it.

import type { Pod } from '../../../client/types.ts';
import { podHostname } from './hostname.ts';

const HEADER = '# Kubernetes-managed hosts file.';
const HEADER_HOST_NETWORK = '# Kubernetes-managed hosts file (host network).';
const LOCAL = [
  '127.0.0.1\tlocalhost',
  '::1\tlocalhost ip6-localhost ip6-loopback',
  'fe00::0\tip6-localnet',
  'fe00::0\tip6-mcastprefix',
  'fe00::1\tip6-allnodes',
  'fe00::2\tip6-allrouters',
];

function aliasLines(pod: Pod): string[] {
  const aliases = pod.spec.hostAliases ?? [];
  if (aliases.length === 0) return [];
  return [
    '',
    '# Entries added by HostAliases.',
    ...aliases.map((alias) => [alias.ip, ...(alias.hostnames ?? [])].join('\t')),
  ];
}

/** `nodeHosts` is the text of the node's own file, which host-network pods get. */
export function hostsFileText(
  pod: Pod,
  podIPs: readonly string[],
  settings: { readonly clusterDomain: string; readonly nodeHosts: string },
): string {
  if (pod.spec.hostNetwork === true) {
    return `${[HEADER_HOST_NETWORK, settings.nodeHosts.trimEnd(), ...aliasLines(pod)].join('\n')}\n`;
  }
  const { hostname, domain } = podHostname(pod, settings.clusterDomain);
  const names = domain === '' ? hostname : `${hostname}.${domain}\t${hostname}`;
  return `${[HEADER, ...LOCAL, ...podIPs.map((ip) => `${ip}\t${names}`), ...aliasLines(pod)].join('\n')}\n`;
}
