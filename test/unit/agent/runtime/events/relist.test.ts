// When everything is listed under a stream of events: seldom where nothing happens, soon where something did.

import { expect, test } from 'vitest';
import type { CriClient, CriStream } from '../../../../../agent/runtime/cri-client.ts';
import { createCriRuntime } from '../../../../../agent/runtime/cri-runtime.ts';
import { Tracer } from '../../../../../lib/trace.ts';
import { settle, VirtualClock } from '../../../../support/virtual-clock.ts';
import { NODE } from '../fixtures.ts';

function start() {
  const clock = new VirtualClock();
  const lists: number[] = [];
  let onEvent: Parameters<CriClient['containerEvents']>[0] = () => undefined;
  const stream = (): CriStream => ({ ended: new Promise(() => undefined), cancel: () => undefined });
  const call = async (method: string): Promise<unknown> => {
    if (method === 'ListContainers') lists.push(clock.monotonic() / 1000);
    return { items: [], containers: [] };
  };
  const client: CriClient = {
    call: call as CriClient['call'],
    containerEvents: (listener) => {
      onEvent = listener;
      return stream();
    },
    containerdEvents: stream,
    close: () => undefined,
  };
  const runtime = createCriRuntime({ endpoint: 'none', client, clock, tracer: new Tracer(), node: NODE });
  runtime.watch(() => undefined);
  const removed = (): void =>
    onEvent({
      container_id: 'c1',
      container_event_type: 'CONTAINER_DELETED_EVENT',
      created_at: '0',
      pod_sandbox_status: null,
      containers_statuses: [],
    });
  /** Seconds between the lists of the next `seconds`. */
  const pauses = async (seconds: number): Promise<number[]> => {
    const before = lists.length;
    await clock.advance(seconds * 1000);
    return lists
      .slice(Math.max(before, 1))
      .map((at, index) => Math.round(at - (lists[Math.max(before, 1) + index - 1] ?? 0)));
  };
  return { clock, runtime, removed, pauses };
}

test('lists become rarer where nothing happens, and come soon after an event', async () => {
  const { runtime, removed, pauses, clock } = start();
  expect(await pauses(200)).toEqual([10, 20, 40, 60, 60]);
  const at = clock.monotonic();
  removed();
  await settle();
  expect(clock.monotonic()).toBe(at);
  // The list before it was 10 s ago, and the one after it comes within 10 s.
  expect(await pauses(90)).toEqual([20, 10, 20, 40]);
  runtime.close();
});

test('there are no further lists where others list everything often enough', async () => {
  const { runtime, pauses, clock } = start();
  const housekeeping = (): void => {
    void runtime.listPods();
    clock.after(40_000, housekeeping);
  };
  clock.after(40_000, housekeeping);
  expect(await pauses(220)).toEqual([10, 20, 10, 40, 40, 40, 40]);
  runtime.close();
});
