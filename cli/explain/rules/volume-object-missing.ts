// A volume needs a ConfigMap or Secret, or a key in it, that is not there.

import { MOUNT_BACKOFF } from '../../../agent/volumes/mount-failures.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { missing, volumeReferences } from '../missing-object.ts';
import {
  failuresInARow,
  hasStarted,
  isDeleted,
  isEnded,
  isScheduled,
  lastEvent,
  nextTry,
  timing,
} from '../pod-view.ts';

export const volumeObjectMissing: Rule<PodFacts> = {
  name: 'volume-object-missing',
  find: (facts) => {
    if (!isScheduled(facts) || isDeleted(facts) || isEnded(facts) || hasStarted(facts)) return undefined;
    for (const reference of volumeReferences(facts)) {
      const found = missing(facts, reference);
      if (found === undefined) continue;
      const volume = reference.by.replace('volume ', '');
      const failures = failuresInARow(
        facts.spans,
        ({ kind, name, attributes }) =>
          kind === 'volume' && name === 'MountVolume.SetUp' && attributes['volume'] === volume,
      );
      const event = lastEvent(facts, ['FailedMount'], `volume "${volume}"`);
      const next = nextTry(failures, event, MOUNT_BACKOFF);
      return {
        state: 'broken',
        verdict: `${reference.by} cannot be mounted: ${found.text}`,
        chain: [
          { text: 'no container starts before all volumes are mounted' },
          { text: `mounting ${reference.by} fails`, ...timing(event), ...(next === undefined ? {} : { next }) },
          { text: found.text, call: found.call },
        ],
        commands: [found.command],
      };
    }
    return undefined;
  },
};
