// What the versions of a pod's object say: what each changed, and when the pod was created, bound and Ready. Pure.

import { isPodReady } from '../../agent/model/pod-ready.ts';
import type { Pod } from '../../client/types.ts';
import type { EpochMs } from '../../lib/clock.ts';
import { parseRfc3339 } from '../../lib/rfc3339.ts';
import type { ObjectVersion } from './model.ts';

/** Times of the API have whole seconds. */
const SECOND_MS = 1000;

export interface Moment {
  readonly at: EpochMs;
  readonly uncertainMs: number;
}

const isBound = ({ spec }: Pod): boolean => (spec.nodeName ?? '') !== '';

/** "created", "bound to n1", "Running", "Ready": what a version has that the one before it had not. */
export function describeVersion(before: Pod | undefined, { metadata, spec, status }: Pod): string {
  const object: Pod = { metadata, spec, ...(status === undefined ? {} : { status }) };
  const changes: string[] = [];
  if (before === undefined) changes.push('created');
  if (isBound(object) && (before === undefined || !isBound(before))) changes.push(`bound to ${spec.nodeName}`);
  const phase = status?.phase;
  if (before !== undefined && phase !== undefined && phase !== before.status?.phase) changes.push(phase);
  if (before !== undefined && isPodReady(object) !== isPodReady(before))
    changes.push(isPodReady(object) ? 'Ready' : 'not Ready');
  if (metadata.deletionTimestamp !== undefined && before?.metadata.deletionTimestamp === undefined)
    changes.push('to be deleted');
  return changes.length === 0 ? 'updated' : changes.join(', ');
}

function conditionTime({ status }: Pod, type: string): EpochMs | undefined {
  const condition = status?.conditions?.find((each) => each.type === type && each.status === 'True');
  return parseRfc3339(condition?.lastTransitionTime);
}

/** The first version that a watch delivered with `test`, unless it had been so before the watch began. */
function firstSeen(versions: readonly ObjectVersion[], test: (pod: Pod) => boolean): EpochMs | undefined {
  const index = versions.findIndex(({ object }) => test(object));
  return index > 0 ? versions[index]?.at : undefined;
}

const inSeconds = (at: EpochMs | undefined): Moment | undefined =>
  at === undefined ? undefined : { at, uncertainMs: SECOND_MS };

/** When it was created. A watch that delivered it within the second in which it was created delivered its creation. */
export function createdAt(versions: readonly ObjectVersion[]): Moment | undefined {
  const first = versions[0];
  const written = parseRfc3339(first?.object.metadata.creationTimestamp);
  if (first === undefined || written === undefined) return undefined;
  const { at, object } = first;
  if (at !== undefined && !isBound(object) && at - written < 2 * SECOND_MS) return { at, uncertainMs: 0 };
  return inSeconds(written);
}

export function boundAt(versions: readonly ObjectVersion[]): Moment | undefined {
  const seen = firstSeen(versions, isBound);
  if (seen !== undefined) return { at: seen, uncertainMs: 0 };
  return inSeconds(versions.map(({ object }) => conditionTime(object, 'PodScheduled')).find((at) => at !== undefined));
}

/** When it was Ready for the first time. */
export function readyAt(versions: readonly ObjectVersion[]): Moment | undefined {
  const seen = firstSeen(versions, isPodReady);
  if (seen !== undefined) return { at: seen, uncertainMs: 0 };
  return inSeconds(versions.map(({ object }) => conditionTime(object, 'Ready')).find((at) => at !== undefined));
}
