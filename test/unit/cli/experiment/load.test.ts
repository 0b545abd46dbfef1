// Reading an experiment's file: what is accepted, and the message for everything that is not. The published schema and
// the types describe the same fields.

import { expect, test } from 'vitest';
import { experimentSchema, parseExperiment } from '../../../../cli/experiment/load.ts';
import type {
  ExpectSpec,
  Experiment,
  ExperimentStep,
  FaultRule,
  MeasureSpec,
  WorldSpec,
} from '../../../../cli/experiment/model.ts';

const FILE = `
apiVersion: nodelet/v1
kind: Experiment
metadata: { name: one, title: One }
question: What?
prediction: That.
reading: So.
on: [sim, lab]
parameters:
  code: { default: 1, values: [0, 1] }
  name: { default: crash }
world:
  kubelet: { maxPods: 5 }
steps:
  - name: create
    apply:
      - apiVersion: v1
        kind: Pod
        metadata: { name: web-$(copy), labels: { code: $(code) } }
        spec: { containers: [{ name: $(name), image: busybox, command: [sh, -c, 'exit $(code); $(OTHER)'] }] }
    copies: 2
  - wait: { until: 'count(container("$(name)").exited) >= 3', timeout: 5m }
  - sleep: 10s
measure:
  - { name: exits, value: 'container("$(name)").exitCodes', unit: count, plot: bars }
  - { name: codes, value: 'distinct(exits)' }
expect:
  - { that: 'codes == [$(code)]', because: 'It exits so.', on: [sim] }
`;

test('a whole file', async () => {
  const { experiment } = await parseExperiment(FILE, 'one.yaml');
  expect(experiment.metadata.name).toBe('one');
  const [create, wait] = experiment.steps;
  expect(create).toMatchObject({
    name: 'create',
    apply: [
      {
        metadata: { name: 'web-1', labels: { code: 1 } },
        spec: { containers: [{ name: 'crash', command: ['sh', '-c', 'exit 1; $(OTHER)'] }] },
      },
      { metadata: { name: 'web-2' } },
    ],
  });
  expect(create).not.toHaveProperty('copies');
  expect(wait).toEqual({ wait: { until: 'count(container("crash").exited) >= 3', timeout: '5m' } });
  expect(experiment.expect[0]?.that).toBe('codes == [1]');
  // The report shows what the parameters were.
  expect(experiment.parameters).toEqual({ code: { default: 1, values: [0, 1] }, name: { default: 'crash' } });
});

test('a variation has other values of the parameters', async () => {
  const { vary } = await parseExperiment(FILE, 'one.yaml');
  const { expect: expectations, steps } = await vary({ code: 0, name: 'done' });
  expect(expectations[0]?.that).toBe('codes == [0]');
  expect(steps[1]).toEqual({ wait: { until: 'count(container("done").exited) >= 3', timeout: '5m' } });
  await expect(async () => vary({ other: 1 })).rejects.toThrow(
    'one.yaml: there is no parameter other; it has code, name',
  );
});

