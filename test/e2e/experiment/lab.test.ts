// Experiments on a real lab: some of the library, side by side in one lab where they need nothing of their own; what stands
// between the agent and its calls; another program as the agent; and that nothing is left, however and when a run ends.

import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCompare } from '../../../cli/experiment/compare/run.ts';
import { createLabWorld, type LabWorldOptions } from '../../../cli/experiment/lab/world.ts';
import { type ExperimentSource, loadExperiment, parseExperiment } from '../../../cli/experiment/load.ts';
import type { ExperimentResult } from '../../../cli/experiment/model.ts';
import { readResultFolder, writeResultFolder } from '../../../cli/experiment/report/folder.ts';
import { runExperiment } from '../../../cli/experiment/runner.ts';
import { compareWithMachine, type MachineSnapshot, snapshotMachine } from '../../../lib/machine.ts';
import { type PrivateLab, SETTLE_MS, startLab } from '../support/lab.ts';

const LIBRARY = fileURLToPath(new URL('../../../labs/experiments/', import.meta.url));
const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));

/** For giving up only: as many times as long as the files say, for a machine that is busy with other tests. */
const PATIENCE = 5;
const TEST_MS = 3_600_000;

type Values = Readonly<Record<string, string | number>>;

interface Run {
  readonly result: ExperimentResult;
  readonly recordings: ReadonlyMap<string, string>;
  readonly lines: readonly string[];
}

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-experiment-e2e-'));
  await mkdir(join(directory, 'runs'), { mode: 0o700 });
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function run(
  source: ExperimentSource,
  values: Values,
  given: Partial<LabWorldOptions> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<Run> {
  const lines: string[] = [];
  const say = (line: string): void => {
    lines.push(line);
    given.say?.(line);
  };
  const agent = given.agent ?? 'nodelet';
  const outcome = await runExperiment({
    source,
    kind: 'lab',
    agent,
    createWorld: () => createLabWorld({ images: 'build', parent: join(directory, 'runs'), ...given, say, agent }),
    repeat: 1,
    seed: 1,
    matrix: new Map(Object.entries(values).map(([name, value]) => [name, [value]])),
    signal,
    note: say,
    patience: PATIENCE,
  });
  return { ...outcome, lines };
}

/** Like Promise.all, but no sooner than all have ended: what one that fails leaves running would disturb the next test. */
async function together<T>(works: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(works);
  return await Promise.all(works);
}

/** Every expectation that is about a lab is met, and every measure has a value. */
function expectPassed({ result, lines }: Run): void {
  const [only] = result.runs;
  const missed = only?.expectations.filter(({ outcome }) => outcome === 'not met' || outcome === 'error');
  expect({ failure: only?.failure, missed }, lines.join('\n')).toEqual({ failure: undefined, missed: [] });
  expect(only?.expectations.some(({ outcome }) => outcome === 'met')).toBe(true);
  expect(result.verdict).toBe('passed');
  expect(Object.values(only?.measures ?? {})).not.toContain(null);
  expect(Object.keys(only?.measures ?? {})).toEqual(result.experiment.measure.map(({ name }) => name));
}

describe('in a lab that is there', { timeout: TEST_MS }, () => {
  let lab: PrivateLab;
  beforeAll(async () => {
    lab = await startLab({ kills: true });
  });
  afterAll(() => lab?.stop());

  // Most of what they do is waiting for grace periods, samples and probes: together they take as long as the longest.
  test('several at the same time, each in a namespace of its own, of which nothing is left', async () => {
    const all: readonly (readonly [string, Values])[] = [
      ['cpu-quota', { limit: '200m', seconds: 15 }],
      ['oom-by-qos', { limit: '32Mi' }],
      ['probe-cost', { pods: 1, seconds: 15 }],
      ['grace-period', { grace: 3 }],
      ['sidecar-order', {}],
      ['stop-in-parallel', { grace: 15 }],
      ['subpath-propagation', {}],
    ];
    const runs = await together([
      ...all.map(async ([name, values]) =>
        run(await loadExperiment(join(LIBRARY, `${name}.yaml`)), values, { lab: lab.lab, namespace: name }),
      ),
      run(await parseExperiment(AT_ONCE, 'at-once.yaml'), {}, { lab: lab.lab, namespace: 'at-once' }),
    ]);
    for (const outcome of runs) expectPassed(outcome);
    const { items } = await lab.client.list('/api/v1/pods');
    expect(items).toEqual([]);
    const namespaces = await lab.client.list<{ metadata: { name: string } }>('/api/v1/namespaces');
    expect(namespaces.items.map(({ metadata }) => metadata.name)).not.toContain('cpu-quota');
    // Of one's own namespace alone.
    const [quota] = runs;
    expect(quota?.recordings.get('observations.jsonl')).toContain('cpu-quota/limited');
    expect(quota?.recordings.get('observations.jsonl')).not.toContain('sidecar-order/web');
    expect(quota?.result.runs[0]?.measures['use']).toContainEqual([
      expect.any(Number),
      expect.any(Number),
      'pod=cpu-quota/limited',
    ]);
  });

  test('a wait, a sleep and a command that are interrupted end, and what was made before them is removed', async () => {
    const steps: readonly (readonly [string, string])[] = [
      ['waits', `{ wait: { until: 'pod("web").exists == false', timeout: 5m } }`],
      ['sleeps', '{ sleep: 1h }'],
      ['runs-a-command', '{ exec: { pod: web, command: [sleep, "3600"] } }'],
    ];
    const outcomes = await together(
      steps.map(async ([namespace, step]) => {
        const controller = new AbortController();
        const say = (line: string): void => {
          // The step begins after its line.
          if (line.includes('the last one')) setImmediate(() => controller.abort(new Error('stopped')));
        };
        const source = await parseExperiment(waitingAt(step), 'waiting.yaml');
        return await run(source, {}, { lab: lab.lab, namespace, say }, controller.signal);
      }),
    );
    expect(outcomes.map(({ result }) => result.verdict)).toEqual(outcomes.map(() => 'interrupted'));
    for (const { result } of outcomes) expect(result.runs[0]?.failure).toContain('the last one: interrupted');
    expect((await lab.client.list('/api/v1/pods')).items).toEqual([]);
  });

  test.each<readonly [string, Values]>([
    ['start-at-once', { pods: 8 }],
    ['containerd-restart', { pods: 4, away: '1s' }],
  ])('%s', async (name, values) => {
    expectPassed(await run(await loadExperiment(join(LIBRARY, `${name}.yaml`)), values, { lab: lab.lab }));
    const { items } = await lab.client.list('/api/v1/pods');
    expect(items).toEqual([]);
  });

  test('what needs a lab of its own is refused by name', async () => {
    const source = await loadExperiment(join(LIBRARY, 'csi-driver-dies.yaml'));
    await expect(run(source, {}, { lab: lab.lab })).rejects.toThrow(/csi: needs a lab of the experiment's own/);
  });
});

/** The node and the API between which something stands: each fault once, and the agent killed while it makes a container. */
const BETWEEN = `
apiVersion: nodelet/v1
kind: Experiment
metadata: { name: between, title: faults of every kind }
question: Does the pod start in the end?
prediction: Yes.
reading: The spans with an error are the faults.
on: [lab]
world: { images: [busybox:stable], kubelet: { maxPods: 42 }, capacity: { pods: 17 } }
steps:
  - fault: { on: cni, rules: [{ call: ADD bridge, pod: default/web, action: fail, message: no bridge today, times: 1 }] }
  - fault: { on: cri, rules: [{ call: CreateContainer, action: hang, times: 1 }] }
  - apply:
      - apiVersion: v1
        kind: Pod
        metadata: { name: web }
        spec:
          terminationGracePeriodSeconds: 1
          containers: [{ name: web, image: "busybox:stable", command: [sleep, "3600"] }]
  - wait: { until: 'count(spans("PullImage")) + count(spans("ImageStatus", pod="web")) > 0 and count(events("FailedCreatePodSandBox")) > 0', timeout: 2m }
  - name: agent killed
    kill: { process: agent }
  - fault: { on: cri, rules: [] }
  - start: { process: agent }
  - wait: { until: 'pod("web").condition("Ready").status == "True"', timeout: 2m }
  - name: cut
    cut: { from: apiserver }
  - kill: { pod: web, container: web, signal: KILL }
  - wait: { until: 'count(container("web").started) == 2', timeout: 2m }
  - name: runtime away
    cut: { from: runtime }
  - name: healed
    heal: { from: runtime }
  - heal: { from: apiserver }
  - wait: { until: 'pod("web").restarts == 1 and pod("web").condition("Ready").status == "True"', timeout: 2m }
measure:
  - { name: bridge, value: 'count(spans("ADD bridge", outcome="error"))' }
  - { name: capacity, value: 'node().status.capacity.pods' }
  - { name: starts, value: 'container("web").started', unit: ms }
  - { name: exits, value: 'container("web").exitCodes' }
  - { name: whileCut, value: 'last(container("web").started) > step("cut").at and last(container("web").started) < step("healed").ended' }
  - { name: shown, value: 'count(before(after(pod("web").history("status"), step("cut").ended), step("runtime away").at))' }
  - { name: reported, value: 'count(events("FailedCreatePodSandBox", message="*no bridge today*"))' }
expect:
  - { that: bridge == 1 }
  - { that: reported >= 1 }
  - { that: 'exits == [137]' }
  - { that: shown == 0, because: no status passes a link that is cut }
  - { that: whileCut, because: a kubelet needs no API server for a restart }
  - { that: 'capacity == "42"' }
`;

/** Of two that end at once, the first is removed when the second has ended. */
const AT_ONCE = `
apiVersion: nodelet/v1
kind: Experiment
metadata: { name: at-once, title: containers that end at once }
question: Is each exit seen?
prediction: Yes.
reading: codes
on: [lab]
steps:
  - apply:
      - apiVersion: v1
        kind: Pod
        metadata: { name: crash }
        spec: { terminationGracePeriodSeconds: 1, containers: [{ name: crash, image: "busybox:stable", command: ["false"] }] }
  - wait: { until: 'pod("crash").restarts == 1 and count(container("crash").exited) >= 2', timeout: 2m }
measure:
  - { name: codes, value: 'container("crash").exitCodes' }
expect:
  - { that: 'slice(codes, 0, 2) == [1, 1] and count(container("crash").started) >= 2' }
`;

/** What a lab has besides a node. */
const SERVERS = `
apiVersion: nodelet/v1
kind: Experiment
metadata: { name: servers, title: registry and addresses and DNS }
question: Are they there?
prediction: Yes.
reading: r
on: [lab]
world: { dns: true, capacity: { addresses: 2 }, kubelet: { resolvConf: '' } }
steps:
  - cut: { from: registry }
  - name: create
    apply:
      - apiVersion: v1
        kind: Pod
        metadata: { name: slow }
        spec: { terminationGracePeriodSeconds: 1, containers: [{ name: slow, image: "sim/pull-1s:1", command: [sleep, "3600"] }] }
      - apiVersion: v1
        kind: Pod
        metadata: { name: lookup }
        spec: { terminationGracePeriodSeconds: 1, containers: [{ name: lookup, image: "nginx:stable", command: [sh, -c, getent ahosts kubernetes; sleep 3600] }] }
  - wait: { until: 'count(spans("PullImage", outcome="error")) >= 1', timeout: 2m }
  - { name: back, heal: { from: registry } }
  # The two have all addresses that there are.
  - wait: { until: 'count(container("slow").started) == 1 and count(container("lookup").started) == 1', timeout: 2m }
  - apply:
      - apiVersion: v1
        kind: Pod
        metadata: { name: third }
        spec: { terminationGracePeriodSeconds: 1, containers: [{ name: third, image: "busybox:stable", command: [sleep, "3600"] }] }
  - wait: { until: 'count(events("FailedCreatePodSandBox", pod="third", message="*no IP addresses available*")) > 0', timeout: 2m }
  - wait: { until: 'count(samples("dnsQuery", pod="*/lookup")) >= 2', timeout: 2m }
measure:
  - { name: after, value: 'container("slow").started[0] - step("back").began', unit: ms }
  - { name: names, value: 'distinct(samples("dnsQuery", pod="*/lookup").name)' }
expect:
  - { that: 'after > 900ms' }
  - { that: 'first(names) == "kubernetes.default.svc.cluster.local"' }
`;

const RESTARTS = `
apiVersion: nodelet/v1
kind: Experiment
metadata: { name: restarts, title: the first restart }
question: When is a container that fails started again?
prediction: At once, and then after 10 s.
reading: waits
on: [lab]
steps:
  - apply:
      - apiVersion: v1
        kind: Pod
        metadata: { name: crash }
        spec: { containers: [{ name: crash, image: "busybox:stable", command: [sh, -c, sleep 1; exit 3] }] }
  - wait: { until: 'count(container("crash").waits) >= 2 and count(spans("StartContainer", kind="cri", pod="crash")) >= 3', timeout: 2m }
measure:
  - { name: waits, value: 'container("crash").waits', unit: ms }
  - { name: calls, value: 'count(spans("StartContainer", kind="cri", pod="crash"))', unit: count }
  - { name: codes, value: 'distinct(container("crash").exitCodes)' }
expect:
  - { that: 'waits[0] < waits[1]', because: the first restart has no back-off }
  - { that: 'calls >= 3', because: the tap has recorded them }
  - { that: 'codes == [3]' }
`;

const SLEEPS = `
apiVersion: nodelet/v1
kind: Experiment
metadata: { name: sleeps, title: a long sleep }
question: q
prediction: p
reading: r
on: [lab]
steps: [{ sleep: 1h }]
measure: [{ name: time, value: now(), unit: ms }]
expect: [{ that: time > 0 }]
`;

/** The step that is named "the last one" takes longer than any test. */
const waitingAt = (step: string): string => `
apiVersion: nodelet/v1
kind: Experiment
metadata: { name: waiting, title: a step that does not end }
question: q
prediction: p
reading: r
on: [lab]
steps:
  - apply:
      - apiVersion: v1
        kind: Pod
        metadata: { name: web }
        spec:
          terminationGracePeriodSeconds: 1
          containers: [{ name: web, image: "busybox:stable", command: [sleep, "3600"] }]
  - wait: { until: 'pod("web").condition("Ready").status == "True"', timeout: 2m }
  - ${step.replace('{', '{ name: the last one,')}
measure: [{ name: time, value: now(), unit: ms }]
expect: [{ that: time > 0 }]
`;

/** They wait for a lab's start and for back-offs much of the time, and run side by side; the machine is compared once. */
describe('in a lab of its own', { concurrent: true, timeout: TEST_MS }, () => {
  let before: MachineSnapshot;
  beforeAll(async () => {
    before = await snapshotMachine({ directories: [join(directory, 'runs')] });
  });
  afterAll(async () => {
    expect(await readdir(join(directory, 'runs'))).toEqual([]);
    expect(
      await compareWithMachine(before, {
        directories: [join(directory, 'runs')],
        mentioning: [join(directory, 'runs')],
        settleMs: SETTLE_MS,
      }),
    ).toEqual([]);
  });

  test('csi-driver-dies, with its result as a folder that compares equal to itself', async () => {
    const outcome = await run(await loadExperiment(join(LIBRARY, 'csi-driver-dies.yaml')), { away: '1s' });
    expectPassed(outcome);
    const folder = join(directory, 'result');
    await writeResultFolder(folder, outcome.result, outcome.recordings);
    expect(await readResultFolder(folder)).toEqual(JSON.parse(JSON.stringify(outcome.result)));
    expect(await readFile(join(folder, 'report.md'), 'utf8')).toContain('Passed');
    expect(await readFile(join(folder, 'spans.jsonl'), 'utf8')).toContain('"NodePublishVolume"');
    expect(await runCompare(folder, folder, {}, () => undefined)).toBe(0);
    await rm(folder, { recursive: true });
  });

  test('a registry with images that take a time, and is away; few addresses; a name server whose queries are counted', async () => {
    expectPassed(await run(await parseExperiment(SERVERS, 'servers.yaml'), {}));
  });

  test('faults of CNI and CRI, the agent killed in a start, and both its connections cut', async () => {
    expectPassed(await run(await parseExperiment(BETWEEN, 'between.yaml'), {}));
  });

  // A real kubelet is no part of the project. This one is nodelet's agent behind a script that takes a kubelet's flags, and is
  // observed as a kubelet would be: by the tap alone.
  test('another program as the agent, whose calls are recorded by the tap', async () => {
    const program = join(directory, 'kubelet');
    const args = '--network runtime --socket-dir "$0.run"';
    const script = `#!/bin/sh
case $1 in --version) echo Kubernetes v1.99.0; exit ;; esac
mkdir -p "$0.run"
cert=
for word; do shift; case $word in --cert-dir) cert=yes ;; *) [ "$cert" = yes ] || set -- "$@" "$word"; cert= ;; esac; done
exec ${NODELET} agent "$@" ${args}
`;
    await writeFile(program, script, { mode: 0o755 });
    const outcome = await run(await parseExperiment(RESTARTS, 'restarts.yaml'), {}, { agent: `kubelet=${program}` });
    expectPassed(outcome);
    expect(outcome.recordings.get('calls.crirec')).toContain('/runtime.v1.RuntimeService/RunPodSandbox');
    await rm(`${program}.run`, { recursive: true, force: true });
  });

  test.each([
    ['as soon as something is started', /./],
    ['when its node is Ready', /is Ready/],
  ])('a run that is interrupted %s says so, and leaves nothing', async (_, moment) => {
    const controller = new AbortController();
    const source = await parseExperiment(SLEEPS, 'sleeps.yaml');
    const say = (line: string): void => {
      if (moment.test(line)) controller.abort(new Error('stopped'));
    };
    const { result, lines } = await run(source, {}, { say }, controller.signal);
    expect(result.verdict).toBe('interrupted');
    expect(lines.some((line) => moment.test(line))).toBe(true);
  });
});
