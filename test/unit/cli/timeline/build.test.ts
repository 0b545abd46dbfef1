import { expect, test } from 'vitest';
import { buildTimeline } from '../../../../cli/timeline/build.ts';
import type { Bar, Timeline } from '../../../../cli/timeline/model.ts';
import type { Span } from '../../../../lib/trace.ts';
import { evidence, POD, podStart, span, version } from './support.ts';

const build = (spans: readonly Span[], objects: Parameters<typeof evidence>[1] = []): Timeline =>
  buildTimeline(evidence(spans, objects), { pod: 'demo/web' });

function bar({ bars }: Timeline, name: string): Bar {
  const found = bars.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no bar "${name}" among ${bars.map((each) => each.name).join(', ')}`);
  return found;
}

const arrows = ({ arrows: all, bars }: Timeline): string[] => {
  const name = (id: string): string => bars.find((each) => each.id === id)?.name ?? id;
  return all.map(({ from, to, kind }) => `${name(from)} > ${name(to)} ${kind}`);
};

test('spans are bars in the lane of their kind; containers have a lane of their own, by name', () => {
  const timeline = build(podStart());
  expect(timeline.lanes.map(({ id }) => id)).toEqual(['api', 'worker', 'cri', 'cni', 'kernel', 'containers']);
  expect(bar(timeline, 'StartContainer web')).toMatchObject({ lane: 'cri', start: 111, end: 139, pod: 'demo/web' });
  expect(bar(timeline, 'web')).toMatchObject({ lane: 'containers', start: 139, end: 390, outcome: 'ok' });
  expect(bar(timeline, 'sandbox')).toMatchObject({ lane: 'containers', outcome: 'open' });
});

test('an action of the worker begins in its round and goes on beside it, in a row of its own', () => {
  const timeline = build(podStart());
  const [round, action] = [bar(timeline, 'syncPod'), bar(timeline, 'createSandbox')];
  expect(action.parent).toBe(round.id);
  expect(action.row).not.toBe(round.row);
});

test('arrows: what the trace links, and what ids and the order of time tell', () => {
  expect(arrows(build(podStart()))).toEqual(
    expect.arrayContaining([
      'SyncLoop ADD > syncPod recorded',
      'createSandbox > syncPod recorded',
      'syncPod > PATCH pods/status recorded',
      'RunPodSandbox > ADD network lab inferred',
      'ADD bridge > NEWLINK veth1 inferred',
      'PATCH pods/status > SyncLoop UPDATE inferred',
    ]),
  );
});

test('an event of the runtime is the effect of the call that stopped the container', () => {
  const id = 'c'.repeat(64);
  const spans = [
    ...podStart(),
    span(16, 'cri', 'StopContainer', 390, 420, { attributes: { container: id } }),
    span(17, 'cri', 'StopContainer', 390, 420, { attributes: { container: 'another' } }),
  ];
  const found = build(spans).arrows.filter(({ to }) => to === '15');
  expect(found).toEqual([{ from: '16', to: '15', kind: 'inferred' }]);
});

test('a CNI run of another pod has no part in this one', () => {
  const other = { ...POD, name: 'db', uid: 'u-2' };
  const spans = podStart().map((each) => (each.kind === 'cni' ? { ...each, pod: other } : each));
  expect(build(spans).bars.filter(({ lane }) => lane === 'cni')).toEqual([]);
});

test('decisions carry their facts', () => {
  const facts = new Map(bar(build(podStart()), 'syncPod').facts);
  expect(facts.get('decided')).toBe('createSandbox');
  const last = build(podStart()).bars.filter(({ name }) => name === 'syncPod')[2];
  expect(new Map(last?.facts).get('decided')).toBe('nothing');
});

test('with the versions of the object, the way begins at the creation and passes the scheduler', () => {
  const objects = [
    version('10', 2),
    version('11', 8, { node: 'n1' }),
    version('14', 164, { node: 'n1', phase: 'Running', ready: true }),
  ];
  const timeline = build(podStart(), objects);
  expect(timeline.marks).toEqual([
    { name: 'created', offset: 0, uncertainMs: 0 },
    { name: 'bound to a node', offset: 6, uncertainMs: 0 },
    { name: 'Ready', offset: 162, uncertainMs: 0 },
  ]);
  expect(bar(timeline, 'bind')).toMatchObject({ lane: 'scheduler', start: 0, end: 6 });
  expect(timeline.critical).toMatchObject({ from: 'created', to: 'Ready', start: 0, end: 161 });
  expect(timeline.critical?.segments[0]).toMatchObject({ owner: 'scheduler', start: 0, end: 6 });
  expect(timeline.bars.filter(({ id }) => id.startsWith('object')).map(({ name }) => name)).toEqual([
    'pod created',
    'pod bound to n1',
    'pod Running, Ready',
  ]);
  expect(arrows(timeline)).toContain('PATCH pods/status > pod Running, Ready inferred');
});

test('an object that was read later has times in whole seconds, and the way begins where the trace does', () => {
  const timeline = build(podStart(), [version('14', undefined, { node: 'n1', phase: 'Running', ready: true })]);
  expect(timeline.marks).toEqual([
    { name: 'created', offset: -10, uncertainMs: 1000 },
    { name: 'Ready', offset: -10, uncertainMs: 1000 },
  ]);
  expect(timeline.critical?.from).toBe('seen by the agent');
});

test('Ready that a watch shows before the write has its response is the end of the path', () => {
  const objects = [
    version('11', 0),
    version('12', 9, { node: 'n1' }),
    version('14', 160, { node: 'n1', phase: 'Running', ready: true }),
  ];
  const { critical, marks } = build(podStart(), objects);
  expect(marks.at(-1)).toEqual({ name: 'Ready', offset: 160, uncertainMs: 0 });
  expect(critical).toMatchObject({ to: 'Ready', end: 160 });
  expect(critical?.segments.at(-1)).toMatchObject({ text: 'waiting for the API server: PATCH pods/status', end: 160 });
});

test('of two pods of one name the newer one is shown', () => {
  const newer = { ...POD, uid: 'u-9' };
  const spans = [...podStart(), span(30, 'api', 'SyncLoop ADD', 900, 900, { pod: newer })];
  expect(build(spans).bars.map(({ name }) => name)).toEqual(['SyncLoop ADD']);
});

test('a pod that is not there is refused with the names of those that are', () => {
  expect(() => buildTimeline(evidence(podStart()), { pod: 'db' })).toThrow(/"db" in test: its pods are demo\/web/);
  expect(() => buildTimeline(evidence([]))).toThrow('test has no spans');
});

test('without a pod everything is shown, and a critical path only where there is one pod', () => {
  const other = span(40, 'cri', 'RunPodSandbox', 5, 9, { pod: { ...POD, uid: 'u-2', name: 'db' } });
  expect(buildTimeline(evidence([...podStart(), other]))).toMatchObject({ title: 'All pods', critical: undefined });
  expect(buildTimeline(evidence(podStart())).critical?.to).toBe('Ready');
});

test('a hundred thousand spans are a timeline', () => {
  const many = Array.from({ length: 100_000 }, (_, id) => span(id + 1, 'cri', 'ExecSync', id, id + 0.5));
  expect(buildTimeline(evidence(many)).bars).toHaveLength(100_000);
});
