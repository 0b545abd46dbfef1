// Graceful node shutdown, put together for this machine. Part of the composition root: decides nothing.

import type { Clock } from '../lib/clock.ts';
import type { Exec } from '../lib/exec.ts';
import type { Log } from '../lib/log.ts';
import type { AgentOptions } from './config/options.ts';
import type { EventRecorder } from './ports/api.ts';
import type { NodeShutdown, NodeShutdownOptions } from './shutdown/node-shutdown.ts';
import { shutdownGroups } from './shutdown/plan.ts';

export interface NodeShutdownParts extends Pick<NodeShutdownOptions, 'pods' | 'onChange'> {
  readonly options: AgentOptions;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly exec: Exec;
  readonly log: Log;
  readonly systemd: boolean;
}

/** Undefined where nothing is configured, or the machine has no systemd to ask. */
export async function createNodeShutdown(
  parts: NodeShutdownParts,
): Promise<{ readonly manager: NodeShutdown; close(): Promise<void> } | undefined> {
  const { options, clock, exec, log } = parts;
  const { shutdownGracePeriod, shutdownGracePeriodCriticalPods, shutdownGracePeriodByPodPriority } = options.config;
  const groups = shutdownGroups({
    shutdownGracePeriod,
    shutdownGracePeriodCriticalPods,
    shutdownGracePeriodByPodPriority,
  });
  if (groups.length === 0) return undefined;
  if (!parts.systemd) {
    log('warn', 'shutdownGracePeriod is set, and systemd does not run here: pods end as hard as the machine does');
    return undefined;
  }
  const [{ NodeShutdown }, { createLogind }] = await Promise.all([
    import('./shutdown/node-shutdown.ts'),
    import('./shutdown/logind.ts'),
  ]);
  const logind = createLogind({ exec, clock, log });
  const { pods, onChange, recorder } = parts;
  const manager = new NodeShutdown({
    logind,
    groups,
    pods,
    recorder,
    nodeName: options.nodeName,
    clock,
    log,
    onChange,
  });
  return { manager, close: () => logind.close() };
}
