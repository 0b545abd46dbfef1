// Events about one object, oldest first. Reads core/v1 events; both ways of counting (count, series) are one here.

import { resourcePath } from '../../../client/paths.ts';
import type { Event, Stored } from '../../../client/types.ts';
import { ZERO_TIME } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { EventFact } from '../facts.ts';
import type { Gaps, Sources } from './source.ts';

/** Pure. */
export function eventFact(event: Event): EventFact {
  const firstText = event.firstTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp;
  const first = parseRfc3339(firstText) ?? ZERO_TIME;
  const container = /^spec\.\w+\{(.+)\}$/.exec(event.involvedObject.fieldPath ?? '')?.[1];
  const last = parseRfc3339(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime) ?? first;
  return {
    type: event.type === 'Warning' ? 'Warning' : 'Normal',
    reason: event.reason ?? '',
    message: event.message ?? '',
    count: event.series?.count ?? event.count ?? 1,
    first,
    last,
    source: event.source?.component ?? event.reportingComponent ?? '',
    ...(container === undefined ? {} : { container }),
  };
}

/** `uid`: events of an earlier object of the same name are left out. `namespace` '' is where events of nodes are. */
export async function collectEvents(
  { client }: Sources,
  gaps: Gaps,
  kind: string,
  object: { readonly namespace: string; readonly name: string; readonly uid: string | undefined },
): Promise<readonly EventFact[]> {
  const { namespace, name, uid } = object;
  const path = resourcePath('v1', 'events', { namespace: namespace === '' ? 'default' : namespace });
  return gaps.attempt<readonly EventFact[]>('events', [], async () => {
    const fieldSelector = `involvedObject.kind=${kind},involvedObject.name=${name}`;
    const { items } = await client.list<Stored<Event>>(path, { fieldSelector });
    return items
      .filter(({ involvedObject }) => uid === undefined || !involvedObject.uid || involvedObject.uid === uid)
      .map(eventFact)
      .sort((a, b) => a.last - b.last);
  });
}
