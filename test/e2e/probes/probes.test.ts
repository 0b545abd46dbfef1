// Probes on a real node, each kind against real containers: readiness really turns, a failing container is really
// restarted, and kubectl shows why. Figures are compared with each other, never with a stopwatch.

import { Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Pod } from '../../../client/types.ts';
import type { Span } from '../../../lib/trace.ts';
import { loadProto } from '../../../proto/load.ts';
import {
  agentMemory,
  apply,
  condition,
  container,
  deletePods,
  eventsOf,
  eventually,
  eventWhen,
  FOREVER,
  gone,
  handlesTerm,
  isReady,
  podWhen,
  ready,
  shellPod,
  spans,
} from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';

let lab: TestLab;

beforeAll(async () => {
  lab = await shareLab();
});
afterAll(() => lab?.stop());

/** Runs a shell command in the pod's container. */
async function inside(pod: string, command: string): Promise<void> {
  await lab.kubectl('exec', pod, '-c', 'main', '--', 'sh', '-c', command);
}

async function remove(...names: string[]): Promise<void> {
  await deletePods(lab, [...names], { graceSeconds: 1, wait: false });
  await Promise.all(names.map((name) => gone(lab, name)));
}

// Where a timeout is not the matter none strikes by chance: on a busy machine a command in a container takes its time.
const patient = { timeoutSeconds: 30 };
const often = { periodSeconds: 1, failureThreshold: 1, ...patient };
/** A web server of busybox whose /ok can be taken away. */
const SITE = 'mkdir -p /www && echo fine > /www/ok && exec httpd -f -p 8080 -h /www';

function unready(pod: Pod): boolean {
  return condition(pod, 'Ready')?.status === 'False' && container(pod).state?.running !== undefined;
}

describe('readiness', () => {
  /** What changes the result of each kind of probe, and the event with the reason. */
  const kinds = [
    {
      kind: 'exec',
      script: `touch /ok; ${FOREVER}`,
      probe: { exec: { command: ['cat', '/ok'] } },
      worse: 'rm /ok',
      better: 'touch /ok',
      words: /^Readiness probe failed: cat: can't open '\/ok': No such file or directory/,
    },
    {
      kind: 'http-get',
      script: SITE,
      probe: { httpGet: { path: '/ok', port: 'site' } },
      worse: 'mv /www/ok /www/no',
      better: 'mv /www/no /www/ok',
      words: /^Readiness probe failed: HTTP probe failed with statuscode: 404$/,
    },
    {
      kind: 'tcp-socket',
      script: `httpd -p 8080; ${FOREVER}`,
      probe: { tcpSocket: { port: 8080 } },
      // The child that answers a probe may be gone before it is killed.
      worse: 'kill $(pidof httpd) 2>/dev/null || true',
      better: 'httpd -p 8080',
      words: /^Readiness probe failed: dial tcp \d+\.\d+\.\d+\.\d+:8080: connect: connection refused$/,
    },
  ];

  test.each(kinds)('by $kind turns with the container, both ways, without a restart', async (each) => {
    const name = `ready-${each.kind}`;
    const ports = [{ name: 'site', containerPort: 8080 }];
    await apply(lab, shellPod(name, each.script, {}, { ports, readinessProbe: { ...each.probe, ...often } }));
    await ready(lab, name);
    await inside(name, each.worse);
    const pod = await podWhen(lab, name, 'not ready', unready);
    expect(condition(pod, 'Ready')).toMatchObject({
      reason: 'ContainersNotReady',
      message: 'containers with unready status: [main]',
    });
    const event = await eventWhen(lab, name, 'Unhealthy', each.words);
    expect(event.involvedObject.fieldPath).toBe('spec.containers{main}');
    expect(await lab.kubectl('describe', 'pod', name)).toContain('Readiness probe failed: ');
    await inside(name, each.better);
    const again = await ready(lab, name);
    expect(container(again)).toMatchObject({ restartCount: 0, started: true, ready: true });
    await remove(name);
  });

  test('by grpc follows the health service’s status', async () => {
    let serving = true;
    const server = new GrpcServer();
    const { Health } = loadProto('grpc-health').grpc.health.v1;
    server.addService(Health.service, {
      Check: (call: { request: { service: string } }, reply: (error: object | null, value?: object) => void) =>
        reply(null, { status: serving && call.request.service === 'shop' ? 'SERVING' : 'NOT_SERVING' }),
    });
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('0.0.0.0:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    try {
      const readinessProbe = { grpc: { port, service: 'shop' }, ...often };
      await apply(lab, shellPod('ready-grpc', FOREVER, { hostNetwork: true }, { readinessProbe }));
      await ready(lab, 'ready-grpc');
      serving = false;
      await podWhen(lab, 'ready-grpc', 'not ready', unready);
      await eventWhen(
        lab,
        'ready-grpc',
        'Unhealthy',
        /^Readiness probe failed: service unhealthy \(responded with "NOT_SERVING"\)$/,
      );
      serving = true;
      await ready(lab, 'ready-grpc');
      await remove('ready-grpc');
    } finally {
      server.forceShutdown();
    }
  });

  test('reaches the API server by itself: the result wakes the worker, and the next probe is an hour away', async () => {
    const command = ['sh', '-c', 'until [ -e /ok ]; do sleep 0.1; done'];
    const readinessProbe = { exec: { command }, periodSeconds: 3_600, failureThreshold: 1, timeoutSeconds: 3_600 };
    await apply(lab, shellPod('flip', FOREVER, {}, { readinessProbe }));
    await podWhen(lab, 'flip', 'not ready', unready);
    await inside('flip', 'touch /ok');
    const pod = await ready(lab, 'flip');
    const { turned, sync, written } = await eventually('the write after the probe that turned it', async () => {
      const own = (await spans(lab)).filter((span) => span.pod?.uid === pod.metadata.uid);
      const probe = own.find((span) => span.kind === 'probe' && span.attributes['result'] === 'success');
      if (probe === undefined) return undefined;
      const woken = wokenBy(own, probe);
      const write = own.find((span) => isStatusWrite(span) && woken !== undefined && span.start > woken.start);
      return woken && write ? { turned: probe, sync: woken, written: write } : undefined;
    });
    console.log(`readiness flip to API: ${(written.start + written.durationMs - endOf(turned)).toFixed(1)} ms`);
    expect(sync.start).toBeGreaterThanOrEqual(endOf(turned));
    await remove('flip');
  });
});

