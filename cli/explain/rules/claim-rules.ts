// The rules for claims.

import type { ClaimFacts } from '../facts.ts';
import type { Finding, Rule } from '../finding.ts';
import { claimBound } from './claim-bound.ts';
import { claimDeleted } from './claim-deleted.ts';
import { claimPending } from './claim-pending.ts';

export const CLAIM_RULES: readonly (readonly Rule<ClaimFacts>[])[] = [[claimDeleted], [claimPending], [claimBound]];

export function unknownClaim({ claim }: ClaimFacts): Finding {
  const { name, namespace } = claim.claim.metadata;
  return {
    state: 'broken',
    verdict: `it is ${claim.claim.status?.phase ?? 'without a phase'}, and no rule knows why`,
    chain: [],
    commands: [{ command: `kubectl -n ${namespace} describe pvc ${name}`, why: 'all that the API server knows' }],
  };
}

export function fineClaim({ claim, pods }: ClaimFacts): readonly string[] {
  return [
    ...(claim.storageClass === undefined
      ? []
      : [`class ${claim.storageClass.metadata.name} exists, its provisioner is ${claim.storageClass.provisioner}`]),
    pods.length === 0 ? 'no pod uses it' : `used by ${pods.map(({ metadata }) => metadata.name).join(', ')}`,
  ];
}
