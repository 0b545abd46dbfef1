// A cache to apply inputs to, and snapshots with nothing special about them.

import { podUID } from '../../../../../agent/model/pod-uid.ts';
import type { ContainerSnapshot, PodRef, SandboxSnapshot } from '../../../../../agent/ports/runtime.ts';
import type { CacheChange, CacheInput, ListInput } from '../../../../../agent/runtime/cache/inputs.ts';
import { emptyCache } from '../../../../../agent/runtime/cache/records.ts';
import { reduce } from '../../../../../agent/runtime/cache/reduce.ts';
import { containerId, sandboxId } from '../../../../../agent/runtime/convert.ts';
import { epochMs, monotonicMs } from '../../../../../lib/clock.ts';
import type { ContainerStatus__Output } from '../../../../../proto/gen/runtime/v1/ContainerStatus.ts';

export const POD: PodRef = { uid: podUID('u1'), namespace: 'ns', name: 'pod' };
export const OTHER: PodRef = { uid: podUID('u2'), namespace: 'ns', name: 'other' };
export const NOW = epochMs(1_000_000);

export function sandbox(overrides: Partial<SandboxSnapshot> = {}): SandboxSnapshot {
  return {
    id: sandboxId('s1'),
    attempt: 0,
    state: 'ready',
    createdAt: epochMs(1000),
    ips: [],
    hostNetwork: false,
    runtimeHandler: '',
    ...overrides,
  };
}

export function container(overrides: Partial<ContainerSnapshot> = {}): ContainerSnapshot {
  return {
    id: containerId('c1'),
    sandboxId: sandboxId('s1'),
    name: 'main',
    type: 'container',
    restartCount: 0,
    hash: 'h',
    state: 'created',
    createdAt: epochMs(2000),
    startedAt: epochMs(0),
    finishedAt: epochMs(0),
    exitCode: 0,
    reason: '',
    message: '',
    image: 'busybox',
    imageId: '',
    logPath: '',
    ...overrides,
  };
}

export const RUNNING = { state: 'running', startedAt: epochMs(3000), imageId: 'sha256:1', logPath: '/0.log' } as const;
export const EXITED = {
  ...RUNNING,
  state: 'exited',
  finishedAt: epochMs(4000),
  exitCode: 3,
  reason: 'Error',
  message: 'bye',
} as const;

export const STATUS: ContainerStatus__Output = {
  id: 'c1',
  metadata: null,
  state: 'CONTAINER_RUNNING',
  created_at: '0',
  started_at: '0',
  finished_at: '0',
  exit_code: 0,
  image: null,
  image_ref: '',
  reason: '',
  message: '',
  labels: {},
  annotations: {},
  mounts: [],
  log_path: '',
  resources: null,
  image_id: '',
  user: null,
  stop_signal: 'RUNTIME_DEFAULT',
};

/** A cache under test: applies inputs and remembers what they changed. */
export class Applied {
  readonly state = emptyCache();
  /** "died c1", in order. */
  readonly changes: string[] = [];
  last: readonly CacheChange[] = [];

  apply(...inputs: readonly CacheInput[]): this {
    for (const input of inputs) {
      this.last = reduce(this.state, input, NOW).changes;
      this.changes.push(...this.last.map(({ type, id }) => `${type} ${id}`));
    }
    return this;
  }

  /** Forgets the changes so far. */
  quiet(): this {
    this.changes.length = 0;
    return this;
  }

  /** Everything or one pod, as requested after `seqBefore`, by default now. */
  list(
    items: Partial<Pick<ListInput, 'pod' | 'seqBefore'>> & { s?: SandboxSnapshot[]; c?: ContainerSnapshot[] },
  ): this {
    const { s = [], c = [], seqBefore = this.state.seq, pod } = items;
    return this.apply({
      kind: 'list',
      seqBefore,
      beganAt: monotonicMs(0),
      pod,
      sandboxes: s.map((snapshot) => ({ pod: POD, snapshot })),
      containers: c.map((snapshot) => ({ pod: POD, snapshot })),
    });
  }

  status(snapshot: ContainerSnapshot | undefined, seqBefore = this.state.seq, id = 'c1'): this {
    const read =
      snapshot === undefined
        ? undefined
        : { pod: POD, snapshot: { ...snapshot, sandboxId: sandboxId('') }, status: STATUS };
    return this.apply({ kind: 'containerStatus', id, seqBefore, container: read });
  }

  sandboxStatus(snapshot: SandboxSnapshot | undefined, seqBefore = this.state.seq, id = 's1'): this {
    const read = snapshot === undefined ? undefined : { pod: POD, snapshot };
    return this.apply({ kind: 'sandboxStatus', id, seqBefore, sandbox: read });
  }

  container(id = 'c1') {
    const record = this.state.records.get(id);
    if (record?.kind !== 'container') throw new Error(`no container ${id}`);
    return record;
  }

  sandbox(id = 's1') {
    const record = this.state.records.get(id);
    if (record?.kind !== 'sandbox') throw new Error(`no sandbox ${id}`);
    return record;
  }
}
