// `kubectl top` and the pages behind it on a real node: what a pod uses is what the kernel itself counts. Counters only grow, so a
// page has to lie between a reading before it and one after it; rates are bounded by readings that the test takes meanwhile.

import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { quantityValue } from '../../../lib/quantity.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import { parseMetrics } from '../../support/metrics-text.ts';
import { apply, container, deletePods, eventually, FOREVER, getPod, gone, isReady, podWhen } from '../agent/harness.ts';
import { kubectls } from '../support/kubectls.ts';
import { kubectlOptions, type TestLab } from '../support/lab.ts';
import { shareLab } from '../support/shared-lab.ts';

const POD = 'burn';
/** Takes memory that no one else counts, once. */
const HOLDS = `held=$(head -c 20000000 /dev/zero | tr '\\0' a); echo ready; ${FOREVER}`;

interface Reading {
  /** Wall clock, ms; the figure was read between the two. */
  readonly from: number;
  readonly to: number;
  /** CPU time in all, ns. */
  readonly cpu: number;
}

interface PodMetrics {
  readonly timestamp: string;
  readonly window: string;
  readonly containers: readonly {
    readonly name: string;
    readonly usage: { readonly cpu: string; readonly memory: string };
  }[];
}

let lab: TestLab;
const tools = await kubectls();
/** Of the container that burns. */
const readings: Reading[] = [];
let cgroups: Readonly<Record<'busy' | 'holder', readonly string[]>>;

/** The directories of a container's cgroup, one for each hierarchy. Cgroups of other pods may go during the search, and fail it. */
async function cgroupsOf(id: string): Promise<readonly string[]> {
  const { stdout } = await exec('find', ['/sys/fs/cgroup', '-type', 'd', '-name', `*${id}*`]);
  return stdout.split('\n').filter(Boolean);
}

/** The text of a file of the cgroup, in whichever hierarchy has it. */
function cgroupFile(directories: readonly string[], file: string): string | undefined {
  const path = directories.map((directory) => join(directory, file)).find(existsSync);
  return path === undefined ? undefined : readFileSync(path, 'utf8');
}

function field(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

/** CPU time in all, ns. */
function cpuOf(directories: readonly string[]): number {
  const v1 = cgroupFile(directories, 'cpuacct.usage');
  return v1 === undefined ? field(cgroupFile(directories, 'cpu.stat') ?? '', 'usage_usec') * 1000 : Number(v1);
}

/** Usage less page cache that was not used lately, bytes. */
function workingSetOf(directories: readonly string[]): number {
  const stat = cgroupFile(directories, 'memory.stat') ?? '';
  const v1 = cgroupFile(directories, 'memory.usage_in_bytes');
  const usage = Number(v1 ?? cgroupFile(directories, 'memory.current'));
  return Math.max(0, usage - field(stat, v1 === undefined ? 'inactive_file' : 'total_inactive_file'));
}

function read(): number {
  const from = Date.now();
  const cpu = cpuOf(cgroups.busy);
  readings.push({ from, to: Date.now(), cpu });
  return cpu;
}

/** Reads the counter until `work` is done: often enough that the rate in between is known. */
async function whileReading<T>(work: Promise<T>): Promise<T> {
  let done = false;
  const ended = work.finally(() => {
    done = true;
  });
  while (!done) {
    read();
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 20))]);
  }
  read();
  return await ended;
}

/** For how long the counter has been read. */
function watchedMs(): number {
  return (readings.at(-1)?.from ?? 0) - (readings[0]?.to ?? 0);
}

/** The least and the most that the counter may have shown at a moment, by the readings around it. */
function around(at: number): { readonly least: number; readonly most: number } | undefined {
  const before = readings.findLast(({ to }) => to <= at);
  const after = readings.find(({ from }) => from >= at);
  return before === undefined || after === undefined ? undefined : { least: before.cpu, most: after.cpu };
}

function seconds(goDuration: string): number {
  const [, minutes = '0', rest = '0', ms] = /^(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:(\d+)ms)?$/.exec(goDuration) ?? [];
  return Number(minutes) * 60 + Number(rest) + Number(ms ?? 0) / 1000;
}

