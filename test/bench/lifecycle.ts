// The benchmark's rows about pods that run: what a deciding probe result costs until it shows, and what the agent costs
// beside many pods. From a lab of its own, so that the agent has seen nothing else.

import { rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startLab } from '../../cli/lab/lab.ts';
import { isNotFound } from '../../client/errors.ts';
import type { Container, Pod } from '../../client/types.ts';
import type { Span } from '../../lib/trace.ts';
import { BenchPods, type PodTemplate } from './pods.ts';
import { cpuMs, residentMiB } from './processes.ts';

export interface Load {
  readonly pods: number;
  readonly seconds: number;
  /** Percent of one core. */
  readonly cpuPercent: number;
  readonly rssMiB: number;
}

export interface LifecycleSamples {
  /** Ms from the end of the readiness probe that decided to a watch that shows it. */
  readonly readiness: readonly number[];
  /** Ms from the end of the liveness probe that decided to a watch that shows the next instance running. */
  readonly restart: readonly number[];
  /** Pods with a startup, a liveness and a readiness probe each, at the default period. */
  readonly probed: Load;
  readonly idle: Load;
}

export interface LifecycleOptions {
  readonly root: string;
  readonly runs: number;
  readonly template: PodTemplate;
  readonly probedPods: number;
  readonly idlePods: number;
  readonly seconds: number;
  readonly say: (line: string) => void;
}

const NAMESPACE = 'lifecycle';
const SPAN_LIMIT_MS = 30_000;
/** At once: what a user's burst may be, and few enough for two cores. */
const AT_ONCE = 20;
const HTTPD: Partial<Container> = {
  command: ['httpd', '-f', '-p', '8080', '-h', '/etc'],
  startupProbe: { httpGet: { path: '/hostname', port: 8080 }, failureThreshold: 30 },
  livenessProbe: { httpGet: { path: '/hosts', port: 8080 } },
  readinessProbe: { tcpSocket: { port: 8080 } },
};

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;

export async function measureLifecycle(options: LifecycleOptions): Promise<LifecycleSamples> {
  const { root, runs, template, say, seconds } = options;
  const lab = await startLab({ root, images: 'build', say });
  const probes = new ProbeSpans(lab.paths.traceSocket);
  try {
    await lab.client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE },
    });
    await accountMade(lab.client);
    const pods = new BenchPods(lab.client, NAMESPACE, template);
    await pods.start();
    const agent = lab.pid('agent');
    if (agent === undefined) throw new Error('the agent does not run');
    const flags = join(root, '..', 'flags');
    await mkdir(flags, { recursive: true });
    const readiness = await readinessFlips(pods, probes, flags, runs, say);
    const restart = await livenessFailures(pods, probes, flags, runs, say);
    const load = async (name: string, count: number, more: Partial<Container>, settled: (pod: Pod) => boolean) => {
      const all = Array.from({ length: count }, (_, index) => `${name}-${index}`);
      await each(all, async (pod) => {
        const ready = pods.when(pod, 'settled', settled);
        await pods.create(pod, [], more);
        await ready;
      });
      // What the start set off (events, the last status) is over by then.
      await wait(5_000);
      const [cpu, began] = [cpuMs(agent), performance.now()];
      await wait(seconds * 1000);
      const cpuPercent = ((cpuMs(agent) - cpu) / (performance.now() - began)) * 100;
      const measured = { pods: count, seconds, cpuPercent, rssMiB: residentMiB(agent) };
      say(`${count} pods ${name}: CPU ${cpuPercent.toFixed(2)} %, RSS ${measured.rssMiB.toFixed(0)} MiB`);
      await each(all, (pod) => pods.delete(pod));
      return measured;
    };
    const idle = await load('idle', options.idlePods, {}, isReady);
    const probed = await load('probed', options.probedPods, HTTPD, isReady);
    await pods.stop();
    return { readiness, restart, probed, idle };
  } finally {
    probes.close();
    for (const problem of await lab.stop()) say(problem);
  }
}

