// Histories of two control planes that are written down, not drawn, because random ones come to them rarely: a change of leaders at the
// worst moment.

import type { Lease, Pod } from '../../../client/types.ts';
import type { Job } from '../../../controlplane/controllers/shared/objects.ts';
import type { ControlPlaneProcess } from '../../../labs/sim/control-plane/process.ts';
import { controllerKind } from './facts.ts';
import { differences } from './rest.ts';
import { ControlPlaneWorld } from './world.ts';

/** Seeds of which the fourth part is 0 are a pair: world.ts. */
const SEED = 4;
const PODS = '/api/v1/pods';
const TRACKING = 'batch.kubernetes.io/job-tracking';
/** Longer than the rest of the history. */
const LAG_MS = 300_000;
/** Longer than an event takes that is not late. */
const EVENT_MS = 20;
const COMPLETIONS = 3;
/** Longer than a lease is valid without being renewed. */
const STILL_MS = 25_000;
/** Less than what a lease is given up within. */
const SLOW_MS = 1900;
/** The longest that it may take until all is as it should be. */
const REST_MS = 120_000;
/** Six batches: 1, 2, 4, 8, 16, 9. */
export const REPLICAS = 40;

export interface LeaderChange {
  /** Rules that were broken. */
  readonly broken: readonly string[];
  /** Pods that the job says have succeeded. */
  readonly succeeded: number;
  readonly leaders: readonly string[];
}

export interface PodsMade {
  readonly broken: readonly string[];
  /** How many pods each process has made, in the order of their first ones. */
  readonly by: Readonly<Record<string, number>>;
  readonly leaders: readonly string[];
}

function objects<T>(world: ControlPlaneWorld, resource: string): readonly T[] {
  const found: readonly unknown[] = world.server.objects(resource);
  return found as readonly T[];
}

function leaderOf(world: ControlPlaneWorld): ControlPlaneProcess | undefined {
  const lease = objects<Lease>(world, 'coordination.k8s.io/leases').find(
    ({ metadata }) => metadata.namespace === 'kube-system' && metadata.name === 'kube-controller-manager',
  );
  return world.processes.find(({ identity }) => identity === lease?.spec?.holderIdentity);
}

const jobOf = (world: ControlPlaneWorld): Job | undefined => objects<Job>(world, 'batch/jobs')[0];
const toCount = (world: ControlPlaneWorld): readonly Pod[] =>
  objects<Pod>(world, '/pods').filter(
    (pod) =>
      controllerKind(pod) === 'Job' &&
      pod.status?.phase === 'Succeeded' &&
      pod.metadata.finalizers?.includes(TRACKING) === true,
  );

async function makeReplicaSet(world: ControlPlaneWorld): Promise<void> {
  const labels = { app: 'made' };
  await world.user('POST', '/apis/apps/v1/namespaces/a/replicasets', {
    metadata: { name: 'made' },
    spec: {
      ...{ replicas: REPLICAS, selector: { matchLabels: labels } },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'image' }] } },
    },
  });
}

/** By process: how many pods it has made from now on. */
function countPods(world: ControlPlaneWorld): Readonly<Record<string, number>> {
  const by: Record<string, number> = {};
  world.follow(({ type, resource, actor }) => {
    if (type === 'ADDED' && resource === '/pods') by[actor] = (by[actor] ?? 0) + 1;
  });
  return by;
}

/** Lets time pass until all is as it should be. */
async function comesToRest(world: ControlPlaneWorld): Promise<void> {
  const { clock } = world;
  const end = clock.monotonic() + REST_MS;
  for (let wrong = differences(world); wrong.length > 0; wrong = differences(world)) {
    if (clock.monotonic() > end) throw new Error(`${REST_MS} ms later: ${wrong.join('; ')}`);
    await clock.advance(1000);
  }
}

const identityOf = (process: ControlPlaneProcess | undefined): string => process?.identity ?? 'none';

