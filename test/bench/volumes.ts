// The benchmark's rows about volumes, in a lab of its own with the CSI driver: what ten volumes of mixed kinds cost a pod's
// start, and what the agent adds to the driver's own time for staging and publishing.

import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { RunningLab } from '../../cli/lab/lab.ts';
import type { ApiClient } from '../../client/api.ts';
import { isNotFound } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Pod } from '../../client/types.ts';
import { DRIVER_NAME } from '../../csi/driver/names.ts';
import type { Span } from '../../lib/trace.ts';
import { startBenchLab } from './lab.ts';
import { BenchPods, type PodTemplate } from './pods.ts';

type Volumes = NonNullable<Pod['spec']['volumes']>;

const NAMESPACE = 'bench-volumes';
const CLAIM = 'data';
/** A claim's volume goes with it; a pod has to have it first, to be placed. */
const READY_MS = 30_000;

export interface VolumeSamples {
  /** Ms by which the start of a pod with ten volumes is longer than a plain pod's, run by run. */
  readonly tenAbove: readonly number[];
  /** Ms from the first of the ten being mounted to the last one being up. */
  readonly tenMounts: readonly number[];
  /** Ms of staging and publishing that the driver did not spend in NodeStageVolume and NodePublishVolume. */
  readonly csiOverhead: readonly number[];
  /** The same with the claim and its PersistentVolume being looked up. */
  readonly claimOverhead: readonly number[];
}

