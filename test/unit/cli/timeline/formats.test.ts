import { Script } from 'node:vm';
import { expect, test } from 'vitest';
import { buildTimeline } from '../../../../cli/timeline/build.ts';
import { byWeight, compareTimelines, stableName, verdictIn, verdictOf } from '../../../../cli/timeline/compare.ts';
import { renderComparison } from '../../../../cli/timeline/compare-text.ts';
import { renderHtml } from '../../../../cli/timeline/html.ts';
import type { PageData } from '../../../../cli/timeline/page/data.ts';
import { toTraceFile } from '../../../../cli/timeline/perfetto.ts';
import { EvidenceReader, recordingLines } from '../../../../cli/timeline/recording.ts';
import { formatOf } from '../../../../cli/timeline/run.ts';
import { LANE_COLOURS, OWNER_COLOURS, renderSvg } from '../../../../cli/timeline/svg.ts';
import { renderText } from '../../../../cli/timeline/text.ts';
import { shownWindow } from '../../../../cli/timeline/window.ts';
import { evidence, podStart, span, version } from './support.ts';

const timeline = buildTimeline(evidence(podStart()), { pod: 'web' });
const slower = buildTimeline(
  evidence([
    ...podStart().map((each) => (each.id === 11 ? { ...each, durationMs: 80 } : each)),
    span(70, 'volume', 'MountVolume.SetUp', 15, 18, { parent: 3, attributes: { volume: 'data' } }),
  ]),
);
/** Ends no element, is no markup, and has what XML cannot have. */
const NASTY = '</script><img src=x onerror=alert(1)>&"\u0000\u001b';
const nasty = buildTimeline(
  evidence([...podStart(), span(80, 'cri', NASTY, 30, 40, { outcome: 'error', error: NASTY })]),
);
const window = shownWindow([timeline], false);

test('text: a line for each step, with the critical path in full blocks and moments as points', () => {
  const lines = renderText(timeline, { width: 120, window }).split('\n');
  expect(lines[0]).toBe('demo/web, test');
  const line = (name: string): string => lines.find((each) => each.includes(` ${name} `)) ?? '';
  expect(line('RunPodSandbox')).toMatch(/^ {2}10\.0 ms {3}79\.0 ms {2}cri {10}RunPodSandbox +█+$/);
  expect(line('SyncLoop ADD')).toMatch(/^ {3}0\.0 ms {12}api {6}SyncLoop ADD +·$/);
  expect(lines).toContain('critical path, seen by the agent to Ready: 153 ms');
  expect(lines.some((each) => each.startsWith('whose time: runtime 83.0 ms, '))).toBe(true);
});

test('text: failures are named, and what ended before the window is left out', () => {
  const text = renderText(nasty, { width: 120, window: { start: 15, end: 35 } });
  expect(text).toContain('FAILED: ');
  expect(text.split('critical path')[0]).not.toContain('PATCH pods/status');
});

test('text: what a trace has of control characters does not reach the terminal', () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are looked for
  expect(renderText(nasty, { width: 120, window })).not.toMatch(/[\u0000-\u0009\u001b]/);
});

