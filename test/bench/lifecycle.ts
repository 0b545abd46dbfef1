// The benchmark's rows about pods that run: what a deciding probe result costs until it shows, and what the agent costs
// beside many pods. From a lab of its own, so that the agent has seen nothing else.

import { rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { RunningLab } from '../../cli/lab/lab.ts';
import { isNotFound } from '../../client/errors.ts';
import type { Container, Pod } from '../../client/types.ts';
import type { Span } from '../../lib/trace.ts';
import { startBenchLab } from './lab.ts';
import { BenchPods, type PodTemplate } from './pods.ts';
import { agentCpuMs, peakResidentMiB, residentMiB } from './processes.ts';

export interface Load {
  /** Percent of one core, one for each period of PERIOD_MS. */
  readonly cpuPercent: readonly number[];
  readonly rssMiB: number;
}

export interface LifecycleSamples {
  /** Ms from the end of the readiness probe that decided to a watch that shows it. */
  readonly readiness: readonly number[];
  /** Ms from the end of the liveness probe that decided to the beginning of the call that stops the container. */
  readonly kill: readonly number[];
  /** Ms from the end of the liveness probe that decided to a watch that shows the next instance running. */
  readonly restart: readonly number[];
  /** Pods with a startup, a liveness and a readiness probe each, at the default period. */
  readonly probed: Load;
  readonly idle: Load;
  /** Largest resident memory of the agent that started the idle pods, and of the next one, which takes them up. */
  readonly peakRssMiB: readonly number[];
  /** Restarts of all idle pods' containers after the first agent was killed. */
  readonly restarts: number;
}

export interface LifecycleOptions {
  readonly root: string;
  readonly runs: number;
  readonly template: PodTemplate;
  readonly probedPods: number;
  readonly idlePods: number;
  /** Of PERIOD_MS each, for what pods cost that run. */
  readonly periods: number;
  readonly say: (line: string) => void;
}

const NAMESPACE = 'lifecycle';
const SPAN_LIMIT_MS = 30_000;
/** Probes run once in 10 s by default. */
const PERIOD_MS = 10_000;
/** What a start sets off (events, the last status) is over by then. */
const SETTLED_MS = 5_000;
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
  const { root, runs, template, say } = options;
  const lab = await startBenchLab({ root, say });
  const spans = new LiveSpans(lab.paths.traceSocket);
  try {
    await lab.client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE },
    });
    await accountMade(lab.client);
    const pods = new BenchPods(lab.client, NAMESPACE, template);
    await pods.start();
    const flags = join(root, '..', 'flags');
    await mkdir(flags, { recursive: true });
    const readiness = await readinessFlips(pods, spans, flags, runs, say);
    const { kill, restart } = await livenessFailures(pods, spans, flags, runs, say);
    const start = async (name: string, count: number, more: Partial<Container>): Promise<readonly string[]> => {
      const all = Array.from({ length: count }, (_, index) => `${name}-${index}`);
      await each(all, async (pod) => {
        const ready = pods.when(pod, 'settled', isReady);
        await pods.create(pod, [], more);
        await ready;
      });
      return all;
    };
    const idlePods = await start('idle', options.idlePods, {});
    const first = await agentOf(lab);
    const idle = await measureLoad(first, options.periods);
    const peaks = [peakResidentMiB(first)];
    process.kill(first, 'SIGKILL');
    const second = await agentOf(lab, first);
    await wait(PERIOD_MS);
    peaks.push(peakResidentMiB(second));
    const found = await Promise.all(idlePods.map((pod) => pods.get(pod)));
    const restarts = found
      .flatMap(({ status }) => status?.containerStatuses ?? [])
      .reduce((sum, { restartCount }) => sum + restartCount, 0);
    say(`${idlePods.length} idle pods: peak RSS ${peaks.map((peak) => peak.toFixed(0)).join(' and ')} MiB`);
    await each(idlePods, (pod) => pods.delete(pod));
    const probedPods = await start('probed', options.probedPods, HTTPD);
    const probed = await measureLoad(second, options.periods);
    say(`${probedPods.length} probed pods: CPU ${probed.cpuPercent.map((percent) => percent.toFixed(2)).join(', ')} %`);
    await each(probedPods, (pod) => pods.delete(pod));
    await pods.stop();
    return { readiness, kill, restart, probed, idle, peakRssMiB: peaks, restarts };
  } finally {
    spans.close();
    for (const problem of await lab.stop()) say(problem);
  }
}

