// The flags of `nodelet controlplane` that are single controllers' own, with kube-controller-manager's names, defaults and limits.

import { type Command, InvalidArgumentError } from 'commander';
import { cidrSetProblem } from '../../controlplane/controllers/node-ipam/cidr-set.ts';
import type { NodeIpamSettings } from '../../controlplane/controllers/node-ipam/node-ipam.ts';
import type { NodeLifecycleSettings } from '../../controlplane/controllers/node-lifecycle/node-lifecycle.ts';
import type { ControllerSettings } from '../../controlplane/controllers.ts';
import { UserError } from '../../lib/errors.ts';
import { parseRange, type Range } from '../../lib/ip-range.ts';
import { durationFlag } from './duration-flag.ts';

export interface ControllerFlags {
  readonly nodeMonitorGracePeriod?: number;
  readonly nodeStartupGracePeriod?: number;
  readonly nodeEvictionRate?: number;
  readonly secondaryNodeEvictionRate?: number;
  readonly unhealthyZoneThreshold?: number;
  readonly largeClusterSizeThreshold?: number;
  readonly terminatedPodGcThreshold?: number;
  readonly allocateNodeCidrs: boolean;
  readonly clusterCidr?: string;
  readonly serviceClusterIpRange?: string;
  readonly nodeCidrMaskSize?: number;
  readonly nodeCidrMaskSizeIpv4?: number;
  readonly nodeCidrMaskSizeIpv6?: number;
}

/** kube-controller-manager's. */
const MASK_SIZES = { 4: 24, 6: 64 } as const;

/** A number that is not negative. Throws InvalidArgumentError, which commander shows. */
export function rate(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || !Number.isFinite(value)) throw new InvalidArgumentError(`"${text}" is no rate.`);
  return value;
}

/** Throws InvalidArgumentError, which commander shows. */
export function count(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError(`"${text}" is no number of things.`);
  return Number(text);
}

export function controllerFlags(command: Command): Command {
  const duration = (flag: string, about: string): Command => {
    return command.option(`${flag} <duration>`, about, durationFlag(flag));
  };
  duration(
    '--node-monitor-grace-period',
    'how long a running node may be unresponsive before it is marked unhealthy (default: 50s)',
  );
  duration('--node-startup-grace-period', 'the same for a node that has not posted its status yet (default: 1m)');
  return command
    .option(
      '--node-eviction-rate <rate>',
      'nodes per second whose pods are evicted when they fail, in a healthy zone (default: 0.1)',
      rate,
    )
    .option(
      '--secondary-node-eviction-rate <rate>',
      'the same in an unhealthy zone, when it is large (default: 0.01)',
      rate,
    )
    .option(
      '--unhealthy-zone-threshold <fraction>',
      'fraction of the nodes of a zone that have to be not Ready for the zone to count as unhealthy (default: 0.55)',
      rate,
    )
    .option(
      '--large-cluster-size-threshold <nodes>',
      'number of nodes above which a zone is large (default: 50)',
      count,
    )
    .option(
      '--terminated-pod-gc-threshold <pods>',
      'number of terminated pods above which the pod garbage collector deletes the oldest; 0 deletes none (default: 12500)',
      count,
    )
    .option('--allocate-node-cidrs', 'assign each node a podCIDR from --cluster-cidr', false)
    .option('--cluster-cidr <ranges>', 'CIDR range of pods: one, or one of each IP family, comma-separated')
    .option('--service-cluster-ip-range <ranges>', 'CIDR range of Services: no node gets addresses of it')
    .option('--node-cidr-mask-size <bits>', "mask size of a node's podCIDR (default: 24, and 64 for IPv6)", count)
    .option('--node-cidr-mask-size-ipv4 <bits>', 'the same for IPv4 in a dual-stack cluster', count)
    .option('--node-cidr-mask-size-ipv6 <bits>', 'the same for IPv6 in a dual-stack cluster', count);
}