function isStatusWrite(span: Span): boolean {
  return span.kind === 'api' && span.name === 'PATCH pods/status';
}

function endOf({ start, durationMs }: Span): number {
  return start + durationMs;
}

/** The worker's round that the result of a probe caused. */
function wokenBy(own: readonly Span[], probe: Span): Span | undefined {
  return own.find((span) => span.name === 'syncPod' && span.links?.includes(probe.id) === true);
}

describe('liveness', () => {
  test('that fails has the container restarted, killed right after the deciding result', async () => {
    const command = ['sh', '-c', '[ ! -e /dead ] || cat /ok'];
    const livenessProbe = { exec: { command }, periodSeconds: 5, failureThreshold: 2, ...patient };
    // It ends at once on SIGTERM, and has the time for that.
    const spec = { terminationGracePeriodSeconds: 60 };
    await apply(lab, shellPod('sick', FOREVER, spec, { livenessProbe }));
    const before = await ready(lab, 'sick');
    await handlesTerm(lab, 'sick');
    await inside('sick', 'touch /dead');
    const pod = await podWhen(lab, 'sick', 'restarted', (now) => container(now).restartCount === 1 && isReady(now));
    expect(container(pod).containerID).not.toBe(container(before).containerID);
    expect(container(pod).lastState?.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' });
    await eventWhen(lab, 'sick', 'Unhealthy', /^Liveness probe failed: cat: can't open '\/ok'/);
    await eventWhen(lab, 'sick', 'Killing', /^Container main failed liveness probe, will be restarted$/);
    const { failures, deciding, sync, kill } = await eventually('the spans of the kill', async () => {
      const own = (await spans(lab)).filter((span) => span.pod?.uid === pod.metadata.uid);
      const stop = own.find((span) => span.kind === 'cri' && span.name === 'StopContainer');
      const failed = own.filter((span) => span.kind === 'probe' && span.attributes['result'] === 'failure');
      const result = failed.find((probe) => wokenBy(own, probe) !== undefined);
      const woken = result && wokenBy(own, result);
      return result && woken && stop ? { failures: failed, deciding: result, sync: woken, kill: stop } : undefined;
    });
    console.log(`liveness failure to StopContainer: ${(kill.start - endOf(deciding)).toFixed(1)} ms`);
    // The second failure, and nothing came after it but the kill.
    expect(failures.indexOf(deciding)).toBe(1);
    expect(failures).toHaveLength(2);
    expect(kill.start).toBeGreaterThanOrEqual(endOf(deciding));
    expect(kill.root ?? kill.parent).toBe(sync.id);
    await remove('sick');
  });

  test.each([
    [
      'http-get',
      { httpGet: { path: '/ok', port: 8080 } },
      /^Liveness probe failed: HTTP probe failed with statuscode: 404$/,
    ],
    ['tcp-socket', { tcpSocket: { port: 8081 } }, /^Liveness probe failed: dial tcp .*: connect: connection refused$/],
  ])('by %s restarts the container as well', async (kind, probe, words) => {
    const name = `sick-${kind}`;
    const script = 'mkdir -p /www; exec httpd -f -p 8080 -h /www';
    const livenessProbe = { ...probe, ...often };
    // Not probed before it serves: else it would not be this failure.
    const startupProbe = { tcpSocket: { port: 8080 }, periodSeconds: 1, failureThreshold: 600, ...patient };
    await apply(lab, shellPod(name, script, {}, { livenessProbe, startupProbe }));
    await podWhen(lab, name, 'restarted', (pod) => container(pod).restartCount >= 1);
    await eventWhen(lab, name, 'Unhealthy', words);
    await remove(name);
  });

  test('by a command that never ends is a failure when its time is over, and the command is killed', async () => {
    const livenessProbe = { exec: { command: ['sleep', '4321'] }, ...often, timeoutSeconds: 1 };
    await apply(lab, shellPod('slow', FOREVER, {}, { livenessProbe: { ...livenessProbe, failureThreshold: 100 } }));
    await eventWhen(lab, 'slow', 'Unhealthy', /^Liveness probe failed: command "sleep 4321" timed out$/);
    await eventually('no more than one command left behind', async () => {
      const running = await lab.kubectl('exec', 'slow', '--', 'sh', '-c', 'ps | grep -c "[s]leep 4321" || true');
      return Number(running) <= 1 ? true : undefined;
    });
    await remove('slow');
  });

  test('that prints a lot is shown only up to its limit', async () => {
    const command = ['sh', '-c', 'head -c 3000000 /dev/zero | tr "\\0" x; exit 1'];
    const livenessProbe = { exec: { command }, ...often, failureThreshold: 100 };
    await apply(lab, shellPod('loud', FOREVER, {}, { livenessProbe }));
    const event = await eventWhen(lab, 'loud', 'Unhealthy', /^Liveness probe failed: x/);
    expect(event.message).toBe(`Liveness probe failed: ${'x'.repeat(10 * 1024)}`);
    await remove('loud');
  });

  test('that prints for ever is ended when its time is over, and the agent does not grow with it', async () => {
    const before = await agentMemory(lab);
    const livenessProbe = { exec: { command: ['yes', 'x'.repeat(1000)] }, ...often, timeoutSeconds: 1 };
    await apply(lab, shellPod('endless', FOREVER, {}, { livenessProbe: { ...livenessProbe, failureThreshold: 100 } }));
    await eventually('several runs', async () => {
      const words = /^Liveness probe failed: command "yes x+" timed out$/;
      const event = (await eventsOf(lab, 'endless')).find(({ message }) => words.test(message ?? ''));
      return (event?.count ?? 0) >= 3 ? true : undefined;
    });
    // What it prints in that time are hundreds of megabytes. One measurement may include what is not collected yet.
    await eventually('the agent to be less than twice as large as before', async () => {
      const growth = (await agentMemory(lab)).bytes / before.bytes;
      if (growth >= 2) throw new Error(`it is ${growth.toFixed(1)} times as large`);
      return true;
    });
    expect((await agentMemory(lab)).pid).toBe(before.pid);
    await remove('endless');
  });
});

describe('startup', () => {
  test('holds the others back until it succeeds', async () => {
    const startupProbe = { exec: { command: ['cat', '/up'] }, periodSeconds: 1, failureThreshold: 600, ...patient };
    const livenessProbe = { exec: { command: ['cat', '/up'] }, ...often };
    const readinessProbe = { exec: { command: ['true'] }, ...often };
    await apply(lab, shellPod('slow-start', FOREVER, {}, { startupProbe, livenessProbe, readinessProbe }));
    await eventWhen(lab, 'slow-start', 'Unhealthy', /^Startup probe failed: cat: can't open '\/up'/);
    // An event may be there before the status is.
    const held = await podWhen(lab, 'slow-start', 'running', unready);
    expect(container(held)).toMatchObject({ started: false, ready: false, restartCount: 0 });
    await inside('slow-start', 'touch /up');
    const pod = await ready(lab, 'slow-start');
    expect(container(pod)).toMatchObject({ started: true, restartCount: 0 });
    const messages = (await eventsOf(lab, 'slow-start')).map(({ message }) => message ?? '');
    expect(messages.filter((message) => /^(Liveness|Readiness) probe failed/.test(message))).toEqual([]);
    await remove('slow-start');
  });

  test('of a native sidecar holds back the containers after it', async () => {
    const startupProbe = { exec: { command: ['cat', '/up'] }, periodSeconds: 1, failureThreshold: 600, ...patient };
    const initContainers = [
      {
        name: 'main',
        image: 'busybox:stable',
        command: ['sh', '-c', FOREVER],
        restartPolicy: 'Always',
        startupProbe,
      },
    ];
    const containers = [{ name: 'app', image: 'busybox:stable', command: ['sh', '-c', FOREVER] }];
    await apply(lab, shellPod('behind', FOREVER, { initContainers, containers }));
    await eventWhen(lab, 'behind', 'Unhealthy', /^Startup probe failed/);
    const held = await podWhen(lab, 'behind', 'held back', unready);
    expect(container(held, 'app').state?.waiting?.reason).toBe('PodInitializing');
    await inside('behind', 'touch /up');
    const pod = await ready(lab, 'behind');
    expect(container(pod, 'app')).toMatchObject({ ready: true, restartCount: 0 });
    await remove('behind');
  });
});
