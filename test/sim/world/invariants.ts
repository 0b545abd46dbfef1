// What must hold at every moment: checked after every step over the whole world, and at every write of the agent. What
// is checked when a container starts is in rules.ts; what must hold once all is quiet in rest.ts.

import { isMirrorPod } from '../../../agent/model/static-pods.ts';
import { isTerminalPhase } from '../../../agent/pods/phase.ts';
import type { PodUID } from '../../../agent/ports/runtime.ts';
import type { Pod, PodStatus } from '../../../client/types.ts';
import type { ApiWitness } from '../../../labs/sim/api-server.ts';
import type { PodRecord } from '../../../labs/sim/cri/state.ts';
import { FOREIGN_CONDITION } from '../../../labs/sim/foreign.ts';

import type { World } from './world.ts';

const RANK: Readonly<Record<string, number>> = { Pending: 0, Running: 1, Succeeded: 2, Failed: 2 };

function containerStatuses(status: PodStatus | undefined) {
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = status ?? {};
  return [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses];
}

interface Seen {
  version: string;
  phase: string;
  readonly restarts: Map<string, number>;
}

export class Invariants implements ApiWitness {
  readonly #world: World;
  /** What the API server showed of each pod, by uid. */
  readonly #seen = new Map<string, Seen>();

  constructor(world: World) {
    this.#world = world;
  }

  /** After every step. */
  check(): void {
    const { runtime, api, network } = this.#world;
    for (const record of runtime.state.pods.values()) this.#checkRecord(record);
    for (const [address, holder] of network.leases) {
      // From ADD to DEL a sandbox has a namespace; what the runtime has forgotten is collected in time.
      if (network.namespaces.has(holder) || network.abandoned.has(holder)) continue;
      this.#world.rules.break(`${address}: an address is held for ${holder}, which is gone`);
    }
    for (const pod of api.pods.values()) this.#checkObject(pod);
  }

  #checkRecord({ ref, sandboxes, instances }: PodRecord): void {
    const { rules } = this.#world;
    let live = 0;
    for (const { id, state, ips } of sandboxes) {
      if (state !== 'ready') continue;
      live++;
      for (const address of ips) {
        const holder = this.#world.network.leases.get(address);
        if (holder !== id) rules.break(`${id} of ${ref.name} has ${address}, which is held by ${holder}`);
      }
    }
    if (live > 1) rules.break(`${live} live sandboxes for pod ${ref.name}`);
    for (const [index, instance] of instances.entries()) {
      if (instance.process === undefined) continue;
      for (const other of instances.slice(index + 1)) {
        if (other.process === undefined || other.name !== instance.name) continue;
        rules.break(`two instances of ${ref.name}/${instance.name} run at once`);
      }
    }
  }

  #checkObject(pod: Pod): void {
    const { uid, name, resourceVersion } = pod.metadata;
    const seen = this.#seen.get(uid);
    if (seen?.version === resourceVersion) return;
    const phase = pod.status?.phase ?? 'Pending';
    const { rules } = this.#world;
    // A static pod that ended may run again, since its manifest came back: its mirror then begins anew.
    const fresh = seen === undefined || (isMirrorPod(pod) && isTerminalPhase(seen.phase));
    const restarts = fresh ? new Map<string, number>() : seen.restarts;
    if (!fresh) {
      const back = (RANK[phase] ?? 0) < (RANK[seen.phase] ?? 0);
      if (back || (isTerminalPhase(seen.phase) && phase !== seen.phase)) {
        rules.break(`the phase of ${name} went from ${seen.phase} to ${phase}`);
      }
    }
    for (const { name: container, restartCount } of containerStatuses(pod.status)) {
      const known = restarts.get(container) ?? 0;
      if (restartCount < known)
        rules.break(`restartCount of ${name}/${container} went from ${known} to ${restartCount}`);
      restarts.set(container, restartCount);
    }
    this.#seen.set(uid, { version: resourceVersion, phase, restarts });
  }

  /** Something of a pod is given back by the agent: nothing of the pod may still run. */
  givenBack(uid: PodUID, what: string): void {
    const alive = (this.#world.runtime.state.pods.get(uid)?.instances ?? []).filter(
      ({ process }) => process !== undefined,
    );
    for (const { id } of alive) this.#world.rules.break(`the ${what} of ${id} went while it runs`);
  }

  /** Something is unmounted: no process of its pod may have it. */
  unmounted(path: string): void {
    const [, uid] = /\/pods\/([^/]+)\//.exec(path) ?? [];
    if (uid !== undefined) this.givenBack(uid as PodUID, `mount ${path}`);
  }

  statusWritten(before: Pod, after: Pod): void {
    const { rules, runtime, journal } = this.#world;
    const { name, uid } = after.metadata;
    const counts = containerStatuses(after.status).map((each) => `${each.name}:${each.restartCount}`);
    journal.note(`status of ${name}: ${after.status?.phase} ${after.status?.reason ?? ''} ${counts.join(' ')}`);
    this.#checkLastEnds(before, after);
    const { timing } = this.#world;
    if (before.status?.startTime === undefined) timing.podBegan(after);
    if (after.status?.reason === 'DeadlineExceeded' && before.status?.reason === undefined) {
      timing.deadlineReported(after);
    }
    const foreign = ({ status }: Pod) => status?.conditions?.find(({ type }) => type === FOREIGN_CONDITION)?.status;
    if (foreign(before) !== foreign(after)) rules.break(`a condition of another writer on ${name} was changed`);
    const [from, to] = [before.status?.phase, after.status?.phase];
    if (!isTerminalPhase(to) || isTerminalPhase(from) || isMirrorPod(after)) return;
    for (const { id, process } of runtime.state.pods.get(uid as PodUID)?.instances ?? []) {
      if (process !== undefined) rules.break(`${name} is reported ${to} while ${id} runs`);
    }
  }

  /** An end that policy makes the last is never taken back: an API server refuses it. */
  #checkLastEnds(before: Pod, after: Pod): void {
    const { restartPolicy, containers } = after.spec;
    if (restartPolicy === undefined || restartPolicy === 'Always' || isMirrorPod(after)) return;
    for (const { name, state } of before.status?.containerStatuses ?? []) {
      const own = containers.find((container) => container.name === name)?.restartPolicy !== undefined;
      const end = state?.terminated;
      if (own || end === undefined || (restartPolicy === 'OnFailure' && end.exitCode !== 0)) continue;
      const now = after.status?.containerStatuses?.find((status) => status.name === name);
      if (now !== undefined && now.state?.terminated === undefined) {
        this.#world.rules.break(`the last end of ${after.metadata.name}/${name} was taken back`);
      }
    }
  }

  deleted(pod: Pod, graceSeconds: number): void {
    this.#world.timing.podDeleted(pod, graceSeconds);
  }

  finalized(pod: Pod): void {
    if (isMirrorPod(pod)) return;
    const { rules, runtime, volumes, cgroups } = this.#world;
    const { name } = pod.metadata;
    const uid = pod.metadata.uid as PodUID;
    if (pod.metadata.deletionTimestamp === undefined) rules.break(`${name} was finalized although it was not deleted`);
    const record = runtime.state.pods.get(uid);
    if (record?.instances.some(({ process }) => process !== undefined)) {
      rules.break(`${name} was finalized while a container of it runs`);
    }
    if (volumes.has(uid)) rules.break(`${name} was finalized while its volumes are there`);
    if (cgroups.pods.has(uid)) rules.break(`${name} was finalized while it has a cgroup`);
  }
}