/** The pid of the lab's agent, once there is one that is not `other`. */
async function agentOf(lab: RunningLab, other?: number): Promise<number> {
  for (;;) {
    const pid = lab.pid('agent');
    if (pid !== undefined && pid !== other) return pid;
    await wait(20);
  }
}

async function measureLoad(agent: number, periods: number): Promise<Load> {
  await wait(SETTLED_MS);
  const cpuPercent: number[] = [];
  for (let period = 0; period < periods; period++) {
    const [cpu, began] = [agentCpuMs(agent), performance.now()];
    await wait(PERIOD_MS);
    cpuPercent.push(((agentCpuMs(agent) - cpu) / (performance.now() - began)) * 100);
  }
  return { cpuPercent, rssMiB: residentMiB(agent) };
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
  spans: LiveSpans,
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
    const decided = spans.probeEnd('readiness', name, up ? 'success' : 'failure');
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
  spans: LiveSpans,
  flags: string,
  runs: number,
  say: (line: string) => void,
): Promise<Pick<LifecycleSamples, 'kill' | 'restart'>> {
  const kill: number[] = [];
  const restart: number[] = [];
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
    const decided = spans.probeEnd('liveness', name, 'failure');
    const stop = spans.callBegin('StopContainer', name);
    writeFileSync(flag, '');
    const at = await decided;
    rmSync(flag);
    kill.push((await stop) - at);
    restart.push((await restarted) - at);
    await pods.delete(name);
  }
  say(`${runs} liveness failures, kills and restarts seen`);
  return { kill, restart };
}

interface Waiting {
  readonly holds: (span: Span) => boolean;
  readonly found: (span: Span) => void;
}

/** The agent's trace spans as they come, in this process's performance.now(). */
class LiveSpans {
  readonly #socket: Socket;
  readonly #waiting = new Set<Waiting>();

  constructor(path: string) {
    this.#socket = connect(path);
    createInterface({ input: this.#socket }).on('line', (line) => {
      const span: Span = JSON.parse(line);
      for (const waiting of [...this.#waiting]) {
        if (!waiting.holds(span)) continue;
        this.#waiting.delete(waiting);
        waiting.found(span);
      }
    });
  }

  /** When the next probe of this kind ends with this result. */
  async probeEnd(type: string, pod: string, result: string): Promise<number> {
    const span = await this.#next(
      `no ${type} probe of ${pod} ended in ${result}`,
      ({ kind, name, attributes }) => kind === 'probe' && name === type && attributes['result'] === result,
      pod,
    );
    return span.start + span.durationMs - performance.timeOrigin;
  }

  /** When the next call of this name to the runtime begins. */
  async callBegin(call: string, pod: string): Promise<number> {
    const span = await this.#next(`no ${call} for ${pod}`, ({ kind, name }) => kind === 'cri' && name === call, pod);
    return span.start - performance.timeOrigin;
  }

  /** The next span that ends from now on; spans come when they have ended. */
  #next(complaint: string, holds: (span: Span) => boolean, pod: string): Promise<Span> {
    const requested = performance.timeOrigin + performance.now();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(complaint)), SPAN_LIMIT_MS);
      this.#waiting.add({
        holds: (span) => span.pod?.name === pod && span.start + span.durationMs >= requested && holds(span),
        found: (span) => {
          clearTimeout(timer);
          resolve(span);
        },
      });
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}
