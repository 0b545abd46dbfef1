// One history that is written down, not drawn: the leader counts a pod of a job and gives its lease up, while the other
// control plane's watch of pods lags and still shows the pod as one to be counted. Random histories come to this rarely.

import type { Lease, Pod } from '../../../client/types.ts';
import type { Job } from '../../../controlplane/controllers/shared/objects.ts';
import type { ControlPlaneProcess } from '../../../labs/sim/control-plane/process.ts';
import { controllerKind } from './facts.ts';
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

export interface LeaderChange {
  /** Rules that were broken. */
  readonly broken: readonly string[];
  readonly succeeded: number;
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

/** Runs it, to the end of the job. Rejects where the history does not come about. */
export async function runLeaderChange(): Promise<LeaderChange> {
  const world = new ControlPlaneWorld(SEED);
  const { clock, rules } = world;
  try {
    await world.begin();
    await clock.until(() => leaderOf(world) !== undefined);
    const before = leaderOf(world);
    await makeJob(world);
    await clock.until(() => toCount(world).length === 1);
    await clock.advance(EVENT_MS);
    if (toCount(world).length !== 1) throw new Error('the pod was counted before the watch could lag');
    const others = world.processes.filter((process) => process !== before);
    world.weather.bad(LAG_MS);
    for (const other of others) other.lagWatches(PODS, LAG_MS);
    await clock.until(() => jobOf(world)?.status?.succeeded === 1 && toCount(world).length === 0);
    before?.stop();
    const isOver = (): boolean => jobOf(world)?.status?.succeeded === COMPLETIONS;
    await clock.until(() => rules.broken.length > 0 || isOver());
    const after = leaderOf(world);
    return {
      broken: [...rules.broken],
      succeeded: jobOf(world)?.status?.succeeded ?? 0,
      leaders: [before?.identity ?? '', after?.identity ?? ''],
    };
  } finally {
    world.end();
  }
}
