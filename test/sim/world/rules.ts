// The rules that hold at every moment, and the place where breaking one is noted. What looks at the whole world after
// every step is in invariants.ts; here is what can only be checked in the moment that something is done.

import type { ContainerSpec, PodUID } from '../../../agent/ports/runtime.ts';
import { ANNOTATION_RESTART_COUNT } from '../../../agent/runtime/config/labels.ts';
import type { Container, Pod } from '../../../client/types.ts';
import type { Instance, RuledInstance } from '../../../labs/sim/cri/state.ts';
import type { Prerequisites, RuntimeRules } from '../../../labs/sim/witness.ts';
import { isSidecar } from '../../../lib/sidecar.ts';

export class Rules implements RuntimeRules {
  readonly broken: string[] = [];
  /** How often each container of a pod was started since it was last given a reason to, by "uid/name". */
  readonly #starts = new Map<string, { image: string | undefined; count: number }>();

  break(what: string): void {
    this.broken.push(what);
  }

  /** The runtime has lost sight of a container, or its image was edited: it is run again whatever the policy. */
  mayRunAgain(uid: PodUID, container: string): void {
    this.#starts.delete(`${uid}/${container}`);
  }

  /** The config of a container says what the agent meant it to be. */
  containerCreated({ id, config, spec, restartCount, sandboxId }: Instance): void {
    if (spec.sandboxId !== sandboxId) this.break(`${id} was made in ${sandboxId} instead of ${spec.sandboxId}`);
    if (config.log_path !== `${spec.container.name}/${restartCount}.log`)
      this.break(`${id} logs to ${config.log_path}`);
    const counted = config.annotations[ANNOTATION_RESTART_COUNT];
    if (counted !== String(restartCount)) this.break(`${id} is attempt ${restartCount} and says ${counted}`);
  }

  /** A process begins. `instances`: all of the pod that the runtime knows, this one left out. */
  containerStarts(
    spec: ContainerSpec,
    sandboxId: string,
    instances: readonly RuledInstance[],
    has: Prerequisites,
  ): void {
    const { pod, container, type } = spec;
    const { uid, name: podName } = pod.metadata;
    const who = `${podName}/${container.name}`;
    if (instances.some(({ name, alive }) => name === container.name && alive)) {
      this.break(`${who} was started while its predecessor runs`);
    }
    if (!has.hasVolumes(pod)) this.break(`${who} was started before the volumes of its pod were mounted`);
    if (!has.hasCgroup(uid as PodUID)) this.break(`${who} was started without the cgroup of its pod`);
    const key = `${uid}/${container.name}`;
    const { image } = container;
    const before = this.#starts.get(key);
    const starts = before !== undefined && before.image === image ? before.count + 1 : 1;
    this.#starts.set(key, { image, count: starts });
    if (type === 'ephemeral' && starts > 1) this.break(`ephemeral container ${who} was started again`);
    const policy = ('restartPolicy' in container ? container.restartPolicy : undefined) ?? pod.spec.restartPolicy;
    // An init container runs again in a new sandbox, whatever the policy.
    if (type === 'container' && policy === 'Never' && starts > 1) this.break(`${who} must never restart, and did`);
    if (type === 'ephemeral') return;
    const here = instances.filter((instance) => instance.sandboxId === sandboxId);
    for (const earlier of this.#before(pod, container)) {
      const done = here.some(
        (instance) =>
          instance.name === earlier.name &&
          (isSidecar(earlier) ? instance.begun : instance.begun && !instance.alive && instance.exitCode === 0),
      );
      if (!done) this.break(`${who} was started before init container ${earlier.name} was through`);
    }
  }

  /** Init containers that come before a container. */
  #before(pod: Pod, container: ContainerSpec['container']): readonly Container[] {
    const init = pod.spec.initContainers ?? [];
    const index = init.findIndex(({ name }) => name === container.name);
    return index < 0 ? init : init.slice(0, index);
  }
}
