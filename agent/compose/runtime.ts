// The container runtime over CRI, the rotation of container logs, and a log line on the runtime's features. Part of
// the composition: it decides nothing.

import { errorMessage } from '../../lib/errors.ts';
import { quantityValue } from '../../lib/quantity.ts';
import { nodeReference, podReference } from '../model/event-reference.ts';
import type { EventRecorder } from '../ports/api.ts';
import { createCriRuntime } from '../runtime/cri-runtime.ts';
import { LogRotation } from '../runtime/logs/rotation.ts';
import type { CriRuntime } from '../runtime/types.ts';
import type { AgentBase } from './base.ts';
import type { MachineCgroups } from './machine.ts';
import type { AgentMetrics } from './metrics.ts';
import type { Network } from './network.ts';

export function createRuntime(
  { options, clock, tracer, log }: AgentBase,
  parts: MachineCgroups & {
    readonly network: Network;
    readonly recorder: EventRecorder;
    readonly metrics: AgentMetrics;
  },
): CriRuntime {
  const { network, recorder, settings } = parts;
  return createCriRuntime({
    endpoint: options.containerRuntimeEndpoint,
    imageEndpoint: options.imageServiceEndpoint,
    tracer,
    clock,
    node: settings,
    requestTimeoutMs: options.config.runtimeRequestTimeout,
    addressesOf: (sandbox) => network.addresses(sandbox),
    onTrouble: (message) => log('warn', message),
    onRelist: (durationMs) => parts.metrics.relists.relisted(durationMs),
    onWarning: (of, reason, message) => {
      const object = of === 'node' ? nodeReference(options.nodeName) : podReference(of);
      recorder.event(object, 'Warning', reason, message);
    },
  });
}

export function createLogRotation({ options, clock, log }: AgentBase, runtime: CriRuntime): LogRotation {
  const { containerLogMaxSize, containerLogMaxFiles, containerLogMonitorInterval } = options.config;
  return new LogRotation({
    runtime,
    clock,
    maxSizeBytes: quantityValue(containerLogMaxSize),
    maxFiles: containerLogMaxFiles,
    periodMs: containerLogMonitorInterval,
    onTrouble: (message) => log('warn', message),
  });
}

/** Logs what the runtime can do once it answers: it need not be up yet. Never rejects. */
export async function logCapabilities({ log }: AgentBase, runtime: CriRuntime, driver: string): Promise<void> {
  try {
    const found = await runtime.capabilities();
    if (found === undefined) return;
    log('info', 'Container runtime capabilities', { ...found });
    if (found.cgroupDriver === undefined || found.cgroupDriver === driver) return;
    log('warn', 'the runtime uses another cgroup driver than the agent: restart the agent', {
      runtime: found.cgroupDriver,
      agent: driver,
    });
  } catch (error) {
    log('warn', `the runtime's capabilities are not known: ${errorMessage(error)}`);
  }
}
