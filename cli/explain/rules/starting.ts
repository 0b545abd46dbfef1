// The pod is on its way: volumes, sandbox, image, init containers, containers. Nothing has failed.

import { type EpochMs, elapsedMs } from '../../../lib/clock.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { Download, PodFacts } from '../facts.ts';
import type { Cause, Rule } from '../finding.ts';
import { containers, isDeleted, isEnded, isScheduled, isSidecar, lastEvent } from '../pod-view.ts';
import { bytes, duration } from '../words.ts';

/** Parts of images that are shown one by one. */
const MAX_PARTS = 4;
/** Reasons for which a container waits while nothing has failed; '' where no status has one yet. */
const ON_ITS_WAY: readonly string[] = ['', 'ContainerCreating', 'PodInitializing'];
/** Without new bytes for so long a pull has stalled. ms */
const STALLED_MS = 10_000;
/** Times in events are whole seconds. ms */
const SLACK_MS = 1_000;

/** What has been written since the pull began; what earlier pulls left behind is none of it. */
function downloadsSince({ downloads }: PodFacts, start: EpochMs): readonly Download[] {
  return downloads.filter(({ updated }) => elapsedMs(start, updated) >= -SLACK_MS);
}

/** "12 MiB of 40 MiB in 4 s, 3 MiB a second": all parts together. '' where nothing is known. */
function progress(downloads: readonly Download[], now: EpochMs): string {
  const [first] = downloads;
  if (first === undefined) return '';
  const done = downloads.reduce((sum, each) => sum + each.bytes, 0);
  const total = downloads.reduce((sum, each) => sum + (each.total ?? Number.NaN), 0);
  const seconds = Math.max(elapsedMs(first.since, now) / 1000, 0.001);
  const of = Number.isNaN(total) ? '' : ` of ${bytes(total)}`;
  const silent = Math.min(...downloads.map(({ updated }) => elapsedMs(updated, now)));
  const stalled = silent < STALLED_MS ? '' : `; nothing has come for ${duration(silent)}`;
  return `${bytes(done)}${of} in ${duration(seconds * 1000)}, ${bytes(done / seconds)} a second${stalled}`;
}

interface Pull {
  readonly cause: Cause;
  readonly parts: readonly Download[];
}

function pullOf(facts: PodFacts): Pull | undefined {
  const call = facts.open.findLast(({ kind, name }) => kind === 'cri' && name === 'PullImage');
  const pulling = lastEvent(facts, ['Pulling']);
  const pulled = lastEvent(facts, ['Pulled', 'Failed']);
  const inEvents = pulling !== undefined && (pulled === undefined || pulled.last < pulling.last);
  if (call === undefined && !inEvents) return undefined;
  const image = String(call?.attributes['image'] ?? /"([^"]+)"/.exec(pulling?.message ?? '')?.[1] ?? '');
  const since = call?.start ?? pulling?.last ?? facts.now;
  const parts = downloadsSince(facts, since);
  const figures = progress(parts, facts.now);
  const cause: Cause = {
    text: `image ${image} is being pulled${figures === '' ? '' : `: ${figures}`}`,
    call: {
      name: 'PullImage',
      to: 'the container runtime',
      ...(image === '' ? {} : { with: image }),
      ...(figures === '' ? {} : { answer: `none yet; it has ${figures}` }),
    },
    since,
  };
  return { cause, parts };
}

function stepOf(facts: PodFacts): Cause {
  // One that runs counts as started, and the others wait for its end; of a sidecar they wait for its startup probe alone.
  const init = containers(facts).find(
    (view) =>
      view.init && view.status?.state?.running !== undefined && !(isSidecar(view) && view.status.started === true),
  );
  const since = parseRfc3339(init?.status?.state?.running?.startedAt);
  if (init !== undefined)
    return {
      text: `init container ${init.spec.name} runs; the others wait for it to ${isSidecar(init) ? 'have started' : 'succeed'}`,
      ...(since === undefined ? {} : { since }),
    };
  if (facts.runtime?.sandboxes.some(({ ready }) => ready) === false)
    return { text: 'its volumes are mounted and its sandbox is made' };
  return { text: 'its containers are created and started' };
}

export const starting: Rule<PodFacts> = {
  name: 'starting',
  find: (facts) => {
    if (!isScheduled(facts) || isDeleted(facts) || isEnded(facts)) return undefined;
    const waiting = containers(facts).some(
      ({ status }) => status?.state?.running === undefined && status?.state?.terminated === undefined,
    );
    const hasFailed = containers(facts).some(
      ({ status }) => !ON_ITS_WAY.includes(status?.state?.waiting?.reason ?? ''),
    );
    if (!waiting || hasFailed) return undefined;
    const pull = pullOf(facts);
    const step = pull?.cause ?? stepOf(facts);
    const parts = (pull?.parts ?? []).slice(0, MAX_PARTS).map(({ part, bytes: done, total, since }) => ({
      text: `${part.slice(0, 30)}: ${bytes(done)}${total === undefined ? '' : ` of ${bytes(total)}`}`,
      since,
    }));
    const started = parseRfc3339(facts.pod.status?.startTime);
    const age = started === undefined ? '' : ` for ${duration(elapsedMs(started, facts.now))}`;
    return {
      state: 'waiting',
      verdict: `it has been starting${age}, and nothing has failed: ${step.text}`,
      chain: [step, ...parts],
      commands: [],
    };
  },
};
