// Names for time: whose a piece of the critical path is, and what is waited for in a gap between two bars. Pure; one table.

import type { Bar, Owner } from './model.ts';

interface Named {
  readonly owner: Owner;
  readonly text: string;
}

/** Time within a bar that none of the bars inside it accounts for. */
export function ownTime(bar: Bar): Named {
  switch (bar.lane) {
    case 'api':
      return { owner: 'API server', text: `waiting for the API server: ${bar.name}` };
    case 'scheduler':
      return { owner: 'scheduler', text: 'waiting for the scheduler' };
    case 'volumes':
      return { owner: 'volumes', text: bar.name };
    case 'cgroup':
    case 'kernel':
      return { owner: 'kernel', text: bar.name };
    case 'cri':
    case 'containers':
      return { owner: 'runtime', text: `the runtime: ${bar.name}` };
    case 'cni':
      return {
        owner: 'CNI',
        text: /^[A-Z]+ network /.test(bar.name) ? `around the plugins: ${bar.name}` : `the plugin: ${bar.name}`,
      };
    case 'probes':
      return { owner: 'probe', text: bar.name };
    default:
      return { owner: 'agent', text: `the agent: ${bar.name}` };
  }
}

interface GapRule {
  readonly before: (bar: Bar) => boolean;
  readonly after: (bar: Bar) => boolean;
  readonly named: (before: Bar, after: Bar) => Named;
}

const anyBar = (): boolean => true;
const isMoment = (bar: Bar): boolean => bar.start === bar.end;
const isWatchEvent = (bar: Bar): boolean => bar.lane === 'api' && bar.name.startsWith('SyncLoop ');
const isRound = (bar: Bar): boolean => bar.lane === 'worker' && bar.name === 'syncPod';

/** The first that fits. */
const GAP_RULES: readonly GapRule[] = [
  {
    before: (bar) => bar.lane === 'api' && !isWatchEvent(bar),
    after: isWatchEvent,
    named: () => ({ owner: 'API server', text: 'waiting for the watch to deliver the change' }),
  },
  {
    before: (bar) => bar.lane === 'scheduler',
    after: anyBar,
    named: () => ({ owner: 'API server', text: 'waiting for the watch to deliver the binding' }),
  },
  {
    before: anyBar,
    after: (bar) => bar.lane === 'probes' && bar.parent === undefined,
    named: (_, after) => ({ owner: 'waiting', text: `waiting for the next run of the ${after.name} probe` }),
  },
  {
    before: anyBar,
    after: (bar) => bar.lane === 'cri' && isMoment(bar),
    named: () => ({ owner: 'runtime', text: 'waiting for the runtime’s event' }),
  },
  {
    before: anyBar,
    after: (bar) => /^(PATCH|PUT) pods/.test(bar.name),
    named: () => ({
      owner: 'waiting',
      text: 'waiting before the status is written (a more important one may take it along)',
    }),
  },
  {
    before: isRound,
    after: (bar) => isRound(bar) && /\btimer\b/.test(bar.cause ?? ''),
    named: () => ({ owner: 'waiting', text: 'waiting for a timer: a back-off, a deadline or the resync' }),
  },
  {
    before: anyBar,
    after: isRound,
    named: () => ({ owner: 'agent', text: 'until the pod worker’s round begins' }),
  },
  {
    before: anyBar,
    after: (bar) => bar.lane === 'kernel',
    named: () => ({ owner: 'kernel', text: 'waiting for the kernel’s notification' }),
  },
];

/** Time between two bars, the second of which the first made possible. */
export function gapTime(before: Bar, after: Bar): Named {
  const rule = GAP_RULES.find((each) => each.before(before) && each.after(after));
  if (rule !== undefined) return rule.named(before, after);
  if (before.lane === after.lane && before.lane === 'cri')
    return { owner: 'agent', text: `the kubelet, between ${before.name} and ${after.name}` };
  return { owner: 'agent', text: `between ${before.name} and ${after.name}` };
}
