// How long each test file takes: kept from run to run, so that the next run can begin with the longest ones, and shown at
// the end of a run. Reads and writes one JSON file ({"test/e2e/x.test.ts": milliseconds}); starts nothing.

import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readFileIfExists, writeFileAtomic } from '../lib/atomic.ts';

/** Milliseconds by the file's path from the root of the repository. */
export type Durations = ReadonlyMap<string, number>;

/** Where a run of the tests keeps what it has measured, from the root of the repository. */
export const DURATIONS_FILE = '.cache/test-durations.json';
/** Names the file to which vitest's reporter writes the durations of its run (test/support/duration-reporter.ts). */
export const DURATIONS_VARIABLE = 'NODELET_TEST_DURATIONS';

/**
 * What files take, in seconds on two cores, for a tree in which no run has measured anything yet. It only has to put the
 * long ones first: a long one that begins last, alone, costs all of its time.
 */
export const USUAL_SECONDS: ReadonlyMap<string, number> = new Map([
  ['test/e2e/drills/drills.test.ts', 194],
  ['test/e2e/lab/lab.test.ts', 180],
  ['test/e2e/exercises/exercises.test.ts', 161],
  ['test/e2e/docs/docs.test.ts', 150],
  ['test/e2e/lifecycle/containers.test.ts', 128],
  ['test/e2e/csi-agent/agent-killed.test.ts', 103],
  ['test/e2e/nodes/nodes.test.ts', 97],
  ['test/e2e/csi-driver/crash.test.ts', 97],
  ['test/e2e/experiment/lab.test.ts', 96],
  ['test/e2e/agent/outages.test.ts', 92],
  ['test/e2e/docs/demo.test.ts', 90],
  ['test/e2e/csi-driver/sanity.test.ts', 88],
  ['test/e2e/kubectl/kubectl.test.ts', 87],
  ['test/e2e/probes/probes.test.ts', 86],
  ['test/e2e/proxy/traffic.test.ts', 85],
  ['test/e2e/agent/agent-killed.test.ts', 81],
  ['test/e2e/nodes/faults.test.ts', 78],
  ['test/e2e/explain/explain.test.ts', 75],
  ['test/e2e/dockershim/docker.test.ts', 74],
  ['test/e2e/volumes/live.test.ts', 72],
  ['test/e2e/disk/full-disk.test.ts', 70],
  ['test/e2e/registry/pull.test.ts', 57],
  ['test/e2e/csi-driver/lab.test.ts', 51],
  ['test/e2e/agent/stubborn.test.ts', 49],
  ['test/e2e/csi-agent/lab.test.ts', 49],
  ['test/e2e/csi-agent/kill.test.ts', 47],
  ['test/e2e/agent/bad-input.test.ts', 46],
  ['test/sim/sim.test.ts', 41],
  ['test/e2e/tap/tap.test.ts', 38],
  ['test/e2e/storage/drill.test.ts', 38],
  ['test/e2e/agent/talk.test.ts', 38],
  ['test/e2e/lifecycle/configuration.test.ts', 38],
  ['test/e2e/volumes/types.test.ts', 36],
  ['test/e2e/registry/lab.test.ts', 35],
  ['test/e2e/agent/delete.test.ts', 34],
  ['test/e2e/crictl/by-hand.test.ts', 33],
  ['test/hostile/hostile.test.ts', 30],
  ['test/e2e/volumes/ends.test.ts', 30],
  ['test/e2e/setup/run-tests.test.ts', 28],
  ['test/e2e/static-pods/mirror.test.ts', 26],
  ['test/sim/control-plane/control-plane.test.ts', 26],
  ['test/e2e/csi-driver/strict.test.ts', 18],
  ['test/e2e/csi-driver/disks.test.ts', 12],
  ['test/e2e/kubectl/commands.test.ts', 26],
  ['test/e2e/explain/service.test.ts', 25],
  ['test/e2e/explain/node.test.ts', 25],
  ['test/e2e/nodes/crash.test.ts', 25],
  ['test/e2e/controlplane/cluster.test.ts', 25],
  ['test/e2e/agent/restart.test.ts', 25],
  ['test/e2e/csi-agent/options.test.ts', 24],
  ['test/e2e/resize/resize.test.ts', 22],
  ['test/e2e/kubectl/custom-resources.test.ts', 22],
  ['test/e2e/storage/kubectl.test.ts', 21],
  ['test/e2e/lab/ends.test.ts', 21],
  ['test/e2e/agent/runtime-network.test.ts', 21],
  ['test/e2e/apiserver/store-file.test.ts', 20],
  ['test/e2e/lifecycle/restarts.test.ts', 19],
  ['test/e2e/controlplane/sets.test.ts', 19],
  ['test/e2e/metrics/top.test.ts', 17],
  ['test/e2e/controlplane/workloads.test.ts', 15],
  ['test/e2e/explain/images.test.ts', 15],
  ['test/e2e/controlplane/jobs.test.ts', 14],
  ['test/e2e/lab/root.test.ts', 14],
  ['test/unit/hostile/requests.test.ts', 13],
  ['test/e2e/csi-agent/attach.test.ts', 13],
  ['test/e2e/controlplane/scheduler.test.ts', 13],
  ['test/e2e/static-pods/standalone.test.ts', 12],
  ['test/e2e/agent/alone.test.ts', 12],
  ['test/e2e/apiserver/etcd-store.test.ts', 12],
  ['test/e2e/controlplane/load-balancers.test.ts', 12],
  ['test/e2e/agent/eviction.test.ts', 11],
  ['test/e2e/explain/storage.test.ts', 11],
  ['test/e2e/lab/linked-root.test.ts', 11],
  ['test/e2e/kubectl/kinds.test.ts', 11],
  ['test/e2e/runtime/pod-lifecycle.test.ts', 11],
  ['test/e2e/kubectl/auth.test.ts', 11],
  ['test/e2e/storage/claims.test.ts', 10],
  ['test/unit/apiserver/limits/worst-case.test.ts', 10],
  ['test/unit/apiserver/http/connections.test.ts', 10],
  ['test/e2e/cni/shim.test.ts', 9],
  ['test/e2e/cni/runtime.test.ts', 9],
  ['test/e2e/runtime/restart.test.ts', 9],
  ['test/e2e/apiserver/etcd.test.ts', 9],
  ['test/e2e/dns/server.test.ts', 9],
  ['test/e2e/controlplane/disruption.test.ts', 9],
  ['test/e2e/csi-agent/groups.test.ts', 9],
  ['test/e2e/timeline/timeline.test.ts', 8],
  ['test/unit/agent/volumes/full-node.test.ts', 8],
  ['test/e2e/controlplane/faults.test.ts', 8],
  ['test/e2e/kubectl/admission.test.ts', 7],
  ['test/e2e/lab/images.test.ts', 7],
  ['test/e2e/apiserver/full-disk.test.ts', 7],
  ['test/e2e/cni/containerd.test.ts', 7],
  ['test/e2e/volumes/volumes.test.ts', 7],
  ['test/e2e/netpol/kernel.test.ts', 6],
  ['test/e2e/agent/life.test.ts', 6],
  ['test/e2e/conformance/lifecycle.test.ts', 6],
  ['test/e2e/volumes/hanging-programs.test.ts', 5],
  ['test/e2e/controlplane/leader-election.test.ts', 5],
  ['test/e2e/apiserver/client-node.test.ts', 5],
  ['test/e2e/explain/workloads.test.ts', 5],
  ['test/e2e/setup/setup.test.ts', 5],
  ['test/e2e/conformance/custom-resources.test.ts', 5],
  ['test/e2e/controlplane/readiness.test.ts', 4],
  ['test/e2e/apiserver/server.test.ts', 4],
  ['test/e2e/server/kubelet-server.test.ts', 4],
  ['test/e2e/controlplane/certificates.test.ts', 4],
  ['test/e2e/kubectl/proxy.test.ts', 4],
  ['test/e2e/experiment/command.test.ts', 4],
  ['test/e2e/cni/cleanup.test.ts', 3],
  ['test/e2e/controlplane/garbage.test.ts', 3],
  ['test/e2e/proxy/kernel.test.ts', 3],
  ['test/e2e/conformance/webhooks.test.ts', 3],
  ['test/e2e/kubectl/aggregation.test.ts', 3],
  ['test/e2e/lab/pulled.test.ts', 3],
  ['test/e2e/lab/not-root.test.ts', 2],
  ['test/e2e/csi-agent/local.test.ts', 2],
  ['test/e2e/volumes/remove-tree.test.ts', 2],
  ['test/e2e/cni/netlink.test.ts', 2],
  ['test/e2e/disk/writers.test.ts', 1],
  ['test/e2e/conformance/machinery.test.ts', 1],
  ['test/e2e/volumes/race.test.ts', 1],
  ['test/e2e/conformance/objects.test.ts', 1],
  ['test/e2e/setup/kubectls.test.ts', 1],
  ['test/e2e/conformance/quota.test.ts', 1],
  ['test/e2e/setup/vm-guardian.test.ts', 1],
  ['test/e2e/apiserver/content-type.test.ts', 1],
  ['test/e2e/runtime/cgroups.test.ts', 1],
  ['test/e2e/volumes/linked-root.test.ts', 1],
]);

