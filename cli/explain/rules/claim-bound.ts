// The claim has its volume.

import type { ClaimFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';

export const claimBound: Rule<ClaimFacts> = {
  name: 'claim-bound',
  find: ({ claim: { claim, volume } }) => {
    if (claim.status?.phase !== 'Bound') return undefined;
    const driver = volume?.spec?.csi?.driver;
    const size = claim.status.capacity?.['storage'] ?? '';
    const resizing = claim.status.conditions?.find(({ type }) => /Resiz/.test(type));
    return {
      state: 'ready',
      verdict: `it is bound to volume ${claim.spec?.volumeName}, ${size}${driver === undefined ? '' : ` of ${driver}`}`,
      chain:
        resizing === undefined
          ? []
          : [{ text: `its growth is not finished: ${resizing.type} ${resizing.message ?? ''}` }],
      commands: [],
    };
  },
};
