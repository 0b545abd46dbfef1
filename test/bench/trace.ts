// What the trace costs a pod's start while no one reads it: processor time for the spans of one start (the ring of the newest ones
// subscribed, as in an agent), with and without links, events, actions and the facts of decisions. `sh scripts/node24 test/bench/trace.ts`

import { podUID } from '../../agent/model/pod-uid.ts';
import { decisionFacts } from '../../agent/pods/decision-facts.ts';
import { admittedPod } from '../../agent/pods/pod-state.ts';
import type { PodSnapshot } from '../../agent/ports/runtime.ts';
import { epochMs } from '../../lib/clock.ts';
import { SpanRing, Tracer } from '../../lib/trace.ts';
import { medianRange, percentile } from './stats.ts';

const STARTS = 500;
const ROUNDS = 9;
/** A start has three rounds with nine calls each, of the agent's kinds. */
const CALLS = 9;
const pod = { namespace: 'demo', name: 'web', uid: podUID('79a06930-02a8-4c6d-b455-a7fbd730373b') };
const snapshot: PodSnapshot = { pod, sandboxes: [], containers: [], observedAt: epochMs(0) };
const step = { state: admittedPod(), actions: [], events: [] };

async function calls(tracer: Tracer): Promise<void> {
  for (let call = 0; call < CALLS; call++)
    await tracer.span('cri', 'ContainerStatus', { container: 'c68900c3dddf' }, () => undefined);
}

/** As it was: rounds in a context, calls inside them. */
async function plain(tracer: Tracer): Promise<void> {
  for (let round = 0; round < 3; round++)
    await tracer.within({ pod, cause: 'pod updated' }, () =>
      tracer.span('worker', 'syncPod', { state: 'syncing' }, () => calls(tracer)),
    );
}

/** As it is: an event of the source, rounds with links and facts, an action inside each, and a write that links to it. */
async function linked(tracer: Tracer): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const id = tracer.event('api', 'SyncLoop UPDATE', { pod }, { source: 'api', resourceVersion: '17' });
    const links = tracer.causedBy([id], { pod }, () => tracer.origin());
    await tracer.causedBy(links, { pod, cause: 'pod updated' }, () =>
      tracer.span('worker', 'syncPod', { state: 'syncing', resourceVersion: '17' }, async (span) => {
        span.set(decisionFacts(snapshot, step, undefined));
        await tracer.span('worker', 'startContainer', { action: 'start web' }, () => calls(tracer));
      }),
    );
  }
}

/** Microseconds of processor time for one start. */
async function measure(start: (tracer: Tracer) => Promise<void>): Promise<number> {
  const tracer = new Tracer();
  const ring = new SpanRing(2048);
  tracer.subscribe(ring.push);
  const before = process.cpuUsage();
  for (let count = 0; count < STARTS; count++) await start(tracer);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / STARTS;
}

const plainTimes: number[] = [];
const linkedTimes: number[] = [];
await measure(plain);
await measure(linked);
// In turns, so that both have the machine's good and bad moments.
for (let round = 0; round < ROUNDS; round++) {
  plainTimes.push(await measure(plain));
  linkedTimes.push(await measure(linked));
}
const text = (times: readonly number[]): string => {
  const { low, high } = medianRange(times);
  return `${percentile(times, 0.5).toFixed(0)} µs (${low.toFixed(0)} to ${high.toFixed(0)})`;
};
process.stdout.write(
  `processor time of a start's spans without links, events, actions and facts: ${text(plainTimes)}; with them: ${text(linkedTimes)}\n`,
);
