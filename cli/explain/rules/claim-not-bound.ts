// The pod has no node because a claim that it uses is not there, or has no volume yet.

import { claimState } from '../claim-chain.ts';
import type { ClaimFact, Lookup, PodFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { condition, isDeleted, isScheduled, lastEvent, podArgument, timing } from '../pod-view.ts';

/** Of kube-scheduler: the claim's own state blocks the pod, whatever the nodes are like. */
const BLOCKED =
  /persistentvolumeclaim "|unbound immediate PersistentVolumeClaims|ephemeral volume controller|didn't find available persistent volumes/;

/** Why a claim that is there blocks the pod; undefined: it does not. */
function blockingState(facts: PodFacts, lookup: Lookup<ClaimFact>): ReturnType<typeof claimState> {
  const state = lookup.state === 'found' ? claimState(lookup.value) : undefined;
  // One that waits for the pod to get a node is no reason by itself.
  if (state?.waits === true && !/didn't find/.test(condition(facts, 'PodScheduled')?.message ?? '')) return undefined;
  return state;
}

/** Facts with one claim that blocks the pod, for each; as they are where none is known to. */
export function eachClaim(facts: PodFacts): readonly PodFacts[] {
  const { references } = facts;
  const blocking = [...references.claims].filter(
    ([, lookup]) => lookup.state === 'absent' || blockingState(facts, lookup) !== undefined,
  );
  if (blocking.length === 0) return [facts];
  return blocking.map((claim) => ({ ...facts, references: { ...references, claims: new Map([claim]) } }));
}

export const claimNotBound: Rule<PodFacts> = {
  name: 'claim-not-bound',
  find: (facts) => {
    const { namespace } = facts.pod.metadata;
    const message = condition(facts, 'PodScheduled')?.message ?? '';
    if (isScheduled(facts) || isDeleted(facts) || !BLOCKED.test(message)) return undefined;
    const symptom: Cause = {
      text: `the scheduler gives the pod no node: ${message}`,
      ...timing(lastEvent(facts, ['FailedScheduling'])),
    };
    for (const [name, lookup] of facts.references.claims) {
      if (lookup.state === 'absent') {
        return {
          state: 'broken',
          verdict: `it uses claim ${name}, which does not exist`,
          chain: [
            symptom,
            {
              text: `volume ${volumeOf(facts, name)} of the pod names claim ${name}`,
              call: { name: `GET persistentvolumeclaims/${name}`, to: 'the API server', answer: 'not found' },
            },
          ],
          commands: [{ command: `kubectl -n ${namespace} get pvc`, why: 'the claims that there are' }],
        };
      }
      const state = blockingState(facts, lookup);
      if (state === undefined) continue;
      return {
        state: 'broken',
        verdict: `its claim ${name} ${state.verdict}`,
        chain: [symptom, ...state.chain],
        commands: state.commands,
      };
    }
    return {
      state: 'broken',
      verdict: 'a claim that it uses is not bound to a volume',
      chain: [symptom],
      commands: [{ command: `kubectl describe pod ${podArgument(facts)}`, why: 'the claims of its volumes' }],
    };
  },
};

function volumeOf({ pod }: PodFacts, claim: string): string {
  const volume = (pod.spec.volumes ?? []).find(
    (each) => each.persistentVolumeClaim?.claimName === claim || each.ephemeral !== undefined,
  );
  return volume?.name ?? '';
}
