// How the agent of a simulated world is configured: what a KubeletConfiguration comes to there, and the parts of the agent
// that talk to the simulated cluster by themselves. Builds and decides nothing else.

import { createApiObjects } from '../../../agent/api/api-objects.ts';
import type { KubeletConfiguration } from '../../../agent/config/kubelet-fields.ts';
import { restartBackoffPolicy } from '../../../agent/pods/restart-backoff.ts';
import { shutdownGroups } from '../../../agent/shutdown/plan.ts';
import { EVENT_DELAY_MS, Recorder } from '../../../client/recorder.ts';
import type { SimAgentOptions } from '../../../labs/sim/agent.ts';
import { NODE_CONFIG, NODE_NAME } from '../../../labs/sim/node-facts.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Log } from '../../../lib/log.ts';
import type { Tracer } from '../../../lib/trace.ts';
import type { WorldSpec } from '../model.ts';
import { evictionOf, probeRunnersOf, tracedApi } from './agent-parts.ts';
import type { ExperimentMachine } from './machine.ts';

/** KubeletConfiguration's default; the simulated machine's own file is another. */
export const RESOLV_CONF = '/etc/resolv.conf';

export interface AgentSetting {
  readonly machine: ExperimentMachine;
  readonly config: KubeletConfiguration;
  readonly spec: WorldSpec;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly log: Log;
}

export interface ConfiguredAgent {
  readonly options: SimAgentOptions;
  /** What of it has to end with the agent. */
  readonly close: () => void;
}

export function configureAgent({ machine, config, spec, clock, tracer, log }: AgentSetting): ConfiguredAgent {
  const random = (): number => machine.dice.next();
  const closing: (() => void)[] = [];
  let recorder: Recorder | undefined;
  const objects: SimAgentOptions['objects'] = (life, agentClock) => {
    const client = life.port(tracedApi(machine.cluster, tracer));
    const who = { component: 'kubelet', host: NODE_NAME, delayMs: EVENT_DELAY_MS };
    recorder = new Recorder({ client, clock: agentClock, tracer, random, ...who });
    const changeDetection = config.configMapAndSecretChangeDetectionStrategy;
    const reader = createApiObjects({ client, clock: agentClock, random, changeDetection });
    closing.push(
      () => reader.stop(),
      () => recorder?.close(),
    );
    // Services are names that DNS knows: there is no proxy, and containers get no variables of them.
    return Object.assign(reader, { services: () => Promise.resolve([]) });
  };
  const groups = shutdownGroups(config);
  const options: SimAgentOptions = {
    tracer,
    traceCalls: true,
    log: () => log,
    recorder: { event: (...event) => recorder?.event(...event) },
    objects,
    probeRunners: probeRunnersOf(machine, clock),
    pods: {
      serializeImagePulls: config.serializeImagePulls,
      maxParallelImagePulls: config.maxParallelImagePulls ?? 0,
      resyncMs: config.syncFrequency,
      runtimeRequestTimeoutMs: config.runtimeRequestTimeout,
      restartBackoff: restartBackoffPolicy(config.crashLoopBackOff.maxContainerRestartPeriod),
    },
    eviction: evictionOf(config),
    images: config,
    nodeConfig: {
      ...NODE_CONFIG,
      nodeStatusUpdateFrequency: config.nodeStatusUpdateFrequency,
      nodeStatusReportFrequency: config.nodeStatusReportFrequency,
      nodeLeaseDurationSeconds: config.nodeLeaseDurationSeconds,
      maxPods: spec.capacity?.pods ?? config.maxPods,
    },
    settings: {
      clusterDNS: config.clusterDNS,
      clusterDomain: config.clusterDomain,
      resolvConf: config.resolvConf === '' ? '' : machine.resolvConf,
    },
    ...(groups.length === 0 ? {} : { shutdown: { logind: machine.logind, groups } }),
  };
  return {
    options,
    close: () => {
      for (const close of closing) close();
    },
  };
}