/** Cores. */
function cores(quantity: string): number {
  const [, digits = '', unit = ''] = /^(\d+)([num]?)$/.exec(quantity) ?? [];
  return (
    Number(digits) *
    (new Map([
      ['n', 1e-9],
      ['u', 1e-6],
      ['m', 1e-3],
    ]).get(unit) ?? 1)
  );
}

/**
 * Cores that the container may have used in a window of so many seconds whose end is in the second that begins at `end`: the
 * object's time has no fraction.
 */
function bounds(end: number, window: number): { readonly least: number; readonly most: number } {
  const [all, span] = [{ least: Number.POSITIVE_INFINITY, most: 0 }, window * 1e9];
  for (let at = end; at < end + 1000; at += 5) {
    const [first, last] = [around(at - window * 1000), around(at)];
    if (first === undefined || last === undefined) continue;
    all.least = Math.min(all.least, (last.least - first.most) / span);
    all.most = Math.max(all.most, (last.most - first.least) / span);
  }
  return all;
}

function metricsOf(): Promise<PodMetrics> {
  const path = resourcePath('metrics.k8s.io/v1beta1', 'pods', { namespace: lab.namespace, name: POD });
  return lab.client.get<PodMetrics>(path);
}

beforeAll(async () => {
  lab = await shareLab();
  const image = 'busybox:stable';
  await apply(lab, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: POD, labels: { app: POD } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'busy',
          image,
          command: ['sh', '-c', 'while :; do :; done'],
          resources: { limits: { cpu: '200m', memory: '64Mi' } },
          readinessProbe: { exec: { command: ['true'] }, periodSeconds: 1, timeoutSeconds: 30 },
        },
        { name: 'holder', image, command: ['sh', '-c', HOLDS] },
      ],
    },
  });
  await podWhen(lab, POD, 'both containers to run', isReady);
  const pod = await getPod(lab, POD);
  const idOf = (name: string): string => container(pod, name).containerID?.replace(/^.*:\/\//, '') ?? '';
  cgroups = { busy: await cgroupsOf(idOf('busy')), holder: await cgroupsOf(idOf('holder')) };
  await eventually('the memory to be taken', async () =>
    (await lab.kubectl('logs', POD, '-c', 'holder')).includes('ready') ? true : undefined,
  );
});
afterAll(async () => {
  if (lab !== undefined) {
    await deletePods(lab, [POD], { graceSeconds: 1, wait: false });
    await gone(lab, POD);
  }
  await lab?.stop();
});

const page = (path: string): Promise<string> =>
  lab.kubectl('get', '--raw', `/api/v1/nodes/${lab.nodeName}/proxy${path}`);

