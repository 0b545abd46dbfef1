// Which kernel parameters a pod may set: the safe ones of this kernel, and those the operator allows
// (allowedUnsafeSysctls). Pure.

import type { Pod } from '../../client/types.ts';
import { UserError } from '../../lib/errors.ts';
import { normalizeSysctl } from '../model/sysctl-name.ts';

type Namespace = 'IPC' | 'Net';

/** Parameters that are safe for every pod, with the kernel from which they belong to a namespace. */
const SAFE: readonly (readonly [name: string, since?: string])[] = [
  ['kernel.shm_rmid_forced'],
  ['net.ipv4.ip_local_port_range'],
  ['net.ipv4.tcp_syncookies'],
  ['net.ipv4.ping_group_range'],
  ['net.ipv4.ip_unprivileged_port_start'],
  ['net.ipv4.ip_local_reserved_ports', '3.16'],
  ['net.ipv4.tcp_keepalive_time', '4.5'],
  ['net.ipv4.tcp_fin_timeout', '4.6'],
  ['net.ipv4.tcp_keepalive_intvl', '4.5'],
  ['net.ipv4.tcp_keepalive_probes', '4.5'],
  ['net.ipv4.tcp_rmem', '4.15'],
  ['net.ipv4.tcp_wmem', '4.15'],
];

function atLeast(kernel: string, since: string): boolean {
  const [major = 0, minor = 0] = kernel.split(/[.-]/).map(Number);
  const [wantMajor = 0, wantMinor = 0] = since.split('.').map(Number);
  return major > wantMajor || (major === wantMajor && minor >= wantMinor);
}

export function safeSysctls(kernelVersion: string): readonly string[] {
  return SAFE.flatMap(([name, since]) => (since === undefined || atLeast(kernelVersion, since) ? [name] : []));
}

/** The kernel namespace that a parameter, or everything beginning with this prefix, belongs to. */
function namespaceOf(name: string): Namespace | undefined {
  if (name === 'kernel.sem') return 'IPC';
  if (['kernel.shm', 'kernel.msg', 'fs.mqueue.'].some((prefix) => name.startsWith(prefix))) return 'IPC';
  return name.startsWith('net.') ? 'Net' : undefined;
}

/** "net.core.somaxconn" or "kernel.msg*". */
interface Pattern {
  readonly name: string;
  readonly prefix: boolean;
  readonly namespace: Namespace;
}

/** Throws UserError for a pattern that is none, or that could touch what all pods share. */
export function sysctlPatterns(kernelVersion: string, allowedUnsafeSysctls: readonly string[]): readonly Pattern[] {
  return [...safeSysctls(kernelVersion), ...allowedUnsafeSysctls].map((pattern) => {
    if (!/^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]$/.test(pattern)) {
      throw new UserError(
        `allowedUnsafeSysctls: "${pattern}" is not the name of a sysctl or a prefix that ends with *`,
      );
    }
    const prefix = pattern.endsWith('*');
    const name = normalizeSysctl(prefix ? pattern.slice(0, -1) : pattern);
    const namespace = namespaceOf(name);
    if (namespace === undefined) {
      throw new UserError(`allowedUnsafeSysctls: the sysctls "${pattern}" are not known to be namespaced`);
    }
    return { name, prefix, namespace };
  });
}

export function refuseSysctls(
  { spec }: Pod,
  patterns: readonly Pattern[],
): { readonly reason: string; readonly message: string } | undefined {
  for (const { name } of spec.securityContext?.sysctls ?? []) {
    const problem = sysctlProblem(normalizeSysctl(name), spec, patterns);
    if (problem !== undefined) return { reason: 'SysctlForbidden', message: `forbidden sysctl: ${problem}` };
  }
  return undefined;
}

function sysctlProblem(name: string, spec: Pod['spec'], patterns: readonly Pattern[]): string | undefined {
  const exact = patterns.find((pattern) => !pattern.prefix && pattern.name === name);
  const found = exact ?? patterns.find((pattern) => pattern.prefix && name.startsWith(pattern.name));
  if (found === undefined) return `"${name}" not allowlisted`;
  const shared = found.namespace === 'IPC' ? spec.hostIPC === true : spec.hostNetwork === true;
  return shared ? `"${name}" not allowed with host ${found.namespace} enabled` : undefined;
}