function ranges(flag: string, text: string): readonly Range[] {
  return text.split(',').map((each) => {
    const range = parseRange(each.trim());
    if (range === undefined) throw new UserError(`${flag}: invalid CIDR address: ${each}`);
    return range;
  });
}

/** Undefined without --allocate-node-cidrs. Throws UserError, mostly in upstream's words. */
export function nodeIpamSettings(flags: ControllerFlags): NodeIpamSettings | undefined {
  if (!flags.allocateNodeCidrs) return undefined;
  if (flags.clusterCidr === undefined) {
    throw new UserError('Controller: Must specify --cluster-cidr if --allocate-node-cidrs is set');
  }
  const cluster = ranges('--cluster-cidr', flags.clusterCidr);
  const isDual = new Set(cluster.map(({ family }) => family)).size === 2;
  if (cluster.length > 1 && !isDual) {
    throw new UserError(
      `len of ClusterCIDRs==${cluster.length} and they are not configured as dual stack (at least one from each IPFamily)`,
    );
  }
  if (cluster.length > 2) throw new UserError(`length of clusterCIDRs is:${cluster.length} more than max allowed of 2`);
  const sizes = maskSizes(flags, cluster);
  const blocks = cluster.map((range) => ({ range, prefix: sizes[range.family] }));
  for (const { range, prefix } of blocks) {
    const problem = cidrSetProblem(range, prefix);
    if (problem !== undefined) throw new UserError(problem);
  }
  const { serviceClusterIpRange } = flags;
  const services =
    serviceClusterIpRange === undefined ? [] : ranges('--service-cluster-ip-range', serviceClusterIpRange);
  return { cluster: blocks, services };
}

function maskSizes(flags: ControllerFlags, cluster: readonly Range[]): Readonly<Record<4 | 6, number>> {
  const { nodeCidrMaskSize: size, nodeCidrMaskSizeIpv4: size4, nodeCidrMaskSizeIpv6: size6 } = flags;
  if (size !== undefined && cluster.length > 1) {
    throw new UserError('usage of --node-cidr-mask-size is not allowed with dual-stack clusters');
  }
  if (size !== undefined && (size4 !== undefined || size6 !== undefined)) {
    throw new UserError(
      'usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags',
    );
  }
  if (size !== undefined) return { 4: size, 6: size };
  const [only] = cluster.length === 1 ? cluster : [];
  if (size4 !== undefined && only?.family === 6) {
    throw new UserError('usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster');
  }
  if (size6 !== undefined && only?.family === 4) {
    throw new UserError('usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster');
  }
  return { 4: size4 ?? MASK_SIZES[4], 6: size6 ?? MASK_SIZES[6] };
}

/** What the flags say, and nothing else. Throws UserError for flags that contradict each other. */
export function controllerSettings(flags: ControllerFlags): Omit<ControllerSettings, 'rootCa' | 'signing'> {
  const nodeLifecycle = {
    ...set('nodeMonitorGraceMs', flags.nodeMonitorGracePeriod),
    ...set('nodeStartupGraceMs', flags.nodeStartupGracePeriod),
    ...set('nodeEvictionRate', flags.nodeEvictionRate),
    ...set('secondaryNodeEvictionRate', flags.secondaryNodeEvictionRate),
    ...set('unhealthyZoneThreshold', flags.unhealthyZoneThreshold),
    ...set('largeClusterSizeThreshold', flags.largeClusterSizeThreshold),
  };
  const nodeIpam = nodeIpamSettings(flags);
  const { terminatedPodGcThreshold: terminatedPodThreshold } = flags;
  return {
    nodeLifecycle,
    ...(nodeIpam === undefined ? {} : { nodeIpam }),
    ...(terminatedPodThreshold === undefined ? {} : { terminatedPodThreshold }),
  };
}

function set(name: keyof NodeLifecycleSettings, value: number | undefined): Partial<NodeLifecycleSettings> {
  return value === undefined ? {} : { [name]: value };
}
