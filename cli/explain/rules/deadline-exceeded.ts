// The pod ran longer than activeDeadlineSeconds allows.

import { elapsedMs, plusMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { created, isDeleted, lastEvent, timing } from '../pod-view.ts';
import { duration } from '../words.ts';

export const deadlineExceeded: Rule<PodFacts> = {
  name: 'deadline-exceeded',
  find: (facts) => {
    const { spec, status } = facts.pod;
    if (isDeleted(facts) || status?.phase !== 'Failed' || status.reason !== 'DeadlineExceeded') return undefined;
    const seconds = spec.activeDeadlineSeconds ?? 0;
    const [started, made] = [parseRfc3339(status.startTime), created(facts)];
    const end = started === undefined ? undefined : plusMs(started, seconds * 1000);
    const waited = started === undefined || made === undefined ? 0 : elapsedMs(made, started);
    return {
      state: 'ended',
      verdict: `it was ended after ${duration(seconds * 1000)}, as its activeDeadlineSeconds demands`,
      chain: [
        { text: 'the phase is Failed, the reason DeadlineExceeded', ...timing(lastEvent(facts, ['DeadlineExceeded'])) },
        {
          text: `activeDeadlineSeconds is ${seconds}; the time counts from when the node accepted the pod${waited >= 1000 ? `, ${duration(waited)} after it was made` : ''}, and takes in pulling images and restarts`,
          ...(end === undefined ? {} : { since: end }),
        },
      ],
      commands: [],
    };
  },
};
