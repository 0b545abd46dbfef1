// activeDeadlineSeconds: how long a pod may be active before the node ends it. Pure.

import type { Pod } from '../../client/types.ts';
import { type EpochMs, plusMs } from '../../lib/clock.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { PodEnd } from '../ports/pod-end.ts';

/** When the pod's time is over (epoch ms), and how it fails if it is; undefined when it has no limit. */
export function activeDeadline(
  pod: Pod,
  startTime: string | undefined,
  now: EpochMs,
): { readonly at: EpochMs; readonly failure?: PodEnd } | undefined {
  const { activeDeadlineSeconds } = pod.spec;
  const started = parseRfc3339(startTime);
  if (activeDeadlineSeconds === undefined || started === undefined) return undefined;
  const at = plusMs(started, activeDeadlineSeconds * 1000);
  if (now < at) return { at };
  const message = 'Pod was active on the node longer than the specified deadline';
  return { at, failure: { reason: 'DeadlineExceeded', message, unreadyAtOnce: true } };
}
