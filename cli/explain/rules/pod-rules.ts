// The rules for pods, in the order in which they are applied: the first that finds something gives the verdict. Ends come first,
// then deletion, then the steps of a start in their order.

import type { PodFacts } from '../facts.ts';
import type { Finding, Rule, RuleGroup } from '../finding.ts';
import { eachContainer, eachVolume } from '../parts.ts';
import { condition, podArgument } from '../pod-view.ts';
import { claimNotBound, eachClaim } from './claim-not-bound.ts';
import { containerStart } from './container-start.ts';
import { crashLoop } from './crash-loop.ts';
import { csiDriverMissing } from './csi-driver-missing.ts';
import { deadlineExceeded } from './deadline-exceeded.ts';
import { environmentMissing } from './environment-missing.ts';
import { evicted } from './evicted.ts';
import { failed } from './failed.ts';
import { finalizer } from './finalizer.ts';
import { hookFailed } from './hook-failed.ts';
import { imageName } from './image-name.ts';
import { imageNever } from './image-never.ts';
import { imagePull } from './image-pull.ts';
import { noNodeFits } from './no-node-fits.ts';
import { noScheduler } from './no-scheduler.ts';
import { nodeAway } from './node-away.ts';
import { nodeUnready } from './node-unready.ts';
import { outOfMemory } from './out-of-memory.ts';
import { probeFails } from './probe-fails.ts';
import { probeKills } from './probe-kills.ts';
import { readinessGate } from './readiness-gate.ts';
import { ready } from './ready.ts';
import { rejected } from './rejected.ts';
import { runAsNonRoot } from './run-as-non-root.ts';
import { runtimeAway } from './runtime-away.ts';
import { runtimeClass } from './runtime-class.ts';
import { sandboxFailed } from './sandbox-failed.ts';
import { schedulingGate } from './scheduling-gate.ts';
import { starting } from './starting.ts';
import { succeeded } from './succeeded.ts';
import { terminating } from './terminating.ts';
import { volumeAttach } from './volume-attach.ts';
import { volumeBusy } from './volume-busy.ts';
import { volumeFailed } from './volume-failed.ts';
import { volumeObjectMissing } from './volume-object-missing.ts';
import { volumeUnderWay } from './volume-under-way.ts';

const CONTAINER_RULES: readonly Rule<PodFacts>[] = [
  environmentMissing,
  runAsNonRoot,
  containerStart,
  outOfMemory,
  probeKills,
  hookFailed,
  crashLoop,
];

export const POD_RULES: readonly RuleGroup<PodFacts>[] = [
  [rejected, evicted, deadlineExceeded, failed, succeeded],
  [finalizer],
  [nodeAway, runtimeAway],
  [volumeBusy, terminating],
  [schedulingGate, noScheduler, { each: eachClaim, rules: [claimNotBound] }, noNodeFits],
  [{ each: eachVolume, rules: [volumeObjectMissing, csiDriverMissing, volumeAttach, volumeFailed] }],
  [runtimeClass, sandboxFailed],
  [{ each: eachContainer, rules: [imageName, imageNever, imagePull] }],
  [{ each: eachContainer, rules: CONTAINER_RULES }],
  [{ each: eachContainer, rules: [probeFails] }],
  [readinessGate],
  [nodeUnready],
  [volumeUnderWay, starting, ready],
];

/** For a pod that no rule knows anything about. */
export function unknownPod(facts: PodFacts): Finding {
  const ready = condition(facts, 'Ready');
  const { phase = 'Pending', message } = facts.pod.status ?? {};
  const why = ready?.message ?? message;
  return {
    state: 'broken',
    verdict: `it is ${phase} and not Ready, and no rule knows why${why === undefined ? '' : `: ${why}`}`,
    chain: facts.events
      .filter(({ type }) => type === 'Warning')
      .slice(-3)
      .map(({ reason, message: text, first, count }) => ({ text: `${reason}: ${text}`, since: first, count })),
    commands: [{ command: `kubectl describe pod ${podArgument(facts)}`, why: 'all that the API server knows' }],
  };
}
