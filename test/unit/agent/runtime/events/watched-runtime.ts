// A CRI adapter in front of a fake runtime, whose events a test can wait for.

import { onTestFinished } from 'vitest';
import { podUID } from '../../../../../agent/model/pod-uid.ts';
import type { PodLifecycleEvent } from '../../../../../agent/ports/runtime.ts';
import { createCriRuntime } from '../../../../../agent/runtime/cri-runtime.ts';
import type { CriRuntimeOptions } from '../../../../../agent/runtime/options.ts';
import type { CriRuntime } from '../../../../../agent/runtime/types.ts';
import { systemClock } from '../../../../../lib/clock.ts';
import { Tracer } from '../../../../../lib/trace.ts';
import { loadProto } from '../../../../../proto/load.ts';
import { FakeCri } from '../fake-cri.ts';
import { NODE } from '../fixtures.ts';

const types = loadProto('containerd-tasks').containerd.events;
export const POD = { uid: podUID('u1'), namespace: 'ns', name: 'pod-u1' };

export interface Setup {
  readonly fake: FakeCri;
  readonly runtime: CriRuntime;
  readonly events: PodLifecycleEvent[];
  /** Resolves with the first event, past or to come, that `matches`. */
  next(matches: (event: PodLifecycleEvent) => boolean): Promise<PodLifecycleEvent>;
}

/** A runtime with one pod of one running container, watched until the test ends. */
export async function setup(
  serves: { cri: boolean; containerd: boolean },
  options: Partial<CriRuntimeOptions> = {},
): Promise<Setup> {
  const fake = await FakeCri.start(serves);
  fake.addSandbox('s1', 'u1');
  fake.addContainer('c1', 'u1', 's1');
  const runtime = createCriRuntime({
    endpoint: `unix://${fake.socket}`,
    tracer: new Tracer(),
    clock: systemClock,
    node: NODE,
    ...options,
  });
  // No hook of this module: files of one worker share it, and a hook is that of the file which loads it first.
  onTestFinished(async () => {
    runtime.close();
    await fake.stop();
  });
  const events: PodLifecycleEvent[] = [];
  const waiters = new Set<(event: PodLifecycleEvent) => void>();
  runtime.watch((event) => {
    events.push(event);
    for (const waiter of waiters) waiter(event);
  });
  const next = (matches: (event: PodLifecycleEvent) => boolean): Promise<PodLifecycleEvent> => {
    const past = events.find(matches);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((resolve) => {
      const waiter = (event: PodLifecycleEvent): void => {
        if (!matches(event)) return;
        waiters.delete(waiter);
        resolve(event);
      };
      waiters.add(waiter);
    });
  };
  return { fake, runtime, events, next };
}

export function sendExit(fake: FakeCri, id: string, exit_status = 3): void {
  const exited_at = { seconds: 100, nanos: 0 };
  const value = types.TaskExit.serialize({ container_id: id, id, exit_status, exited_at });
  for (const stream of fake.streams.containerd) {
    stream.write({
      namespace: 'k8s.io',
      topic: '/tasks/exit',
      timestamp: { seconds: 100, nanos: 0 },
      event: { type_url: 'containerd.events.TaskExit', value },
    });
  }
}

export const EXITED = { state: 'CONTAINER_EXITED', exit_code: 3, finished_at: '100000000000' } as const;
