// Which dead containers and sandboxes of a living pod may be removed. Pure.

import type { ContainerSnapshot, PodSnapshot, SandboxSnapshot } from '../ports/runtime.ts';

export interface Garbage {
  readonly containers: readonly ContainerSnapshot[];
  readonly sandboxes: readonly SandboxSnapshot[];
}

/** All but the newest `keep` dead instances of each container, and dead sandboxes that hold none of the rest. */
export function computeGarbage(snapshot: PodSnapshot, keep: number): Garbage {
  const dead = new Map<string, number>();
  const newest = new Set<string>();
  const containers = snapshot.containers.filter((container) => {
    const isNewest = !newest.has(container.name);
    newest.add(container.name);
    if (container.state === 'running' || container.state === 'unknown') return false;
    // One that was created but not started yet may be about to.
    if (isNewest && container.state === 'created') return false;
    const count = (dead.get(container.name) ?? 0) + 1;
    dead.set(container.name, count);
    return count > keep;
  });
  const removed = new Set(containers.map((container) => container.id));
  const needed = new Set(snapshot.containers.filter(({ id }) => !removed.has(id)).map(({ sandboxId }) => sandboxId));
  const sandboxes = snapshot.sandboxes.slice(1).filter(({ id, state }) => state === 'notReady' && !needed.has(id));
  return { containers, sandboxes };
}