const TEN: Volumes = [
  { name: 'disk', emptyDir: {} },
  { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
  { name: 'settings', configMap: { name: 'settings' } },
  { name: 'password', secret: { secretName: 'password' } },
  { name: 'self', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
  {
    name: 'all',
    projected: {
      sources: [
        { configMap: { name: 'settings' } },
        { secret: { name: 'password' } },
        { serviceAccountToken: { path: 'token', audience: 'bench' } },
      ],
    },
  },
  { name: 'machine', hostPath: { path: '/etc' } },
  { name: 'scratch', emptyDir: { sizeLimit: '1Mi' } },
  { name: 'inline', csi: { driver: DRIVER_NAME, volumeAttributes: { size: '16Mi' } } },
  { name: 'claim', persistentVolumeClaim: { claimName: CLAIM } },
];

/** By itself, so that what is measured is not the other volumes' share of the machine. */
const CLAIM_ONLY: Volumes = [{ name: 'claim', persistentVolumeClaim: { claimName: CLAIM } }];

export async function measureVolumes(options: {
  readonly root: string;
  readonly runs: number;
  readonly template: PodTemplate;
  readonly say: (line: string) => void;
}): Promise<VolumeSamples> {
  const callLog = join(options.root, 'calls.ndjson');
  const { say, runs } = options;
  const lab = await startBenchLab({
    root: join(options.root, 'volumes'),
    csi: ['--call-log', callLog],
    say,
  });
  try {
    const pods = new BenchPods(lab.client, NAMESPACE, options.template);
    await prepare(lab.client);
    await pods.start();
    const trace = openTrace(lab);
    const samples = {
      tenAbove: [] as number[],
      tenMounts: [] as number[],
      csiOverhead: [] as number[],
      claimOverhead: [] as number[],
    };
    // Run 0 loads what is loaded with the first volume, binds the claim, and is not counted.
    for (let run = 0; run <= runs; run++) {
      const plain = await pods.create(`plain-${run}`);
      const name = `ten-${run}`;
      const ten = await pods.create(name, TEN);
      const { uid } = (await pods.get(name)).metadata;
      const spans = await trace.ofPod(uid, TEN.length);
      await pods.delete(`plain-${run}`);
      await pods.delete(name);
      const alone = `claim-${run}`;
      await pods.create(alone, CLAIM_ONLY);
      const claimed = await trace.ofPod((await pods.get(alone)).metadata.uid, CLAIM_ONLY.length);
      await pods.delete(alone);
      if (run === 0) continue;
      samples.tenAbove.push(ten - plain);
      samples.tenMounts.push(extent(spans));
      samples.csiOverhead.push(await overhead(claimed, 'MountVolume.StageAndPublish', callLog));
      samples.claimOverhead.push(await overhead(claimed, 'MountVolume.SetUp', callLog));
      say(
        `volumes ${run}/${runs}: plain ${plain.toFixed(0)} ms, with ten volumes ${ten.toFixed(0)} ms, ` +
          `CSI above the driver's time ${samples.csiOverhead.at(-1)?.toFixed(1)} ms`,
      );
    }
    trace.close();
    await pods.stop();
    await lab.client.delete(resourcePath('v1', 'persistentvolumeclaims', { namespace: NAMESPACE, name: CLAIM }));
    return samples;
  } finally {
    const problems = await lab.stop();
    for (const problem of problems) say(problem);
  }
}

async function prepare(client: ApiClient): Promise<void> {
  const create = (plural: string, object: object): Promise<unknown> =>
    client.create(resourcePath('v1', plural, { namespace: NAMESPACE }), { apiVersion: 'v1', ...object });
  await client.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  await create('configmaps', { kind: 'ConfigMap', metadata: { name: 'settings' }, data: { a: '1', b: '2' } });
  await create('secrets', { kind: 'Secret', metadata: { name: 'password' }, stringData: { key: 'value' } });
  await create('persistentvolumeclaims', {
    kind: 'PersistentVolumeClaim',
    metadata: { name: CLAIM },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '32Mi' } } },
  });
  const deadline = performance.now() + READY_MS;
  // The account that every pod needs is made by a controller, a moment later.
  for (;;) {
    try {
      await client.get(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`);
      return;
    } catch (error) {
      if (!isNotFound(error) || performance.now() > deadline) throw error;
    }
  }
}

interface Trace {
  /** The pod's spans, once `count` of its volumes (and its token) are up. */
  ofPod(uid: string, count: number): Promise<readonly Span[]>;
  close(): void;
}

const isMount = ({ kind, name }: Span): boolean => kind === 'volume' && name === 'MountVolume.SetUp';

function openTrace(lab: RunningLab): Trace {
  const socket: Socket = connect(lab.paths.traceSocket);
  const spans: Span[] = [];
  let changed: () => void = () => undefined;
  createInterface({ input: socket }).on('line', (line) => {
    const span: Span = JSON.parse(line);
    spans.push(span);
    changed();
  });
  return {
    async ofPod(uid, count) {
      const deadline = performance.now() + READY_MS;
      for (;;) {
        const mine = spans.filter(({ pod }) => pod?.uid === uid);
        if (mine.filter(isMount).length > count) return mine;
        const left = deadline - performance.now();
        if (left <= 0) throw new Error(`the trace shows ${mine.filter(isMount).length} volumes, not ${count + 1}`);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left);
          changed = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
    close: () => socket.destroy(),
  };
}

/** Ms from the first mount's beginning to the last one's end; the token's own volume is every pod's. */
function extent(spans: readonly Span[]): number {
  const mounts = spans.filter(
    (span) => isMount(span) && !String(span.attributes['volume']).startsWith('kube-api-access'),
  );
  const ends = mounts.map(({ start, durationMs }) => start + durationMs);
  return Math.max(...ends) - Math.min(...mounts.map(({ start }) => start));
}

/** A span of the claim's mount less what the driver says it took for its two calls. */
async function overhead(spans: readonly Span[], part: string, callLog: string): Promise<number> {
  const mount = spans.find(({ name, attributes }) => name === part && attributes['volume'] === 'claim');
  const staged = spans.find(({ kind, name }) => kind === 'csi' && name === 'NodeStageVolume');
  const volume = staged?.attributes['volume_id'];
  if (mount === undefined || volume === undefined) throw new Error('the trace shows no staging of the claim');
  const calls = (await readFile(callLog, 'utf8'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line): { at: number; method: string; durationMs: number; request: { volume_id?: string } } =>
      JSON.parse(line),
    )
    .filter(({ at, request }) => request.volume_id === volume && at >= mount.start - 1)
    .filter(({ method }) => method === 'NodeStageVolume' || method === 'NodePublishVolume');
  if (calls.length !== 2) throw new Error(`the driver's log has ${calls.length} calls for the claim, not 2`);
  return mount.durationMs - calls.reduce((sum, { durationMs }) => sum + durationMs, 0);
}
