// What a round of a pod decided, and the facts that it decided from, as attributes of its span. Pure; short texts, since every
// round makes them whether or not anyone reads the trace.

import type { PodStatus } from '../../client/types.ts';
import type { SpanAttributes } from '../../lib/trace.ts';
import { isPodReady } from '../model/pod-ready.ts';
import type { PodSnapshot } from '../ports/runtime.ts';
import type { SyncAction } from './sync-action.ts';
import type { Step } from './sync-facts.ts';

function actionText(action: SyncAction): string {
  switch (action.kind) {
    case 'startContainer':
      return `startContainer ${action.start.container.name}`;
    case 'killContainer':
      return `killContainer ${action.kill.instance.name} (${action.reason}, ${action.kill.graceSeconds} s)`;
    case 'removeContainer':
      return `removeContainer ${action.containerId.slice(0, 12)}`;
    default:
      return action.kind;
  }
}

/**
 * `decided` lists the actions that begin, `observed` the runtime's sandboxes and containers; `phase` and `ready` are what is reported;
 * `wakeAt` is epoch ms.
 */
export function decisionFacts(
  { sandboxes, containers }: PodSnapshot,
  step: Step,
  reported: PodStatus | undefined,
): SpanAttributes {
  const { actions, events, status, wakeAt } = step;
  return {
    observed: [
      ...sandboxes.map(({ attempt, state }) => `sandbox ${attempt} ${state}`),
      ...containers.map(
        ({ name, restartCount, state, exitCode }) =>
          `${name} ${restartCount} ${state}${state === 'exited' ? ` (${exitCode})` : ''}`,
      ),
    ],
    decided: actions.map(actionText),
    next: step.state.kind,
    ...(reported === undefined
      ? {}
      : {
          phase: reported.phase,
          ready: isPodReady({ status: reported }),
        }),
    ...(status === undefined || status.waiting.size === 0
      ? {}
      : { waiting: [...status.waiting].map(([name, { reason }]) => `${name}: ${reason}`) }),
    ...(events.length === 0 ? {} : { events: events.map(({ reason }) => reason) }),
    ...(wakeAt === undefined ? {} : { wakeAt }),
  };
}
