// What makes pods: a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job, with the numbers of its status, the pods that it has and
// the events of whatever creates them.

import { resourcePath } from '../../../client/paths.ts';
import type { Pod, Stored } from '../../../client/types.ts';
import { UserError } from '../../../lib/errors.ts';
import type { WorkloadFacts, WorkloadKind } from '../facts.ts';
import { absent } from './absent.ts';
import { collectEvents } from './events.ts';
import { Gaps, type Sources } from './source.ts';

interface Workload extends Stored<object> {
  readonly spec?: { readonly replicas?: number; readonly parallelism?: number; readonly completions?: number };
  readonly status?: {
    readonly replicas?: number;
    readonly readyReplicas?: number;
    readonly active?: number;
    readonly ready?: number;
    readonly succeeded?: number;
    readonly desiredNumberScheduled?: number;
    readonly currentNumberScheduled?: number;
    readonly numberReady?: number;
  };
}

interface Owned {
  readonly metadata: { readonly ownerReferences?: readonly { readonly uid: string }[] };
}

const KINDS: Readonly<Record<WorkloadKind, { readonly kind: string; readonly apiVersion: string }>> = {
  deployment: { kind: 'Deployment', apiVersion: 'apps/v1' },
  replicaset: { kind: 'ReplicaSet', apiVersion: 'apps/v1' },
  statefulset: { kind: 'StatefulSet', apiVersion: 'apps/v1' },
  daemonset: { kind: 'DaemonSet', apiVersion: 'apps/v1' },
  job: { kind: 'Job', apiVersion: 'batch/v1' },
};

/** How many pods there should be, are, and are Ready. Pure. */
export function counts(kind: WorkloadKind, { spec = {}, status = {} }: Workload): WorkloadFacts['counts'] {
  switch (kind) {
    case 'daemonset':
      return {
        wanted: status.desiredNumberScheduled ?? 0,
        present: status.currentNumberScheduled ?? 0,
        ready: status.numberReady ?? 0,
      };
    case 'job': {
      const { active = 0, ready = 0, succeeded = 0 } = status;
      const left = spec.completions === undefined ? Number.POSITIVE_INFINITY : spec.completions - succeeded;
      return { wanted: Math.max(0, Math.min(spec.parallelism ?? 1, left)), present: active, ready };
    }
    default:
      return { wanted: spec.replicas ?? 1, present: status.replicas ?? 0, ready: status.readyReplicas ?? 0 };
  }
}

/** Rejects with UserError when there is no such object. */
export async function collectWorkload(
  sources: Sources,
  kind: WorkloadKind,
  namespace: string,
  name: string,
): Promise<WorkloadFacts> {
  const { client } = sources;
  const gaps = new Gaps();
  const { kind: ownKind, apiVersion } = KINDS[kind];
  const path = (plural: string, more: object = {}): string => resourcePath(apiVersion, plural, { namespace, ...more });
  const lookup = await gaps.lookup(kind, () => client.get<Workload>(path(`${kind}s`, { name })));
  if (lookup.state === 'unknown') throw new UserError(`the ${kind} cannot be read: ${lookup.why}`);
  const list = <T>(what: string, at: string): Promise<readonly T[]> =>
    gaps.attempt<readonly T[]>(what, [], async () => (await client.list<T>(at)).items);
  if (lookup.state === 'absent') {
    const others = await list<Stored<object>>(`${kind}s`, path(`${kind}s`));
    const names = others.map(({ metadata }) => metadata.name);
    throw absent(kind, namespace, name, names);
  }
  const own = lookup.value;
  const ownedBy = (uids: ReadonlySet<string>) => (object: Owned) =>
    (object.metadata.ownerReferences ?? []).some(({ uid }) => uids.has(uid));
  // A Deployment's pods are made by its ReplicaSets.
  const sets =
    kind === 'deployment'
      ? (await list<Workload & Owned>('replicasets', path('replicasets'))).filter(ownedBy(new Set([own.metadata.uid])))
      : [];
  const makers = [{ kind: ownKind, object: own }, ...sets.map((object) => ({ kind: KINDS.replicaset.kind, object }))];
  const [pods, ...events] = await Promise.all([
    list<Pod & Owned>('pods', resourcePath('v1', 'pods', { namespace })),
    ...makers.map((maker) =>
      collectEvents(sources, gaps, maker.kind, {
        namespace,
        name: maker.object.metadata.name,
        uid: maker.object.metadata.uid,
      }),
    ),
  ]);
  const uids = new Set(makers.map(({ object }) => object.metadata.uid));
  return {
    kind: 'workload',
    now: sources.now(),
    gaps: gaps.list,
    events: events.flat().toSorted((a, b) => a.last - b.last),
    workload: { kind: ownKind, namespace, name },
    counts: counts(kind, own),
    pods: pods.filter(ownedBy(uids)),
  };
}
