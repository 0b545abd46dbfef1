// Since when endpoints are behind what they describe: the earliest change of a pod's readiness, or the making of the service,
// since the last sync. It becomes an annotation, from which a proxy measures how long a change takes to reach it.

import type { Pod, Service } from '../../../client/types.ts';
import { type EpochMs, earlier } from '../../../lib/clock.ts';
import { parseRfc3339, rfc3339 } from '../../../lib/rfc3339.ts';
import { TRIGGER_TIME } from './service-pods.ts';

interface Known {
  readonly service: EpochMs | undefined;
  readonly pods: ReadonlyMap<string, EpochMs>;
}

function podTime({ status }: Pod): EpochMs | undefined {
  return parseRfc3339(status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime);
}

/** What is new among the times, and what to compare with the next time. Pure. */
export function triggerTime(
  known: Known | undefined,
  service: Service,
  pods: readonly Pod[],
): { readonly time: EpochMs | undefined; readonly known: Known } {
  const made = parseRfc3339(service.metadata.creationTimestamp);
  const times = new Map<string, EpochMs>();
  let time: EpochMs | undefined;
  const consider = (at: EpochMs, before: EpochMs | undefined): void => {
    if (before !== undefined && at <= before) return;
    time = time === undefined ? at : earlier(time, at);
  };
  for (const pod of pods) {
    const at = podTime(pod);
    if (at === undefined) continue;
    times.set(pod.metadata.name, at);
    consider(at, known?.pods.get(pod.metadata.name));
  }
  if (made !== undefined) consider(made, known?.service);
  return { time: known === undefined ? made : time, known: { service: made, pods: times } };
}

/** One for each controller that writes the annotation. */
export class TriggerTimes {
  readonly #known = new Map<string, Known>();

  /** `key`: of the service. Has to be called at each sync, also where nothing is written. */
  next(key: string, service: Service, pods: readonly Pod[]): EpochMs | undefined {
    const { time, known } = triggerTime(this.#known.get(key), service, pods);
    this.#known.set(key, known);
    return time;
  }

  forget(key: string): void {
    this.#known.delete(key);
  }
}

/** The annotations with this time; without any, where there is none. Pure. */
export function withTriggerTime(
  annotations: Readonly<Record<string, string>> | undefined,
  time: EpochMs | undefined,
): Record<string, string> {
  const { [TRIGGER_TIME]: _, ...others } = annotations ?? {};
  return time === undefined ? others : { ...others, [TRIGGER_TIME]: rfc3339(time) };
}