/** A world in which one of two leads, and what `follow` does in it. */
async function withLeader<T>(
  follow: (world: ControlPlaneWorld, leader: ControlPlaneProcess, other: ControlPlaneProcess) => Promise<T>,
): Promise<T> {
  const world = new ControlPlaneWorld(SEED);
  try {
    await world.begin();
    await world.clock.until(() => leaderOf(world) !== undefined);
    const leader = leaderOf(world);
    const other = world.processes.find((process) => process !== leader);
    if (leader === undefined || other === undefined) throw new Error('there are no two control planes');
    return await follow(world, leader, other);
  } finally {
    world.end();
  }
}

async function makeJob(world: ControlPlaneWorld): Promise<void> {
  const containers = [{ name: 'main', image: 'image' }];
  await world.user('POST', '/apis/batch/v1/namespaces/a/jobs', {
    metadata: { name: 'counted' },
    spec: {
      ...{ completions: COMPLETIONS, parallelism: 1 },
      template: { spec: { restartPolicy: 'Never', containers } },
    },
  });
}

/**
 * The leader counts a pod of a job and gives its lease up, while the other's watch of pods lags and still shows the pod as one to
 * be counted. Runs to the end of the job. Rejects where the history does not come about.
 */
export function leaderLeavesAfterCount(): Promise<LeaderChange> {
  return withLeader(async (world, leader, other) => {
    const { clock, rules } = world;
    await makeJob(world);
    await clock.until(() => toCount(world).length === 1);
    await clock.advance(EVENT_MS);
    if (toCount(world).length !== 1) throw new Error('the pod was counted before the watch could lag');
    world.weather.bad(LAG_MS);
    other.lagWatches(PODS, LAG_MS);
    await clock.until(() => jobOf(world)?.status?.succeeded === 1 && toCount(world).length === 0);
    leader.stop();
    await clock.until(() => rules.broken.length > 0 || jobOf(world)?.status?.succeeded === COMPLETIONS);
    const leaders = [identityOf(leader), identityOf(leaderOf(world))];
    return { broken: [...rules.broken], succeeded: jobOf(world)?.status?.succeeded ?? 0, leaders };
  });
}

/**
 * The leader is stopped while it makes the pods of a replica set, a batch after the other, and each request takes long. Runs until
 * the other leads and all is as it should be.
 */
export function leaderIsStoppedAtWork(): Promise<PodsMade> {
  return withLeader(async (world, leader) => {
    const { clock, rules } = world;
    const by = countPods(world);
    leader.slowRequests(SLOW_MS);
    await makeReplicaSet(world);
    await clock.until(() => Object.keys(by).length > 0);
    leader.stop();
    await clock.until(() => leaderOf(world) !== undefined && leaderOf(world) !== leader);
    const next = leaderOf(world);
    await clock.until(() => !leader.isRunning);
    await comesToRest(world);
    return { broken: [...rules.broken], by, leaders: [identityOf(leader), identityOf(next)] };
  });
}

/**
 * The leader stands still while it makes the pods of a replica set, until the other leads and has made the rest, and goes on where it
 * was when it wakes: two lead for a moment. Runs until the one before has ended and all is as it should be.
 */
export function leaderStandsStillAtWork(): Promise<PodsMade> {
  return withLeader(async (world, leader, other) => {
    const { clock, rules } = world;
    const by = countPods(world);
    leader.slowRequests(SLOW_MS);
    await makeReplicaSet(world);
    await clock.until(() => Object.keys(by).length > 0);
    world.weather.bad(2 * STILL_MS);
    leader.pause(STILL_MS);
    await clock.until(() => leaderOf(world) === other);
    await clock.until(() => !leader.isRunning);
    await comesToRest(world);
    return { broken: [...rules.broken], by, leaders: [identityOf(leader), identityOf(leaderOf(world))] };
  });
}
