// Graceful node shutdown, put together for this machine. Part of the composition root: decides nothing.

import { systemdRuns } from '../node/systemd-slices.ts';
import type { NodeShutdownOptions } from '../shutdown/node-shutdown.ts';
import { shutdownGroups } from '../shutdown/plan.ts';
import type { AgentBase } from './base.ts';

/** Undefined where nothing is configured, or the machine has no systemd. */
export async function createShutdown(
  { options, clock, exec, tracer, log }: AgentBase,
  parts: Pick<NodeShutdownOptions, 'pods' | 'state' | 'recorder'>,
): Promise<{ run(signal: AbortSignal): Promise<void>; close(): Promise<void> } | undefined> {
  const { shutdownGracePeriod, shutdownGracePeriodCriticalPods, shutdownGracePeriodByPodPriority } = options.config;
  const groups = shutdownGroups({
    shutdownGracePeriod,
    shutdownGracePeriodCriticalPods,
    shutdownGracePeriodByPodPriority,
  });
  if (groups.length === 0) return undefined;
  if (!systemdRuns()) {
    log('warn', 'shutdownGracePeriod is set, and systemd does not run here: a shutdown does not wait for pods');
    return undefined;
  }
  const [{ NodeShutdown }, { createLogind }] = await Promise.all([
    import('../shutdown/node-shutdown.ts'),
    import('../shutdown/logind.ts'),
  ]);
  const logind = createLogind({ exec, tracer, clock, log });
  const manager = new NodeShutdown({ ...parts, logind, groups, nodeName: options.nodeName, clock, log });
  return { run: (signal) => manager.run(signal), close: () => logind.close() };
}
