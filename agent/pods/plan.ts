// Collects the actions of one decision: starts (unless back-off is not over), kills and resizes. Decides for no container
// whether it should run: that is for computePodActions and computeInitContainerActions.

import type { Container, EphemeralContainer } from '../../client/types.ts';
import { earlier } from '../../lib/clock.ts';
import type { ContainerSnapshot, SandboxSnapshot } from '../ports/runtime.ts';
import { hashContainer } from './hash.ts';
import type { KillReason, PodAction, PodActions, ResizeAction, WaitingFor } from './pod-action.ts';
import { newestEnded, newestOf, type PodFacts } from './pod-facts.ts';
import { containerResize } from './resize/resize-actions.ts';
import { crashLoopMessage, restartBackoffKey, restartNotBefore } from './restart-backoff.ts';
import { nextRestartCount } from './restart-count.ts';

/** Collects the actions of one decision; what must wait goes to `waiting` instead. */
export class Plan {
  readonly actions: PodAction[] = [];
  readonly waiting = new Map<string, WaitingFor>();
  readonly #facts: PodFacts;
  readonly #sandbox: SandboxSnapshot;
  readonly #planned = new Set<string>();
  readonly #resizes: ResizeAction['updates'][number][] = [];

  constructor(facts: PodFacts, sandbox: SandboxSnapshot) {
    this.#facts = facts;
    this.#sandbox = sandbox;
  }

  /** Plans the start of a container, unless it is under way already or its back-off is not over. */
  start(container: Container | EphemeralContainer, type: ContainerSnapshot['type']): void {
    const { snapshot, starting, killing, pod, now, backoffPolicy } = this.#facts;
    if (starting.has(container.name) || this.#planned.has(container.name)) return;
    const newest = newestOf(snapshot, container.name);
    // Never two instances at once: the old one must be seen dead first.
    if (newest !== undefined && killing.has(newest.id)) return;
    // An agent before this one saw an older one dead and made this one; the runtime may show that end only later.
    const older = snapshot.containers.find(
      ({ name, id, state }) =>
        name === container.name && id !== newest?.id && (state === 'running' || state === 'unknown'),
    );
    if (older?.state === 'unknown') {
      this.kill(older, 'unknownState', 'Container is in "unknown" state, try killing it before restart', true);
    }
    if (older !== undefined) return;
    this.#planned.add(container.name);
    const hash = hashContainer(container);
    const ownEnd = newestEnded(snapshot, container.name)?.finishedAt;
    const wanted = this.#facts.restartWanted.get(container.name) ?? 'waited';
    const decidingEnd = wanted === 'waited' ? ownEnd : wanted.endedBefore;
    if (ownEnd !== undefined && decidingEnd !== undefined) {
      const entry = this.#facts.backoff.get(restartBackoffKey(container.name, hash));
      const until = restartNotBefore(backoffPolicy, entry, ownEnd, now, decidingEnd);
      if (until !== undefined && entry !== undefined) {
        const message = crashLoopMessage(entry.delayMs, container.name, pod);
        this.waiting.set(container.name, { reason: 'CrashLoopBackOff', message, until });
        return;
      }
    }
    // One that was made before a resize would run with the earlier allocation.
    const outdated = newest !== undefined && this.#facts.resize?.actual.has(newest.id) === true;
    const reusable =
      newest?.state === 'created' && newest.sandboxId === this.#sandbox.id && newest.hash === hash && !outdated
        ? newest
        : undefined;
    const superseded = snapshot.containers
      .filter(({ name, state, id }) => name === container.name && state === 'created' && id !== reusable?.id)
      .map(({ id }) => id);
    this.actions.push({
      kind: 'startContainer',
      type,
      container,
      hash,
      restartCount: reusable?.restartCount ?? nextRestartCount(container.name, snapshot, this.#facts.previous),
      sandbox: this.#sandbox,
      ...(reusable === undefined ? {} : { created: reusable.id }),
      ...(superseded.length === 0 ? {} : { superseded }),
      ...(ownEnd === undefined || decidingEnd === undefined ? {} : { previousFinishedAt: ownEnd }),
    });
  }

  /** Plans to stop an instance, unless that is under way. With `thenStart` it runs again once it is dead. */
  kill(container: ContainerSnapshot, reason: KillReason, message: string, thenStart: boolean): void {
    if (this.#facts.killing.has(container.id)) return;
    const endedBefore = newestEnded(this.#facts.snapshot, container.name)?.finishedAt;
    this.actions.push({ kind: 'killContainer', container, reason, message, thenStart, endedBefore });
  }

  /** Plans the resize of a running instance; true when the resize needs a restart. */
  resize(container: Container, newest: ContainerSnapshot): boolean {
    const from = this.#facts.resize?.actual.get(newest.id);
    const verdict = from === undefined ? 'none' : containerResize(container, from);
    if (verdict === 'restart') {
      this.kill(newest, 'resize', `Container ${container.name} resize requires restart`, true);
    } else if (verdict === 'update' && from !== undefined) this.#resizes.push({ instance: newest, container, from });
    return verdict === 'restart';
  }

  #finishResize(): void {
    const { resize } = this.#facts;
    if (resize === undefined) return;
    const updates = this.#resizes;
    // First of all, lest a container grow, or start again, in too small a cgroup.
    const done = resize.actual.size === 0 && !resize.startsOutdated;
    if (!resize.cgroupEnlarged || updates.length > 0 || done) {
      const sandboxId = this.#facts.snapshot.sandboxes.find(({ state }) => state === 'ready')?.id;
      this.actions.unshift({ kind: 'resizePod', sandboxId, updates });
    }
  }

  done(): PodActions {
    this.#finishResize();
    const ends = [...this.waiting.values()].map(({ until }) => until);
    const first = ends.length === 0 ? {} : { wakeAt: ends.reduce((a, b) => earlier(a, b)) };
    return { actions: this.actions, waiting: this.waiting, ...first };
  }
}