describe('pages of the kubelet API', () => {
  test.each([
    ['/metrics/resource', 'container_cpu_usage_seconds_total'],
    ['/metrics/cadvisor', 'container_cpu_usage_seconds_total'],
  ])('%s: CPU time is between the kernel’s before and after', async (path, name) => {
    const before = cpuOf(cgroups.busy);
    const families = parseMetrics(await page(path));
    const after = cpuOf(cgroups.busy);
    const samples = families
      .get(name)
      ?.samples.filter(({ labels }) => labels['container'] === 'busy' && labels['namespace'] === lab.namespace);
    expect(samples).toHaveLength(1);
    const shown = (samples?.[0]?.value ?? 0) * 1e9;
    // Seconds are written as a double: half of its last digit is less than a microsecond here.
    expect(shown).toBeGreaterThanOrEqual(before - 1000);
    expect(shown).toBeLessThanOrEqual(after + 1000);
  });

  test('/metrics/cadvisor: a limited container is throttled, and the pod has a network', async () => {
    let families: ReturnType<typeof parseMetrics> = new Map();
    const of = (name: string, label: string, value: string) =>
      families.get(name)?.samples.find(({ labels }) => labels[label] === value && labels['namespace'] === lab.namespace)
        ?.value;
    // A busy machine may have given it less than its limit so far.
    await eventually('it to be throttled', async () => {
      families = parseMetrics(await page('/metrics/cadvisor'));
      return (of('container_cpu_cfs_throttled_periods_total', 'container', 'busy') ?? 0) > 0 ? true : undefined;
    });
    expect(of('container_spec_cpu_quota', 'container', 'busy')).toBe(20_000);
    expect(of('container_spec_memory_limit_bytes', 'container', 'busy')).toBe(64 * 1024 * 1024);
    expect(of('container_network_transmit_packets_total', 'interface', 'eth0')).toBeGreaterThan(0);
  });

  test('/stats/summary: the pod with its containers, network, disks and rates', async () => {
    // What is on disks is measured in its own time.
    const { pod, before, after } = await eventually('a page that has everything', async () => {
      const least = cpuOf(cgroups.busy);
      const summary = JSON.parse(await page('/stats/summary')) as {
        readonly pods: readonly { readonly podRef: { readonly name: string; readonly namespace: string } }[];
      };
      const most = cpuOf(cgroups.busy);
      const found = summary.pods.find(({ podRef }) => podRef.name === POD && podRef.namespace === lab.namespace);
      expect(found).toMatchObject({
        network: { name: 'eth0', txErrors: 0 },
        process_stats: { process_count: expect.any(Number) },
        'ephemeral-storage': { usedBytes: expect.any(Number) },
        volume: [{ name: expect.stringMatching(/^kube-api-access-/), usedBytes: expect.any(Number) }],
      });
      return { pod: found, before: least, after: most };
    });
    const containers = Reflect.get(pod ?? {}, 'containers') as readonly {
      readonly name: string;
      readonly cpu: { readonly usageNanoCores: number; readonly usageCoreNanoSeconds: number };
    }[];
    const busy = containers.find(({ name }) => name === 'busy');
    expect(busy?.cpu.usageCoreNanoSeconds).toBeGreaterThanOrEqual(before);
    expect(busy?.cpu.usageCoreNanoSeconds).toBeLessThanOrEqual(after);
    expect(busy?.cpu.usageNanoCores).toBeGreaterThan(0);
  });

  test('/metrics: what the agent has done', async () => {
    const families = parseMetrics(await page('/metrics'));
    const [running] = families.get('kubelet_running_pods')?.samples ?? [];
    expect(running?.value).toBeGreaterThanOrEqual(1);
    const starts = families
      .get('kubelet_pod_start_duration_seconds')
      ?.samples.find(({ name }) => name.endsWith('_count'));
    expect(starts?.value).toBeGreaterThanOrEqual(1);
    const created = families
      .get('kubelet_runtime_operations_total')
      ?.samples.find(({ labels }) => labels['operation_type'] === 'create_container');
    expect(created?.value).toBeGreaterThanOrEqual(2);
  });

  test('/metrics/probes: the probe that succeeded', async () => {
    const samples = parseMetrics(await page('/metrics/probes')).get('prober_probe_total')?.samples;
    const own = samples?.find(({ labels }) => labels['namespace'] === lab.namespace && labels['container'] === 'busy');
    expect(own?.labels).toMatchObject({ probe_type: 'Readiness', result: 'successful', pod: POD });
  });
});

