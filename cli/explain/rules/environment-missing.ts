// A variable of a container needs a ConfigMap or Secret, or a key in it, that is not there.

import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { environmentReferences, missing } from '../missing-object.ts';
import { isDeleted, lastEvent, timing, waitingFor } from '../pod-view.ts';

export const environmentMissing: Rule<PodFacts> = {
  name: 'environment-missing',
  find: (facts) => {
    const view = waitingFor(facts, 'CreateContainerConfigError');
    if (view === undefined || isDeleted(facts)) return undefined;
    const { name } = view.spec;
    for (const reference of environmentReferences(facts, name)) {
      const found = missing(facts, reference);
      if (found === undefined) continue;
      return {
        state: 'broken',
        verdict: `${reference.by} cannot be set: ${found.text}`,
        chain: [
          {
            text: `container ${name} waits, the reason is CreateContainerConfigError: ${view.status?.state?.waiting?.message ?? ''}`,
            ...timing(lastEvent(facts, ['Failed'])),
          },
          { text: found.text, call: found.call },
        ],
        commands: [found.command],
      };
    }
    return undefined;
  },
};
