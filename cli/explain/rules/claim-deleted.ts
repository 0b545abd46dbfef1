// The claim is being deleted, and pods or finalizers keep it.

import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { ClaimFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { list } from '../words.ts';

const PROTECTION = 'kubernetes.io/pvc-protection';

export const claimDeleted: Rule<ClaimFacts> = {
  name: 'claim-deleted',
  find: ({ claim: { claim }, pods }) => {
    const { deletionTimestamp, finalizers = [], name, namespace } = claim.metadata;
    if (deletionTimestamp === undefined) return undefined;
    const since = parseRfc3339(deletionTimestamp);
    const users = pods
      .filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed')
      .map(({ metadata }) => metadata.name);
    const isProtected = finalizers.includes(PROTECTION) && users.length > 0;
    return {
      state: 'broken',
      verdict: isProtected
        ? `it is deleted, and pods keep it that use it: ${list(users)}`
        : `it is deleted, and finalizer ${list(finalizers)} keeps it`,
      chain: [
        { text: 'the claim is being deleted', ...(since === undefined ? {} : { since }) },
        {
          text: isProtected
            ? `${PROTECTION} is removed when no pod uses the claim any more`
            : 'the API server removes it when metadata.finalizers is empty',
        },
      ],
      commands: isProtected
        ? [{ command: `kubectl -n ${namespace} delete pod ${users.join(' ')}`, why: 'then the claim goes, too' }]
        : [{ command: `kubectl -n ${namespace} get pvc ${name} -o yaml`, why: 'its finalizers, and whose they are' }],
    };
  },
};
