// The entry of the kubelet's heart: createPodsAgent puts sources, workers and the status manager together.

import type { PodsAgent, PodsAgentOptions } from './options.ts';
import { PodManager } from './pod-manager.ts';

/** Builds the agent's pod machinery; nothing happens before `start()`. */
export function createPodsAgent(options: PodsAgentOptions): PodsAgent {
  return new PodManager(options);
}

export type { NodeFacts, PodAdmit, PodsAgent, PodsAgentOptions, PodsConfig } from './options.ts';