test('svg: well-formed whatever the trace has, and no script', () => {
  const svg = renderSvg([nasty], { width: 1200, window: shownWindow([nasty], true) });
  expect(svg).not.toMatch(/<script|<img/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML has none
  expect(svg).not.toMatch(/[\u0000-\u0008\u001b]/);
  expect(svg.match(/<rect /g)?.length).toBeGreaterThan(nasty.bars.length);
  for (const name of ['svg', 'g', 'title', 'style', 'text'])
    expect(svg.match(new RegExp(`<${name}[ >]`, 'g'))?.length).toBe(svg.match(new RegExp(`</${name}>`, 'g'))?.length);
});

test('svg: only lanes and rows of the window, and two timelines with what differs outlined', () => {
  const comparison = compareTimelines(timeline, slower);
  const both = renderSvg([timeline, slower], {
    width: 1200,
    window: shownWindow([timeline, slower], false),
    comparison,
  });
  expect(both.match(/class="slow"/g)?.length).toBeGreaterThan(0);
  expect(both.match(/class="fast"/g)?.length).toBeGreaterThan(0);
  expect(both.match(/class="only"/g)).toHaveLength(1);
  const early = renderSvg([timeline], { width: 1200, window: { start: 0, end: 5 } });
  expect(early).not.toContain('>CNI<');
});

function dataIn(html: string): PageData {
  const text = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(html)?.[1];
  return JSON.parse(text ?? '');
}

test('html: one file that loads nothing; its script can be compiled, its data is the timeline', async () => {
  const html = await renderHtml([timeline], undefined);
  expect(html).not.toMatch(/(src|href)=|https?:|@import|url\(/);
  expect(html).toContain(`content="default-src 'none'`);
  expect(dataIn(html).timelines).toEqual(JSON.parse(JSON.stringify([timeline])));
  const script = /<script>\n(.*?)<\/script>/s.exec(html)?.[1] ?? '';
  expect(() => new Script(script)).not.toThrow();
  expect(script).not.toMatch(/^(import|export)\b/m);
});

test('html: what the trace has ends no element and is no markup', async () => {
  const html = await renderHtml([nasty], undefined);
  expect(html).not.toContain('<img');
  expect(html.match(/<\/script>/g)).toHaveLength(2);
  expect(dataIn(html).timelines[0]?.bars.some(({ name }) => name.startsWith('</script>'))).toBe(true);
});

test('html: elements that the script looks for are there', async () => {
  const html = await renderHtml([timeline], undefined);
  const script = /<script>\n(.*?)<\/script>/s.exec(html)?.[1] ?? '';
  const wanted = [...script.matchAll(/byId\('(\w+)'\)/g)].map(([, id]) => id);
  expect(wanted.length).toBeGreaterThan(8);
  for (const id of wanted) expect(html).toContain(` id="${id}"`);
});

test('perfetto: every event has the fields that its phase needs, and slices of a track do not cross', () => {
  const { traceEvents } = toTraceFile([timeline, slower]);
  for (const event of traceEvents) {
    expect(event.name).not.toBe('');
    if (event.ph === 'M') expect(event.args).toBeDefined();
    else expect(Number.isInteger(event.ts)).toBe(true);
    if (event.ph === 'X') expect(event.dur).toBeGreaterThanOrEqual(0);
    if (event.ph === 'i') expect(event.s).toBe('t');
    if (event.ph === 's' || event.ph === 'f') expect(event.id).toBeDefined();
  }
  const tracks = Map.groupBy(
    traceEvents.filter(({ ph }) => ph === 'X'),
    ({ pid, tid }) => `${pid} ${tid}`,
  );
  for (const slices of tracks.values()) {
    slices.sort((a, b) => (a.ts ?? 0) - (b.ts ?? 0));
    for (const [index, { ts = 0, dur = 0 }] of slices.slice(0, -1).entries())
      expect(slices[index + 1]?.ts).toBeGreaterThanOrEqual(ts + dur);
  }
});

test('perfetto: flows come in pairs, each end at a slice, and two timelines are two processes', () => {
  const { traceEvents } = toTraceFile([timeline, slower]);
  const [starts, ends] = ['s', 'f'].map((phase) => traceEvents.filter(({ ph }) => ph === phase));
  expect(starts?.map(({ id }) => id)).toEqual(ends?.map(({ id }) => id));
  expect(new Set(starts?.map(({ id }) => id)).size).toBe(starts?.length);
  expect(new Set(traceEvents.map(({ pid }) => pid))).toEqual(new Set([1, 2]));
  const tracks = traceEvents
    .filter(({ name, pid }) => name === 'thread_name' && pid === 1)
    .map(({ args }) => args?.['name']);
  expect(new Set(tracks)).toEqual(new Set(['critical path', ...timeline.lanes.map(({ title }) => title)]));
});

test.each([
  [100, 101, 'same'],
  [100, 130, 'slower'],
  [130, 100, 'faster'],
  [1, 2.5, 'same'],
  [1, 4, 'slower'],
] as const)('%d ms against %d ms: %s', (a, b, expected) => {
  expect(verdictOf(a, b)).toBe(expected);
});

test.each([
  ['NEWLINK veth2b83cc1a', 'NEWLINK veth*'],
  ['MountVolume.SetUp kube-api-access-xc97r', 'MountVolume.SetUp kube-api-access-*'],
  ['ADD network nodelet-7c549717', 'ADD network nodelet-*'],
  ['StopContainer c68900c3dddf', 'StopContainer *'],
  ['CreateContainer web', 'CreateContainer web'],
])('%s and %s are one step', (name, stable) => {
  expect(stableName(name)).toBe(stable);
});

test('a comparison aligns steps by name and finds what differs, the largest first', () => {
  const comparison = compareTimelines(timeline, slower);
  expect(byWeight(comparison.differences).map(({ name, verdict }) => [name, verdict])).toEqual([
    ['StartContainer web', 'slower'],
    ['MountVolume.SetUp data', 'only B'],
  ]);
  expect(compareTimelines(timeline, timeline).differences.every(({ verdict }) => verdict === 'same')).toBe(true);
  expect([verdictIn(0, 'slower'), verdictIn(1, 'slower'), verdictIn(0, 'only A')]).toEqual([
    'faster',
    'slower',
    'only A',
  ]);
});

test('a comparison as text', () => {
  const lines = renderComparison(timeline, slower, compareTimelines(timeline, slower)).split('\n');
  expect(lines.slice(0, 2)).toEqual([
    'A: demo/web, test, seen by the agent to Ready',
    'B: All pods, test, seen by the agent to Ready',
  ]);
  expect(lines).toContain('  28.0 ms   80.0 ms   +52.0 ms  B slower cri       StartContainer web');
  expect(lines).toContain('steps that differ: 2 of 14');
});

test('a recording is read as it was written; damaged lines are reported', () => {
  const original = evidence(podStart(), [version('11', 8, { node: 'n1' }), version('14', undefined)]);
  const reader = new EvidenceReader();
  for (const line of [...recordingLines(original), '{"id":', '{"record":"pod","object":7}', '']) reader.push(line);
  const { problems, ...rest } = reader.finish('test');
  expect({ ...rest, problems: [] }).toEqual(original);
  expect(problems).toEqual([
    `line 18 is neither a span nor a version of a pod, and is left out`,
    `line 19 is neither a span nor a version of a pod, and is left out`,
  ]);
});

test.each([
  ['a.html', 'html'],
  ['a.svg', 'svg'],
  ['dir.html/a.json', 'perfetto'],
  ['a.jsonl', 'recording'],
  [undefined, 'text'],
])('the format of %s is %s', (output, expected) => {
  expect(formatOf(output === undefined ? {} : { output })).toBe(expected);
});

test('a name that says no format is refused', () => {
  expect(() => formatOf({ output: 'trace' })).toThrow(/--format/);
  expect(formatOf({ output: 'trace', format: 'svg' })).toBe('svg');
});

/** The contrast of two colours by WCAG 2: 1 to 21. */
function contrast(...colours: readonly [string, string]): number {
  const [low = 0, high = 0] = colours
    .map((colour) => {
      const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
        const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
        return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    })
    .sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

test.each([...Object.entries(LANE_COLOURS), ...Object.entries(OWNER_COLOURS)])(
  'a bar of %s, %s, can be told from both backgrounds, and white text on it can be read',
  (_what, colour) => {
    expect(contrast(colour, '#ffffff')).toBeGreaterThanOrEqual(4.5);
    for (const background of ['#f6f8fa', '#161b22']) expect(contrast(colour, background)).toBeGreaterThanOrEqual(3);
  },
);