async function each(names: readonly string[], work: (name: string) => Promise<unknown>): Promise<void> {
  const left = [...names];
  const worker = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) await work(name);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function accountMade(client: { get(path: string): Promise<unknown> }): Promise<void> {
  for (;;) {
    try {
      await client.get(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`);
      return;
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

async function readinessFlips(
  pods: BenchPods,
  probes: ProbeSpans,
  flags: string,
  runs: number,
  say: (line: string) => void,
): Promise<readonly number[]> {
  const name = 'flips';
  const flag = join(flags, 'ready');
  writeFileSync(flag, '');
  const probe = { exec: { command: ['/bin/sh', '-c', 'test -e /flags/ready'] }, periodSeconds: 1 };
  const first = pods.when(name, 'ready', isReady);
  await pods.create(name, [{ name: 'flags', hostPath: { path: flags } }], {
    readinessProbe: { ...probe, failureThreshold: 1, timeoutSeconds: 10 },
  });
  await first;
  const samples: number[] = [];
  for (let run = 1; run <= runs; run++) {
    const up = run % 2 === 0;
    const seen = pods.when(name, up ? 'ready' : 'not ready', (pod) => isReady(pod) === up);
    const decided = probes.next('readiness', name, up ? 'success' : 'failure');
    if (up) writeFileSync(flag, '');
    else rmSync(flag);
    samples.push((await seen) - (await decided));
  }
  await pods.delete(name);
  say(`${runs} readiness flips seen`);
  return samples;
}

async function livenessFailures(
  pods: BenchPods,
  probes: ProbeSpans,
  flags: string,
  runs: number,
  say: (line: string) => void,
): Promise<readonly number[]> {
  const samples: number[] = [];
  const flag = join(flags, 'dead');
  for (let run = 1; run <= runs; run++) {
    const name = `lives-${run}`;
    await pods.create(name, [{ name: 'flags', hostPath: { path: flags } }], {
      livenessProbe: {
        exec: { command: ['/bin/sh', '-c', 'test ! -e /flags/dead'] },
        periodSeconds: 1,
        failureThreshold: 1,
        timeoutSeconds: 10,
      },
    });
    const restarted = pods.when(name, 'running again', ({ status }) => {
      const [container] = status?.containerStatuses ?? [];
      return container?.restartCount === 1 && container.state?.running !== undefined;
    });
    const decided = probes.next('liveness', name, 'failure');
    writeFileSync(flag, '');
    const at = await decided;
    rmSync(flag);
    samples.push((await restarted) - at);
    await pods.delete(name);
  }
  say(`${runs} liveness failures and restarts seen`);
  return samples;
}

interface Waiting {
  readonly holds: (span: Span) => boolean;
  readonly found: (at: number) => void;
}

/** The ends of probes, as the agent's trace tells them, in this process's performance.now(). */
class ProbeSpans {
  readonly #socket: Socket;
  readonly #waiting = new Set<Waiting>();

  constructor(path: string) {
    this.#socket = connect(path);
    createInterface({ input: this.#socket }).on('line', (line) => {
      const span: Span = JSON.parse(line);
      for (const waiting of [...this.#waiting]) {
        if (!waiting.holds(span)) continue;
        this.#waiting.delete(waiting);
        waiting.found(span.start + span.durationMs - performance.timeOrigin);
      }
    });
  }

  /** When the next probe of this kind ends with this result. */
  next(type: string, pod: string, result: string): Promise<number> {
    const asked = performance.timeOrigin + performance.now();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${type} probe of ${pod} ended in ${result}`)), SPAN_LIMIT_MS);
      this.#waiting.add({
        holds: (span) =>
          span.kind === 'probe' &&
          span.name === type &&
          span.pod?.name === pod &&
          span.attributes['result'] === result &&
          span.start + span.durationMs >= asked,
        found: (at) => {
          clearTimeout(timer);
          resolve(at);
        },
      });
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}
