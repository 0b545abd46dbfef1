// The claim has no volume yet, or has lost it.

import { bytesOf, formatBinary, requestedBytes, volumeClass } from '../../../controlplane/storage/objects.ts';
import { claimState } from '../claim-chain.ts';
import type { ClaimFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { list, similarName } from '../words.ts';

/** Volumes that are no good for the claim, each with the reason. */
function volumesInTheWay({ claim, volumes }: ClaimFacts): readonly Cause[] {
  const { storageClassName = '', accessModes = [] } = claim.claim.spec ?? {};
  const wanted = requestedBytes(claim.claim);
  return volumes.slice(0, 5).map((volume) => {
    const { name } = volume.metadata;
    const phase = volume.status?.phase ?? '';
    const modes = volume.spec?.accessModes ?? [];
    const lacking = accessModes.filter((mode) => !modes.includes(mode));
    const size = bytesOf(volume.spec?.capacity?.['storage']);
    const reasons = [
      ...(phase === 'Available' ? [] : [`it is ${phase}`]),
      ...(volumeClass(volume) === storageClassName
        ? []
        : [`its class is ${volumeClass(volume) === '' ? 'none' : volumeClass(volume)}`]),
      ...(lacking.length === 0 ? [] : [`it lacks ${lacking.join(', ')}`]),
      ...(size >= wanted ? [] : [`it has ${formatBinary(size)}`]),
    ];
    return { text: `volume ${name}: ${reasons.length === 0 ? 'it fits' : list(reasons)}` };
  });
}

export const claimPending: Rule<ClaimFacts> = {
  name: 'claim-pending',
  find: (facts) => {
    const { claim, classNames, pods } = facts;
    const state = claimState(claim);
    if (state === undefined) return undefined;
    const className = claim.claim.spec?.storageClassName ?? '';
    const hint = claim.storageClass === undefined && className !== '' ? similarName(className, classNames) : undefined;
    const waits = state.waits && pods.length === 0;
    const first = pods[0];
    return {
      state: waits ? 'waiting' : 'broken',
      verdict: `it ${state.verdict}${hint === undefined ? '' : ` (${hint})`}`,
      chain: [
        ...state.chain,
        ...(state.waits && first !== undefined
          ? [{ text: `pod ${first.metadata.name} uses it and has no node yet` }]
          : []),
        ...(className === '' ? volumesInTheWay(facts) : []),
      ],
      commands: [
        ...(state.waits && first !== undefined
          ? [
              {
                command: `nodelet explain pod ${first.metadata.namespace}/${first.metadata.name}`,
                why: 'why the pod has no node',
              },
            ]
          : []),
        ...state.commands,
      ],
    };
  },
};
