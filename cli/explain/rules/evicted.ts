// The node evicted the pod: its own limit on local storage, or pressure on the node.

import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { isDeleted, lastEvent, podArgument, timing } from '../pod-view.ts';

function kindOf(message: string): { readonly why: string; readonly what: string } {
  const volume = /emptyDir volume "([^"]+)" exceeds the limit "([^"]+)"/i.exec(message);
  if (volume !== null) {
    return {
      why: `its emptyDir volume ${volume[1]} grew beyond its sizeLimit of ${volume[2]}`,
      what: 'a larger sizeLimit, or less data in the volume',
    };
  }
  if (
    /exceeds the total limit of containers|ephemeral.*exceeds|exceeded its local ephemeral storage limit/i.test(message)
  ) {
    return {
      why: 'it used more local storage than its limit on ephemeral-storage',
      what: 'a larger limit, or less data in its file systems and logs',
    };
  }
  const resource = /The node was low on resource: ([\w-]+(?: [\w-]+)*)/.exec(message)?.[1];
  if (resource !== undefined) {
    return {
      why: `the node ran low on ${resource}, and this pod was the first to go`,
      what: `requests for ${resource} that cover what it uses: pods that use more than they request go first`,
    };
  }
  return { why: 'the node was under pressure', what: 'what the node is short of' };
}

export const evicted: Rule<PodFacts> = {
  name: 'evicted',
  find: (facts) => {
    const { phase, reason, message = '' } = facts.pod.status ?? {};
    if (isDeleted(facts) || phase !== 'Failed' || reason !== 'Evicted') return undefined;
    const node = facts.pod.spec.nodeName ?? '';
    const { why, what } = kindOf(message);
    return {
      state: 'ended',
      verdict: `it was evicted: ${why}`,
      chain: [
        {
          text: 'the phase is Failed, the reason Evicted; this pod is not started again',
          ...timing(lastEvent(facts, ['Evicted'])),
        },
        {
          text: `the eviction manager of node ${node} measured too much, and ended the pod`,
          call: { name: 'eviction', to: `node ${node}`, answer: message },
        },
      ],
      commands: [
        {
          command: `kubectl describe pod ${podArgument(facts)}`,
          why: `limits and requests of the pod. It needs ${what}`,
        },
        { command: `kubectl describe node ${node}`, why: 'whether the node is still under pressure' },
      ],
    };
  },
};
