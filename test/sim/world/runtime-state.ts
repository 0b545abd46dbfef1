// What a simulated container runtime holds: sandboxes and containers by pod, newest first, and the names they have taken.
// It only keeps; what is done to it is in runtime.ts.

import {
  type ContainerId,
  type ContainerSnapshot,
  type ContainerSpec,
  type PodRef,
  type PodSnapshot,
  type PodUID,
  RuntimeError,
  type SandboxId,
  type SandboxSnapshot,
} from '../../../agent/ports/runtime.ts';
import type { Pod } from '../../../client/types.ts';
import type { Claim } from './line.ts';
import type { Process } from './processes.ts';

export interface Sandbox {
  snapshot: SandboxSnapshot;
  readonly pod: PodRef;
}

export interface Instance {
  /** Replaced whenever something changes, so that it can be handed out as it is. */
  snapshot: ContainerSnapshot;
  readonly pod: PodRef;
  readonly spec: ContainerSpec;
  process: Process | undefined;
}

/** What the runtime has of one pod, newest first. */
export interface PodRecord {
  readonly ref: PodRef;
  readonly sandboxes: Sandbox[];
  readonly instances: Instance[];
}

export function containerName(uid: string, name: string, restartCount: number): string {
  return `${uid}_${name}_${restartCount}`;
}

export class RuntimeState {
  readonly pods = new Map<PodUID, PodRecord>();
  readonly names = new Set<string>();

  *instances(): Iterable<Instance> {
    for (const record of this.pods.values()) yield* record.instances;
  }

  *sandboxes(): Iterable<Sandbox> {
    for (const record of this.pods.values()) yield* record.sandboxes;
  }

  record(pod: Pod): PodRecord {
    const { uid, namespace, name } = pod.metadata;
    const key = uid as PodUID;
    let record = this.pods.get(key);
    if (record === undefined) {
      record = { ref: { uid: key, namespace, name }, sandboxes: [], instances: [] };
      this.pods.set(key, record);
    }
    return record;
  }

  tidy(record: PodRecord): void {
    if (record.sandboxes.length === 0 && record.instances.length === 0) this.pods.delete(record.ref.uid);
  }

  sandbox(id: SandboxId): Sandbox | undefined {
    for (const sandbox of this.sandboxes()) if (sandbox.snapshot.id === id) return sandbox;
    return undefined;
  }

  instance(id: ContainerId): Instance | undefined {
    for (const instance of this.instances()) if (instance.snapshot.id === id) return instance;
    return undefined;
  }

  /** A name is taken from the beginning of the making until the removal, as in containerd. */
  claim(call: string, name: string): Claim {
    return {
      take: () => {
        if (this.names.has(name)) {
          throw new RuntimeError(call, 'UNKNOWN', `failed to reserve name "${name}": name is reserved`);
        }
        this.names.add(name);
      },
      drop: () => void this.names.delete(name),
    };
  }

  snapshot(ref: PodRef, observedAt: number): PodSnapshot {
    const record = this.pods.get(ref.uid);
    return {
      pod: ref,
      sandboxes: (record?.sandboxes ?? []).map(({ snapshot }) => snapshot),
      containers: (record?.instances ?? []).map(({ snapshot }) => snapshot),
      observedAt,
    };
  }
}