describe('metrics.k8s.io', () => {
  test('a pod’s processor time is the kernel’s, and its memory, too', async () => {
    const memory = [workingSetOf(cgroups.holder)];
    const known = await whileReading(
      eventually('metrics whose whole window has been watched', async () => {
        // The first request is answered with a window of a second, whose end is written without a fraction.
        if (watchedMs() < 1_500) return undefined;
        const found = await metricsOf();
        memory.push(workingSetOf(cgroups.holder));
        const from = (parseRfc3339(found.timestamp) ?? 0) - seconds(found.window) * 1000;
        return from > (readings[0]?.to ?? 0) ? found : undefined;
      }),
    );
    const busy = known.containers.find(({ name }) => name === 'busy');
    const { least, most } = bounds(parseRfc3339(known.timestamp) ?? 0, seconds(known.window));
    // The window is written to the millisecond.
    const slack = 0.001 / seconds(known.window);
    expect(cores(busy?.usage.cpu ?? '')).toBeGreaterThanOrEqual(least * (1 - slack));
    expect(cores(busy?.usage.cpu ?? '')).toBeLessThanOrEqual(most * (1 + slack));
    const holder = known.containers.find(({ name }) => name === 'holder');
    // The container sleeps. What the kernel charges in advance, by batches of 64 pages for each processor, may change.
    const batches = 64 * 4096 * availableParallelism();
    expect(quantityValue(holder?.usage.memory ?? '')).toBeGreaterThanOrEqual(Math.min(...memory) - batches);
    expect(quantityValue(holder?.usage.memory ?? '')).toBeLessThanOrEqual(Math.max(...memory) + batches);
    expect(Math.min(...memory)).toBeGreaterThan(20_000_000);
  });

  describe.each(tools.filter(({ full }) => full))('kubectl $version top', ({ command }) => {
    const top = async (...args: string[]): Promise<readonly (readonly string[])[]> => {
      const flags = ['--kubeconfig', lab.kubeconfig, 'top', ...args];
      const text = await execOk(command, flags, kubectlOptions());
      return text
        .trimEnd()
        .split('\n')
        .map((line) => line.trim().split(/ +/));
    };
    /** As kubectl rounds: up. */
    const milli = ({ containers }: PodMetrics, name: string): string =>
      `${Math.ceil(cores(containers.find((each) => each.name === name)?.usage.cpu ?? '') * 1000 - 1e-6)}m`;

    test('pods --containers shows what the API has', async () => {
      // They are measured anew every 15 s: more than once while a busy machine runs kubectl.
      const { before, after, shown } = await eventually(
        'metrics that are measured at most once meanwhile',
        async () => {
          const first = await metricsOf();
          const table = await top('pods', '--containers', '--sort-by=cpu', '-l', `app=${POD}`);
          const last = await metricsOf();
          const apart = (parseRfc3339(last.timestamp) ?? 0) - (parseRfc3339(first.timestamp) ?? 0);
          return apart < 30_000 ? { before: first, after: last, shown: table } : undefined;
        },
      );
      const [head, ...rows] = shown;
      expect(head).toEqual(['POD', 'NAME', 'CPU(cores)', 'MEMORY(bytes)']);
      expect(rows.map(([pod, name]) => [pod, name])).toEqual([
        [POD, 'busy'],
        [POD, 'holder'],
      ]);
      expect([milli(before, 'busy'), milli(after, 'busy')]).toContain(rows[0]?.[2]);
    });

    test('pods -A names the namespace, and a selector without a match finds nothing', async () => {
      const [head, ...rows] = await top('pods', '-A', '--sort-by=memory');
      expect(head).toEqual(['NAMESPACE', 'NAME', 'CPU(cores)', 'MEMORY(bytes)']);
      expect(rows.map(([namespace, name]) => [namespace, name])).toContainEqual([lab.namespace, POD]);
      const none = await lab.tryKubectl(['top', 'pods', '-l', 'app=none']);
      expect(none.stderr).toContain('No resources found');
    });

    test('nodes', async () => {
      const [, [name, cpu, , memory] = []] = await top('nodes');
      expect(name).toBe(lab.nodeName);
      expect(cpu).toMatch(/^[1-9]\d*m$/);
      expect(memory).toMatch(/^[1-9]\d*Mi$/);
    });
  });

  test('the APIService is this server’s own', async () => {
    const text = await lab.kubectl('get', 'apiservices', 'v1beta1.metrics.k8s.io', '--no-headers');
    expect(text.trim().split(/ +/).slice(0, 3)).toEqual(['v1beta1.metrics.k8s.io', 'Local', 'True']);
  });

  test('who may view pods may see what they use', async () => {
    const role = await lab.kubectl('get', 'clusterrole', 'view', '-o', 'json');
    const { rules } = JSON.parse(role) as { readonly rules: readonly { readonly apiGroups?: readonly string[] }[] };
    expect(rules).toContainEqual({
      apiGroups: ['metrics.k8s.io'],
      resources: ['pods', 'nodes'],
      verbs: ['get', 'list', 'watch'],
    });
  });
});
