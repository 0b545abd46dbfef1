// NodeResourcesBalancedAllocation (Score): nodes whose resources would be used by similar shares are better. Pure.

import type { Plugin } from '../framework/plugin.ts';
import { CPU_AND_MEMORY } from './node-resources-fit.ts';
import { balancedAllocation, type ResourceWeight, usages } from './resource-scoring.ts';

export function nodeResourcesBalancedAllocation(resources: readonly ResourceWeight[] = CPU_AND_MEMORY): Plugin {
  return {
    name: 'NodeResourcesBalancedAllocation',
    // A pod without requests changes no share.
    preScore: (_state, { requests }) =>
      resources.every(({ name }) => requests.amountOf(name) === 0) ? 'skip' : undefined,
    score: (_state, pod, node) => balancedAllocation(usages(pod, node, resources, false)),
    worthRetrying: () => false,
  };
}
