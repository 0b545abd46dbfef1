// enforceNodeAllocatable, at the start: limits all pods together to the node's allocatable, and, where configured, the
// cgroups of the system and of Kubernetes' daemons to what is reserved for them. The operator makes those: a missing one
// is a configuration error and ends the agent. Knows nothing of pods.

import { errorMessage, UserError } from '../../lib/errors.ts';
import { quantityMilli, quantityValue } from '../../lib/quantity.ts';
import { type CgroupLayout, cgroupPath } from '../model/cgroup-names.ts';
import { nodeReference } from '../model/event-reference.ts';
import { cpuShares } from '../model/pod-resources.ts';
import type { EventRecorder } from '../ports/api.ts';
import type { CgroupLimits } from './cgroup-limits.ts';
import type { NodeCgroups } from './cgroups.ts';

export interface EnforcementConfig {
  readonly enforceNodeAllocatable: readonly string[];
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly systemReservedCgroup: string;
  readonly kubeReserved: Readonly<Record<string, string>>;
  readonly kubeReservedCgroup: string;
}

export interface ReservedCgroup {
  readonly kind: 'system' | 'kube';
  /** As the configuration names it. */
  readonly name: string;
  readonly path: string;
  readonly limits: CgroupLimits;
}

/** What is reserved, as a cgroup's figures. `compressible`: only what can be taken back without killing anyone, cpu. */
function limitsOf(reserved: Readonly<Record<string, string>>, compressible: boolean): CgroupLimits {
  const { cpu, memory, pid } = reserved;
  return {
    ...(cpu === undefined ? {} : { cpuShares: cpuShares(quantityMilli(cpu)) }),
    ...(memory === undefined || compressible ? {} : { memoryBytes: quantityValue(memory) }),
    ...(pid === undefined || compressible ? {} : { pids: quantityValue(pid) }),
  };
}

/** With the systemd driver a name may be that of the slice itself ("/system.slice") or a path of plain names. */
function pathOf(name: string, { driver }: CgroupLayout): string {
  const parts = name.split('/').filter((part) => part !== '');
  if (parts.some((part) => part.endsWith('.slice'))) return `/${parts.join('/')}`;
  return cgroupPath({ root: '/', driver }, parts);
}

/** The cgroups of system and Kubernetes daemons that are to be limited. Pure. */
export function reservedCgroups(config: EnforcementConfig, layout: CgroupLayout): readonly ReservedCgroup[] {
  const enforced = config.enforceNodeAllocatable;
  const rows = [
    { kind: 'system', name: config.systemReservedCgroup, reserved: config.systemReserved },
    { kind: 'kube', name: config.kubeReservedCgroup, reserved: config.kubeReserved },
  ] as const;
  return rows.flatMap(({ kind, name, reserved }) => {
    const compressible = enforced.includes(`${kind}-reserved-compressible`);
    if (!compressible && !enforced.includes(`${kind}-reserved`)) return [];
    return [{ kind, name, path: pathOf(name, layout), limits: limitsOf(reserved, compressible) }];
  });
}

const TITLE = { system: 'System', kube: 'Kube' } as const;

/** Rejects with UserError when such a cgroup cannot be limited. */
export async function enforceAllocatable(options: {
  readonly config: EnforcementConfig;
  readonly layout: CgroupLayout;
  readonly cgroups: Pick<NodeCgroups, 'ensureNode' | 'limitExisting'>;
  readonly nodeName: string;
  readonly recorder: EventRecorder;
}): Promise<void> {
  const { config, layout, cgroups, nodeName, recorder } = options;
  const event = (type: 'Normal' | 'Warning', reason: string, message: string): void =>
    recorder.event(nodeReference(nodeName), type, reason, message);
  await cgroups.ensureNode();
  if (config.enforceNodeAllocatable.includes('pods')) {
    event('Normal', 'NodeAllocatableEnforced', 'Updated Node Allocatable limit across pods');
  }
  for (const { kind, name, path, limits } of reservedCgroups(config, layout)) {
    try {
      await cgroups.limitExisting(path, limits);
    } catch (error) {
      const message = `Failed to enforce ${TITLE[kind]} Reserved Cgroup Limits on "${name}": ${errorMessage(error)}`;
      event('Warning', 'FailedNodeAllocatableEnforcement', message);
      throw new UserError(message);
    }
    event('Normal', 'NodeAllocatableEnforced', `Updated limits on ${kind} reserved cgroup ${name}`);
  }
}
