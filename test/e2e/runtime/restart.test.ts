// What survives: a restart of containerd under running containers, and a restart of the adapter on a running containerd.

import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PodLifecycleEvent } from '../../../agent/ports/runtime.ts';
import { createCriClient } from '../../../agent/runtime/grpc-cri-client.ts';
import { createLogReader } from '../../../agent/runtime/logs/read-logs.ts';
import { LogRotation } from '../../../agent/runtime/logs/rotation.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { untilTouched } from '../support/until-touched.ts';
import {
  cgroupsNamed,
  containerSpec,
  eventually,
  filesIn,
  killProcesses,
  type RuntimeLab,
  removePod,
  startPod,
  startRuntimeLab,
  testPod,
} from './harness.ts';

let lab: RuntimeLab;
const events: PodLifecycleEvent[] = [];

beforeAll(async () => {
  lab = await startRuntimeLab('nlrt1', '10.213.78.0/24');
  lab.runtime.watch((event) => events.push(event));
  await lab.runtime.capabilities();
});
afterAll(async () => {
  await lab?.close();
  expect(await cgroupsNamed('nlrt1-test')).toEqual([]);
});

test('a runtime that restarts is found again: containers live on, exits in between are reported, events flow', async () => {
  const survivor = await startPod(lab, testPod('sleep 300'));
  const victim = await startPod(lab, testPod('sleep 300'));
  // Held still, it cannot see the death; the restart kills it before it could.
  process.kill(lab.containerd.pid, 'SIGSTOP');
  await killProcesses(lab, victim.pod, victim.containerId);
  await lab.containerd.restart();
  await eventually('an answer', async () => {
    try {
      return await lab.runtime.version();
    } catch (error) {
      if (error instanceof Error && error.name === 'RuntimeError') return undefined;
      throw error;
    }
  });
  await eventually('the death while it was away', () =>
    events.find((event) => event.containerId === victim.containerId && event.type === 'containerDied'),
  );
  expect((await lab.runtime.observePod(victim.ref)).containers[0]).toMatchObject({ state: 'exited' });
  expect((await lab.runtime.observePod(survivor.ref)).containers[0]).toMatchObject({
    id: survivor.containerId,
    state: 'running',
  });
  expect((await eventually('the stream', () => lab.runtime.capabilities())).events).not.toBe('poll');
  await killProcesses(lab, survivor.pod, survivor.containerId);
  await eventually('an event over the new stream', () =>
    events.find((event) => event.containerId === survivor.containerId && event.type === 'containerDied'),
  );
  await removePod(lab, survivor);
  await removePod(lab, victim);
});

test('an adapter that starts anew lists every pod from the runtime alone, and can continue with it', async () => {
  const pod = testPod('sleep 300');
  const started = await startPod(lab, pod);
  const fresh = lab.another();
  const listed = (await fresh.listPods()).find((snapshot) => snapshot.pod.uid === started.ref.uid);
  expect(listed).toMatchObject({
    pod: started.ref,
    sandboxes: [{ id: started.sandboxId, state: 'ready' }],
    containers: [{ id: started.containerId, state: 'running', name: 'main', restartCount: 0, hash: 'abc123' }],
  });
  const before = await lab.runtime.observePod(started.ref);
  expect(await fresh.observePod(started.ref)).toMatchObject({
    sandboxes: before.sandboxes,
    containers: before.containers,
  });
  await fresh.stopContainer(started.containerId, 0);
  const again = await fresh.createContainer(containerSpec(lab, pod, started.sandboxId, started.ips, 1));
  await fresh.startContainer(again);
  expect((await fresh.observePod(started.ref)).containers[0]).toMatchObject({ id: again, restartCount: 1 });
  await removePod(lab, { ...started, containerId: again }, fresh);
  expect(await filesIn(lab.node.podLogsDir)).toEqual([]);
  expect(await filesIn(lab.node.containerLogsDir)).toEqual([]);
});

test('a container that the runtime has lost continues the restart count of its logs, and none of them is written to again', async () => {
  const started = await startPod(lab, testPod('echo a life; sleep 300'));
  const log = lab.runtime.containerLogPath(started.ref, 'main', 0);
  await eventually('the first line', async () => ((await readFile(log, 'utf8')).includes('a life') ? true : undefined));
  await lab.runtime.stopContainer(started.containerId, 0);
  // Behind the adapter's back: what crictl does.
  const cri = createCriClient(`unix://${lab.containerd.socket}`, `unix://${lab.containerd.socket}`, new Tracer());
  try {
    await cri.call('RemoveContainer', { container_id: started.containerId });
  } finally {
    cri.close();
  }
  const before = await readFile(log, 'utf8');
  const fresh = lab.another();
  const again = await fresh.createContainer(containerSpec(lab, started.pod, started.sandboxId, started.ips));
  await fresh.startContainer(again);
  expect((await fresh.observePod(started.ref)).containers).toMatchObject([{ id: again, restartCount: 1 }]);
  const next = lab.runtime.containerLogPath(started.ref, 'main', 1);
  await eventually('the line of its second life', async () =>
    (await readFile(next, 'utf8')).includes('a life') ? true : undefined,
  );
  expect(await readFile(log, 'utf8')).toBe(before);
  await removePod(lab, { ...started, containerId: again }, fresh);
});

test('without any stream the events still come, by lists', async () => {
  const polling = lab.another({ eventSource: 'poll' });
  const polled: PodLifecycleEvent[] = [];
  polling.watch((event) => polled.push(event));
  expect((await polling.capabilities())?.events).toBe('poll');
  const started = await startPod(lab, testPod('sleep 300'));
  await eventually('the start', () => polled.find((event) => event.containerId === started.containerId));
  await lab.runtime.stopContainer(started.containerId, 0);
  await eventually('the death', () =>
    polled.find((event) => event.containerId === started.containerId && event.type === 'containerDied'),
  );
  await removePod(lab, started);
});

test('a followed log goes on through a rotation that the runtime takes part in, and ends with the container', async () => {
  const started = await startPod(
    lab,
    // Half of it comes after the rotation.
    testPod(
      'i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); ' +
        `if [ $i -eq 20 ]; then ${untilTouched('/go')}; fi; done; echo the end`,
    ),
  );
  const path = lab.runtime.containerLogPath(started.ref, 'main', 0);
  let exited = false;
  lab.runtime.watch((event) => {
    if (event.containerId === started.containerId && event.type === 'containerDied') exited = true;
  });
  const isRunning = async (): Promise<boolean> => {
    if (exited) await lab.runtime.logWritten(started.containerId);
    return !exited;
  };
  const reading = (async () => {
    let text = '';
    const options = { follow: true, timestamps: false };
    const signal = AbortSignal.timeout(500_000);
    for await (const chunk of createLogReader(systemClock).readLogs(path, options, isRunning, signal)) {
      text += Buffer.from(chunk).toString();
    }
    return text;
  })();
  // All of the first half: what the runtime has not written yet when it reopens the log, it may write to the old.
  await eventually('the half', async () => ((await readFile(path, 'utf8')).includes('line 19') ? true : undefined));
  const rotation = new LogRotation({ runtime: lab.runtime, clock: systemClock, maxSizeBytes: 100, maxFiles: 3 });
  await rotation.rotateAll();
  expect((await lab.runtime.execSync(started.containerId, ['touch', '/go'], 60_000)).exitCode).toBe(0);
  const expected = `${Array.from({ length: 40 }, (_, index) => `line ${index}\n`).join('')}the end\n`;
  expect(await reading).toBe(expected);
  expect((await filesIn(dirname(path))).length).toBe(2);
  await removePod(lab, started);
});
