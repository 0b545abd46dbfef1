// The end of an exercise in a lab that runs: its namespace with its pods, what it changed at the node, and then what is on
// the machine (leave.ts).

import { isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Pod, Stored } from '../../client/types.ts';
import type { Machine } from '../../labs/exercises/model.ts';
import { systemClock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { poll } from '../../lib/retry.ts';
import { NAMESPACE_LABEL } from './begin.ts';
import { removeFromMachine } from './leave.ts';
import { restoreNode } from './saved.ts';
import type { Session } from './session.ts';

/** For giving up only. ms */
const GONE_MS = 300_000;
const LOOK_MS = 100;
/** Pods of an exercise need not end in peace. */
const GRACE_SECONDS = 1;

async function unlessGone(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Resolves when the namespace and its pods are gone. One that no exercise made stays. */
async function removeNamespace({ machine, exercise }: Session): Promise<void> {
  const { client, namespace } = machine;
  const path = resourcePath('v1', 'namespaces', { name: namespace });
  let label: string | undefined;
  const there = await unlessGone(
    client.get<Stored<object>>(path).then(({ metadata }) => {
      label = new Map(Object.entries(metadata.labels ?? {})).get(NAMESPACE_LABEL);
    }),
  );
  if (!there || label !== exercise.name) return;
  const pods = await client.list<Pod>(resourcePath('v1', 'pods', { namespace }));
  for (const { metadata } of pods.items) {
    const at = resourcePath('v1', 'pods', { namespace, name: metadata.name });
    await unlessGone(client.delete(at, { gracePeriodSeconds: GRACE_SECONDS }));
  }
  await unlessGone(client.delete(path));
  const gone = async (): Promise<boolean> => !(await unlessGone(client.get(path)));
  if (!(await poll(gone, { clock: systemClock, everyMs: LOOK_MS, limitMs: GONE_MS })))
    throw new UserError(`the namespace ${namespace} does not go: "nodelet explain" says why of its pods`);
}

/** A static pod is not in the API any more, and a pod that is gone there may still have its sandbox. */
async function sandboxesGone({ cri, namespace }: Machine): Promise<void> {
  const filter = { label_selector: { 'io.kubernetes.pod.namespace': namespace } };
  const gone = async (): Promise<boolean> => (await cri.call('ListPodSandbox', { filter })).items.length === 0;
  if (!(await poll(gone, { clock: systemClock, everyMs: LOOK_MS, limitMs: GONE_MS })))
    throw new UserError(`sandboxes of ${namespace} stay at the runtime: "nodelet crictl --lab pods" lists them`);
}

/** Takes an exercise away, whatever state it is in. Idempotent. */
export async function endExercise(session: Session): Promise<void> {
  const { exercise, machine, paths } = session;
  // The node first: with a broken one, pods may not end.
  await exercise.restore?.(machine);
  await restoreNode(machine, paths);
  await removeNamespace(session);
  await sandboxesGone(machine);
  await removeFromMachine(exercise, paths, machine);
}
