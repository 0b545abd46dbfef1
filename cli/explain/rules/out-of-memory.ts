// A container is killed by the kernel because it uses more memory than its limit.

import { quantityValue } from '../../../lib/quantity.ts';
import { logDetails, restartingContainer } from '../container-end.ts';
import type { PodFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { isDeleted, podArgument } from '../pod-view.ts';
import { bytes, plural } from '../words.ts';

export const outOfMemory: Rule<PodFacts> = {
  name: 'out-of-memory',
  find: (facts) => {
    const end = isDeleted(facts) ? undefined : restartingContainer(facts);
    if (end === undefined || end.reason !== 'OOMKilled') return undefined;
    const { name, view, finishedAt, restarts, next } = end;
    const limitText = view.spec.resources?.limits?.['memory'];
    const limit = limitText === undefined ? undefined : bytes(quantityValue(limitText));
    const memory = facts.machine?.memory;
    const kills = facts.machine?.oomKills ?? [];
    const kill = kills.findLast(({ container }) => container === end.id) ?? kills.at(-1);
    const kernel: Cause[] = [];
    if (kill !== undefined) {
      const resident = kill.residentBytes === undefined ? '' : `, which had ${bytes(kill.residentBytes)}`;
      kernel.push({
        text: `the kernel killed process ${kill.pid} (${kill.process})${resident}`,
        call: {
          name: 'oom-kill',
          to: 'the kernel',
          ...(limit === undefined ? {} : { with: `limit ${limit}` }),
          answer: 'SIGKILL, exit code 137',
        },
        ...(kills.length > 1 ? { count: kills.length } : {}),
      });
    }
    const peak = memory?.peak === undefined ? '' : `; the most that the pod has used is ${bytes(memory.peak)}`;
    return {
      state: 'broken',
      verdict: `container ${name} needs more memory than its limit${limit === undefined ? '' : ` of ${limit}`}, and the kernel kills it`,
      chain: [
        {
          text: `container ${name} ended as OOMKilled and ${restarts > 0 ? `was started again ${plural(restarts, 'time')}` : 'is started again'}, after growing pauses; its last instance ended`,
          ...(finishedAt === undefined ? {} : { at: finishedAt }),
          ...(next === undefined ? {} : { next }),
        },
        { text: `its memory limit is ${limit ?? 'that of the pod or the node'}${peak}` },
        ...kernel,
      ],
      details: logDetails(facts, name),
      commands: [
        {
          command: `kubectl get pod ${podArgument(facts)} -o jsonpath='{.spec.${view.init ? 'initContainers' : 'containers'}[*].resources}'`,
          why: `its limits: raise resources.limits.memory, or find what takes so much`,
        },
      ],
    };
  },
};