test.each<[string, string, string]>([
  ['question: What?', '', 'one.yaml: question is missing'],
  ['question: What?', 'question: 5', 'question: must be a text, not a whole number'],
  ['question: What?', 'question: ""', 'question: must not be empty'],
  ['reading: So.', 'reading: So.\nsurprise: 1', 'surprise is not known; allowed: apiVersion, kind'],
  ['nodelet/v1', 'nodelet/v2', 'apiVersion: "nodelet/v2" is none of nodelet/v1'],
  ['name: one', 'name: One', 'metadata.name: "One" is not allowed: Lower-case letters'],
  ['[sim, lab]', '[sim, cloud]', 'on[1]: "cloud" is none of sim, lab, vm'],
  ['kubelet: {', 'kubelets: {', 'world.kubelets is not known; allowed: kubelet, runtime'],
  ['  - sleep: 10s', '  - sleep: 10', 'steps[2].sleep: must be a text, not a whole number'],
  [
    '  - sleep: 10s',
    '  - sleep: 10 seconds',
    'steps[2].sleep: "10 seconds" is not allowed: Let time pass. A duration: 250ms',
  ],
  ['  - sleep: 10s', '  - { sleep: 10s, start: { process: agent } }', 'steps[2]: exactly one of apply, delete'],
  ['  - sleep: 10s', '  - { name: nothing }', 'steps[2]: exactly one of apply, delete'],
  ['  - sleep: 10s', '  - { sleep: 1s, copies: 2 }', 'steps[2].copies is for apply alone'],
  ['  - sleep: 10s', '  - kill: { process: cat }', 'steps[2].kill.process: "cat" is none of agent, containerd'],
  ['  - sleep: 10s', '  - kill: { pod: web }', 'steps[2].kill: exactly one of process, pod and container is needed'],
  ['  - sleep: 10s', '  - kill: { process: agent, pod: web, container: a }', 'steps[2].kill: exactly one of'],
  ['  - sleep: 10s', '  - use: {}', 'steps[2].use: at least one of memory, disk, pids, pod'],
  ['  - sleep: 10s', '  - apply: [{ kind: Pod }]', 'steps[2].apply[0].metadata is missing'],
  ['  - sleep: 10s', '  - apply: /nowhere/pod.yaml', 'steps[2].apply: /nowhere/pod.yaml cannot be read'],
  ['copies: 2', 'copies: 0', 'steps[0].copies: must be at least 1'],
  ['timeout: 5m', '', 'steps[1].wait.timeout is missing'],
  ['>= 3', '>= ', 'steps[1].wait.until: a value is expected, not the end (column 37 of'],
  ['distinct(exits)', 'distinct(exit)', 'measure[1].value: "exit" is no measure: known are sim, lab, vm, exits'],
  ['name: codes', 'name: exits', 'measure[1].name: exits is a name already'],
  ['name: codes', 'name: a-b', 'measure[1].name: "a-b" is not allowed'],
  ['codes == [$(code)]', 'codes == [$(cod)]', 'expect[0].that'],
  ['on: [sim] }', 'on: [vm] }', `expect[0].on: vm is not in the experiment's own "on"`],
  ['question: What?', 'question: "$(nothing)"', 'question: $(nothing) is no parameter of this file'],
  ['question: What?', 'question: *missing', 'one.yaml: is not YAML'],
  ['question: What?', 'question: {', 'one.yaml: is not YAML'],
])('%s → %s', async (from, to, message) => {
  expect(FILE).toContain(from);
  await expect(parseExperiment(FILE.replace(from, to), 'one.yaml')).rejects.toThrow(message);
});

test('a file that is no mapping', async () => {
  await expect(parseExperiment('- 1', 'one.yaml')).rejects.toThrow('one.yaml: the file must be a mapping, not a list');
});

type KeysOf<T> = T extends unknown ? keyof T : never;
type AllKeys<T> = Readonly<Record<Extract<KeysOf<T>, string>, true>>;

/** The compiler refuses a list that is not the type's. */
const TYPES = {
  '': {
    apiVersion: true,
    kind: true,
    metadata: true,
    question: true,
    prediction: true,
    reading: true,
    on: true,
    parameters: true,
    world: true,
    steps: true,
    measure: true,
    expect: true,
  } satisfies AllKeys<Experiment>,
  world: {
    kubelet: true,
    runtime: true,
    nodes: true,
    images: true,
    csi: true,
    cni: true,
    capacity: true,
    dns: true,
    controllers: true,
  } satisfies AllKeys<WorldSpec>,
  steps: {
    name: true,
    apply: true,
    delete: true,
    patch: true,
    exec: true,
    kill: true,
    start: true,
    cut: true,
    heal: true,
    fault: true,
    use: true,
    clock: true,
    shutdown: true,
    wait: true,
    sleep: true,
  } satisfies AllKeys<ExperimentStep>,
  measure: { name: true, value: true, unit: true, plot: true, title: true } satisfies AllKeys<MeasureSpec>,
  expect: { that: true, because: true, on: true } satisfies AllKeys<ExpectSpec>,
  rules: {
    call: true,
    pod: true,
    action: true,
    delay: true,
    code: true,
    message: true,
    times: true,
  } satisfies AllKeys<FaultRule>,
};

test('the published schema has the fields of the types', async () => {
  const schema = await experimentSchema();
  const properties = schema.properties ?? {};
  const steps = properties['steps']?.items;
  const described = {
    '': schema,
    world: properties['world'],
    steps,
    measure: properties['measure']?.items,
    expect: properties['expect']?.items,
    rules: steps?.properties?.['fault']?.properties?.['rules']?.items,
  };
  for (const [place, keys] of Object.entries(TYPES)) {
    const found = Object.keys(described[place as keyof typeof described]?.properties ?? {}).filter(
      (key) => key !== 'copies',
    );
    expect([place, found.toSorted()]).toEqual([place, Object.keys(keys).toSorted()]);
  }
  const actions = steps?.oneOf?.map(({ required }) => required[0]) ?? [];
  expect(actions.toSorted()).toEqual(
    Object.keys(TYPES.steps)
      .filter((key) => key !== 'name')
      .toSorted(),
  );
});
