// This machine as the agent finds it: its facts, its addresses, the cgroup driver, the cgroups of pods, and the settings
// that follow for sandboxes and containers. Part of the composition: it decides nothing.

import { UserError } from '../../lib/errors.ts';
import { resolvePath } from '../../lib/resolve-path.ts';
import type { CgroupLayout } from '../model/cgroup-names.ts';
import { chooseNodeIPs } from '../node/addresses.ts';
import { allocatableOf, capacityOf, type ResourceList } from '../node/capacity.ts';
import { createNodeCgroups, type NodeCgroups } from '../node/cgroups.ts';
import { enforceAllocatable } from '../node/enforce.ts';
import { gatherFacts, type MachineFacts } from '../node/facts.ts';
import { mayLowerOomScore } from '../node/oom-score.ts';
import { checkMachine } from '../node/requirements.ts';
import { createSystemdSlices, systemdRuns } from '../node/systemd-slices.ts';
import type { EventRecorder } from '../ports/api.ts';
import { askCgroupDriver } from '../runtime/cgroup-driver.ts';
import type { NodeSettings } from '../runtime/options.ts';
import type { AgentBase } from './base.ts';
import { cgroupLayout, nodeSettings, podsAllocatable } from './node-settings.ts';

export interface Machine {
  readonly facts: MachineFacts;
  /** Primary first. */
  readonly nodeIPs: readonly string[];
  readonly allocatable: ResourceList;
}

/** Rejects with UserError where no address can be chosen. */
export async function findMachine({ options }: AgentBase): Promise<Machine> {
  const { config, nodeName, rootDir } = options;
  const facts = await gatherFacts(rootDir, nodeName);
  return {
    facts,
    nodeIPs: chooseNodeIPs(options.nodeIPs, nodeName, facts.addresses),
    allocatable: allocatableOf(capacityOf(facts, config), config),
  };
}

export interface MachineCgroups {
  readonly layout: CgroupLayout;
  readonly cgroups: NodeCgroups;
  readonly settings: NodeSettings;
}

/** Rejects with UserError where the configuration requires what this machine lacks. */
export async function createCgroups(
  base: AgentBase,
  { facts }: Machine,
  recorder: EventRecorder,
): Promise<MachineCgroups> {
  const { options, clock, tracer, log, exec } = base;
  const { config, nodeName } = options;
  const layout = cgroupLayout(options, await askCgroupDriver(options.containerRuntimeEndpoint, tracer));
  if (layout.driver !== config.cgroupDriver) {
    log('info', 'Using cgroup driver setting received from the CRI runtime', {
      cgroupDriver: layout.driver,
      configured: config.cgroupDriver,
    });
  }
  if (layout.driver === 'systemd' && !systemdRuns()) {
    throw new UserError('cgroupDriver is systemd, and systemd does not run on this machine: use cgroupfs');
  }
  const cgroups = createNodeCgroups({
    layout,
    tracer,
    clock,
    ...(layout.driver === 'systemd' ? { slices: createSystemdSlices({ tracer, run: exec }) } : {}),
    // What eviction keeps free is not cut off by the kernel: pods are ended before they get there.
    allocatable: podsAllocatable(allocatableOf(capacityOf(facts, config), { ...config, evictionHard: {} })),
    enforceNodeAllocatable: config.enforceNodeAllocatable.includes('pods'),
    cpuCFSQuota: config.cpuCFSQuota,
    cpuCFSQuotaPeriodUs: config.cpuCFSQuotaPeriod * 1000,
    podPidsLimit: config.podPidsLimit,
  });
  checkMachine(config, { swapBytes: facts.swapBytes, cgroupVersion: cgroups.version });
  await enforceAllocatable({ config, layout, cgroups, nodeName, recorder });
  if (!mayLowerOomScore()) {
    log('warn', 'CAP_SYS_RESOURCE is missing: OOM scores are not lowered, containers keep the one they start with');
  }
  const settings = { ...nodeSettings(options, facts, layout, cgroups), podLogsDir: resolvePath(config.podLogsDir) };
  return { layout, cgroups, settings };
}
