// A recorded runtime answers a client of another run: its own UIDs and ids, and a history that makes sense.

import { expect, test } from 'vitest';
import { ReplayPlan } from '../../../../cli/tap/replay-plan.ts';
import { loadSchema } from '../../../../cli/tap/schema.ts';
import {
  containerConfig,
  IDS_A,
  IDS_B,
  id,
  METHODS,
  type MethodName,
  podLife,
  recordingOf,
  requestBytes,
  sandboxConfig,
  type TestCall,
} from './messages.ts';

const FRESH = id('e');

class Stand {
  time = 0;
  readonly plan: ReplayPlan;
  constructor(calls: readonly TestCall[] = podLife(IDS_A)) {
    this.plan = new ReplayPlan(recordingOf(calls).calls, {
      schema: loadSchema(),
      now: () => this.time,
      newId: () => FRESH,
    });
  }
  ask(method: MethodName, request: object = {}): object {
    const answer = this.plan.answer(METHODS[method].path, requestBytes(method, request));
    if (answer.kind !== 'unary' || answer.response === undefined) return answer;
    return METHODS[method].responseDeserialize(answer.response);
  }
}

const run = { config: sandboxConfig(IDS_B) };

test('a pod of another UID gets the recorded ids, and lists have its own UID', () => {
  const stand = new Stand();
  expect(stand.ask('ListPodSandbox')).toMatchObject({ items: [] });
  expect(stand.ask('RunPodSandbox', run)).toEqual({ pod_sandbox_id: IDS_A.sandbox });
  expect(
    stand.ask('CreateContainer', {
      pod_sandbox_id: IDS_A.sandbox,
      config: containerConfig(),
      sandbox_config: sandboxConfig(IDS_B),
    }),
  ).toEqual({
    container_id: IDS_A.container,
  });
  expect(stand.ask('StartContainer', { container_id: IDS_A.container })).toEqual({});
  expect(stand.ask('ListPodSandbox')).toMatchObject({
    items: [{ id: IDS_A.sandbox, metadata: { uid: IDS_B.uid }, labels: { 'io.kubernetes.pod.uid': IDS_B.uid } }],
  });
});

test('what is listed changes with what the client has done, not with the time alone', () => {
  const stand = new Stand();
  stand.ask('RunPodSandbox', run);
  stand.time = 3_600_000;
  // In the recording there is no call between RunPodSandbox and CreateContainer.
  expect(stand.ask('ListPodSandbox')).toMatchObject({ items: [] });
  for (const method of ['StartContainer', 'StopContainer', 'RemoveContainer'] as const)
    stand.ask(method, { container_id: IDS_A.container, ...(method === 'StopContainer' ? { timeout: 30 } : {}) });
  stand.ask('RemovePodSandbox', { pod_sandbox_id: IDS_A.sandbox });
  expect(stand.ask('ListPodSandbox')).toMatchObject({ items: [] });
});

test('a second sandbox of the same pod has a fresh id, which is understood later', () => {
  const stand = new Stand();
  stand.ask('RunPodSandbox', run);
  expect(stand.ask('RunPodSandbox', run)).toEqual({ pod_sandbox_id: FRESH });
  expect(stand.ask('StopPodSandbox', { pod_sandbox_id: FRESH })).toEqual({});
});

test('what a runtime says of itself does not depend on the request', () => {
  const stand = new Stand([
    { method: 'Version', at: 1, request: { version: 'v1' }, response: { runtime_name: 'containerd' } },
  ]);
  expect(stand.ask('Version', { version: '0.1.0' })).toMatchObject({ runtime_name: 'containerd' });
});

test('a failure is answered as it was', () => {
  const stand = new Stand([
    { method: 'StartContainer', at: 1, request: { container_id: 'x' }, end: { status: 13, message: 'no runc' } },
  ]);
  expect(stand.ask('StartContainer', { container_id: 'x' })).toMatchObject({
    kind: 'unary',
    response: undefined,
    status: 13,
    message: 'no runc',
    delayMs: 1,
  });
});

test.each<readonly [MethodName, object, number, string]>([
  ['Version', {}, 12, 'Version is not in the recording'],
  ['StartContainer', { container_id: 'nobody' }, 5, 'StartContainer with this request is not in the recording'],
  ['Exec', { container_id: IDS_A.container, cmd: ['sh'] }, 12, 'Exec: a recording has no streaming server'],
])('%s %j is refused by name', (method, request, status, message) => {
  const stand = new Stand([
    ...podLife(IDS_A),
    { method: 'Exec', at: 9000, request, response: { url: 'http://127.0.0.1:1/exec/x' } },
  ]);
  expect(stand.ask(method, request)).toEqual({ kind: 'refused', status, message });
});

test('a method that no .proto file knows is answered for the same bytes', () => {
  const plan = new ReplayPlan(
    [
      {
        id: 1,
        connection: 1,
        method: '/x.Y/Z',
        begin: 0,
        metadata: [],
        headers: [],
        requests: [{ at: 0, bytes: Buffer.from([8, 1]) }],
        responses: [{ at: 1, bytes: Buffer.from([8, 2]) }],
        end: { at: 1, status: 0 },
      },
    ],
    { schema: loadSchema(), now: () => 0, newId: () => FRESH },
  );
  expect(plan.answer('/x.Y/Z', Buffer.from([8, 1]))).toMatchObject({
    kind: 'unary',
    response: Buffer.from([8, 2]),
    status: 0,
  });
  expect(plan.answer('/x.Y/Z', Buffer.from([8, 3]))).toMatchObject({ kind: 'refused', status: 5 });
});

test('events follow the calls that they followed', () => {
  const event = (at: number, type: string): readonly [number, object] => [
    at,
    { container_id: IDS_A.container, container_event_type: type },
  ];
  const stand = new Stand([
    {
      method: 'GetContainerEvents',
      at: 100,
      took: 5000,
      response: [event(150, 'CONTAINER_STOPPED_EVENT'), event(1350, 'CONTAINER_STARTED_EVENT')],
      end: 'open',
    },
    ...podLife(IDS_A),
  ]);
  const answer = stand.plan.answer(METHODS.GetContainerEvents.path, Buffer.alloc(0));
  const started = recordingOf(podLife(IDS_A)).calls.findIndex(({ method }) => method.endsWith('StartContainer')) + 2;
  expect(answer).toMatchObject({
    kind: 'stream',
    messages: [
      { after: undefined, delayMs: 50 },
      { after: started, delayMs: 50 },
    ],
  });
  expect(stand.plan.matchedAt(started)).toBeUndefined();
  stand.time = 77;
  stand.ask('StartContainer', { container_id: IDS_A.container });
  expect(stand.plan.matchedAt(started)).toBe(77);
});
