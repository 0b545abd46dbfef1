// How long the scheduler takes for a pod among 1,000 simulated nodes: from the pod's appearance in the cache of its informer to
// its Binding, with a client that answers at once. Plain pods, and pods with anti-affinity and spread constraints; the second half
// of them beside the first, which shows whether a pod costs more the more pods there are.

import type { Node, Pod } from '../../../client/types.ts';
import { Scheduler } from '../../../controlplane/scheduler/scheduler.ts';
import { systemClock } from '../../../lib/clock.ts';
import { environment } from '../../unit/controlplane/environment.ts';
import type { Amount } from '../report.ts';

export interface SchedulerBench {
  readonly nodes: number;
  readonly pods: number;
  readonly runs: number;
  readonly say: (line: string) => void;
}

const ZONES = ['a', 'b', 'c'];
/** 300 pods a second. */
const LIMIT_MS = 1000 / 300;
const APPS = 20;

function nodeOf(index: number): Node {
  const name = `node-${index}`;
  const labels = {
    'kubernetes.io/hostname': name,
    'topology.kubernetes.io/zone': ZONES[index % ZONES.length] ?? '',
  };
  return {
    metadata: { name, uid: name, resourceVersion: '1', labels },
    spec: {},
    status: {
      allocatable: { cpu: '16', memory: '64Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
}

const plain = (): Partial<Pod['spec']> => ({});

/** Away from pods of its kind on the same node if it can be, and evenly over zones in any case. */
function choosy(app: string): Partial<Pod['spec']> {
  const labelSelector = { matchLabels: { app } };
  return {
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector } },
        ],
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app, alone: 'yes' } } },
        ],
      },
    },
    topologySpreadConstraints: [
      { topologyKey: 'topology.kubernetes.io/zone', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector },
    ],
  };
}

function podOf(index: number, specOf: (app: string) => Partial<Pod['spec']>): Pod {
  const [name, app] = [`pod-${index}`, `app-${index % APPS}`];
  return {
    metadata: { name, namespace: 'bench', uid: name, resourceVersion: '1', labels: { app } },
    spec: {
      containers: [{ name: 'c', image: 'app:1', resources: { requests: { cpu: '100m', memory: '100Mi' } } }],
      ...specOf(app),
    },
  };
}

/** The node that a Binding names. */
function targetOf(body: unknown): string {
  const [, name = ''] = /"target":\{[^}]*"name":"([^"]+)"/.exec(JSON.stringify(body)) ?? [];
  return name;
}

/** ms for each of the two halves of the pods. */
async function halves(nodes: number, pods: number, specOf: (app: string) => Partial<Pod['spec']>) {
  const { client, informers, context } = environment();
  const stop = new AbortController();
  const scheduler = new Scheduler({ ...context, clock: systemClock }, informers);
  informers.nodes.replace(Array.from({ length: nodes }, (_, index) => nodeOf(index)));
  informers.pods.replace([]);
  let bound = 0;
  let wanted = 0;
  let reached = (): void => undefined;
  client.onWrite = ({ path, body }) => {
    const [, name = ''] = /pods\/([^/]+)\/binding$/.exec(path) ?? [];
    const known = informers.pods.get(`bench/${name}`);
    // As the watch shows it.
    if (known !== undefined) {
      const metadata = { ...known.metadata, resourceVersion: '2' };
      informers.pods.upsert({ ...known, metadata, spec: { ...known.spec, nodeName: targetOf(body) } });
    }
    if (++bound === wanted) reached();
    return body;
  };
  const running = scheduler.run(stop.signal);
  const times: number[] = [];
  for (const half of [0, 1]) {
    const part = Array.from({ length: pods / 2 }, (_, index) => podOf(half * (pods / 2) + index, specOf));
    wanted = bound + part.length;
    const done = new Promise<void>((resolve) => {
      reached = resolve;
    });
    const begun = performance.now();
    for (const pod of part) informers.pods.upsert(pod);
    await done;
    times.push(performance.now() - begun);
  }
  stop.abort();
  await running;
  return times;
}

export async function measureScheduler({ nodes, pods, runs, say }: SchedulerBench): Promise<readonly Amount[]> {
  const kinds = [
    { name: 'plain pods', specOf: plain },
    { name: 'pods with anti-affinity and spread', specOf: choosy },
  ];
  const amounts: Amount[] = [];
  for (const { name, specOf } of kinds) {
    const each: number[] = [];
    const growth: number[] = [];
    for (let run = 0; run < runs; run++) {
      const [first = NaN, second = NaN] = await halves(nodes, pods, specOf);
      each.push((first + second) / pods);
      growth.push(second / first);
      say(`scheduler, ${nodes} nodes, ${name}: ${((1000 * pods) / (first + second)).toFixed(0)} pods a second`);
    }
    const what = `scheduler, ${nodes} nodes, ${pods} ${name}`;
    amounts.push({ name: `${what}: each`, unit: 'ms', samples: each, limit: LIMIT_MS });
    amounts.push({ name: `${what}: the second half, of the first`, unit: '×', samples: growth });
  }
  const [one, , other] = amounts;
  if (one !== undefined && other !== undefined) {
    const samples = other.samples.map((sample, index) => sample / (one.samples[index] ?? NaN));
    amounts.push({
      name: `scheduler, ${nodes} nodes: a pod with anti-affinity and spread, of a plain one`,
      unit: '×',
      samples,
    });
  }
  return amounts;
}
