// PodNetwork with CNI left to the container runtime, as on a node with Calico or Flannel: its status is the runtime's
// own condition, and nothing else is known. --network=runtime.

import type { PodNetwork } from '../ports/node.ts';
import type { RuntimeNetworkOptions } from './options.ts';

export function createRuntimeNetwork({ runtime }: RuntimeNetworkOptions): PodNetwork {
  return {
    status: async () => (await runtime.status()).networkReady,
    interfaces: async () => [],
    addresses: () => undefined,
  };
}