/**
 * For a file of which nothing is known: a new unit test is short; a new end-to-end test may be a long one, which alone at the
 * end would cost all of its time, while a short one that begins early costs nothing.
 */
const UNKNOWN_UNIT_MS = 5_000;
const UNKNOWN_END_TO_END_MS = 60_000;

/** Pure. What is no number is left out: the file is only a help. */
export function parseDurations(text: string): Durations {
  const value: unknown = JSON.parse(text);
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return new Map(entries.flatMap(([file, ms]) => (typeof ms === 'number' ? [[file, ms] as const] : [])));
}

/** Empty when there is none, or when it is no JSON. */
export async function readDurations(path: string): Promise<Durations> {
  const text = await readFileIfExists(path);
  if (text === undefined) return new Map();
  try {
    return parseDurations(text);
  } catch (error) {
    if (error instanceof SyntaxError) return new Map();
    throw error;
  }
}

export async function writeDurations(path: string, durations: Durations): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const sorted = [...durations].toSorted(([a], [b]) => (a < b ? -1 : 1));
  await writeFileAtomic(path, `${JSON.stringify(Object.fromEntries(sorted), undefined, 1)}\n`);
}

/** What is known after a run: its own figures, and for the files that it did not run those from before. Pure. */
export function mergeDurations(before: Durations, run: Durations, exists: (file: string) => boolean): Durations {
  return new Map([...before, ...run].filter(([file]) => exists(file)));
}

/** How long a file is expected to take, in ms. Pure. */
export function expectedMs(file: string, known: Durations): number {
  const usual = USUAL_SECONDS.get(file);
  if (usual !== undefined) return known.get(file) ?? usual * 1000;
  return known.get(file) ?? (/^test\/(e2e|hostile)\//.test(file) ? UNKNOWN_END_TO_END_MS : UNKNOWN_UNIT_MS);
}

/** One line for each of the `count` files that took longest. Pure. */
export function slowestLines(durations: Durations, count: number): readonly string[] {
  const slowest = [...durations].toSorted(([, a], [, b]) => b - a).slice(0, count);
  return slowest.map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(8)} s  ${file}`);
}
