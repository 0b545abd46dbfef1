// A timeline as one SVG picture: lanes, bars, marks and the critical path, light or dark as the viewer is. Pure; texts from the
// trace are escaped.

import { escapeMarkup } from '../../lib/html.ts';
import { type Comparison, type Verdict, verdictIn } from './compare.ts';
import { packRows } from './lanes.ts';
import { type Bar, durationText, type Owner, type Timeline } from './model.ts';
import { ticks } from './page/view.ts';
import { clip, type TimeWindow } from './window.ts';

export interface SvgOptions {
  /** Pixels. */
  readonly width: number;
  readonly window: TimeWindow;
  /** Of two. */
  readonly comparison?: Comparison | undefined;
}

/** Each with a contrast of 3 to 1 against both backgrounds; white text on it has 4.5 to 1. */
export const LANE_COLOURS: Readonly<Record<Bar['lane'], string>> = {
  api: '#3775ca',
  scheduler: '#8661c5',
  worker: '#0e8282',
  volumes: '#9a6a1f',
  cgroup: '#757928',
  cri: '#2c8549',
  cni: '#bf561a',
  kernel: '#6b7683',
  probes: '#b8478f',
  containers: '#527991',
};

export const OWNER_COLOURS: Readonly<Record<Owner, string>> = {
  'API server': LANE_COLOURS.api,
  scheduler: LANE_COLOURS.scheduler,
  agent: LANE_COLOURS.worker,
  runtime: LANE_COLOURS.cri,
  CNI: LANE_COLOURS.cni,
  kernel: LANE_COLOURS.kernel,
  volumes: LANE_COLOURS.volumes,
  probe: LANE_COLOURS.probes,
  waiting: '#757575',
};

const LABEL_WIDTH = 130;
const ROW = 18;
const BAR = 14;
const LANE_GAP = 8;
const TOP = 64;
const PATH_HEIGHT = 20;
const MIN_BAR = 2;
/** Of a character of 11 px, roughly. */
const CHARACTER = 6.2;

const STYLE = `
  .bg{fill:#fff}.t{fill:#1c2128;font:11px system-ui,sans-serif}.h{font-size:14px;font-weight:600}.m{fill:#57606a}
  .grid{stroke:#d8dee4}.lane{fill:#f6f8fa}.in{fill:#fff;font:11px system-ui,sans-serif}.err,.slow{stroke:#cf222e;stroke-width:2}.fast{stroke:#116329;stroke-width:2}.only{stroke:#1c2128;stroke-width:2;stroke-dasharray:4 2}
  .crit{stroke:#1c2128;stroke-width:1.5}.mark{stroke:#cf222e;stroke-dasharray:3 3}.arrow{fill:none;stroke:#1c2128;opacity:.55}
  @media (prefers-color-scheme:dark){.bg{fill:#0d1117}.t{fill:#e6edf3}.m{fill:#9da7b3}.grid{stroke:#30363d}.lane{fill:#161b22}
  .crit{stroke:#fff}.mark{stroke:#ff7b72}.err,.slow{stroke:#ff7b72}.fast{stroke:#7ee787}.only{stroke:#fff}.arrow{stroke:#e6edf3}}`.trim();

class Picture {
  readonly #timeline: Timeline;
  readonly #window: TimeWindow;
  readonly #width: number;
  /** Those of the window, by lane from top to bottom, with their rows: fewer than in the whole timeline. */
  readonly #lanes: readonly { readonly title: string; readonly y: number; readonly rows: number }[];
  readonly #places = new Map<string, { readonly bar: Bar; readonly y: number }>();
  readonly #bottom: number;
  readonly #onPath: ReadonlySet<string>;
  readonly #verdicts: ReadonlyMap<string, Verdict>;

  constructor(timeline: Timeline, { width, window }: SvgOptions, verdicts: ReadonlyMap<string, Verdict>) {
    this.#timeline = timeline;
    this.#window = window;
    this.#width = width;
    this.#verdicts = verdicts;
    this.#onPath = new Set(timeline.critical?.segments.flatMap(({ bar }) => bar ?? []));
    const shown = clip(timeline.bars, window);
    const lanes: { title: string; y: number; rows: number }[] = [];
    let y = TOP + PATH_HEIGHT + LANE_GAP;
    for (const { id, title } of timeline.lanes) {
      const bars = shown.filter(({ lane }) => lane === id);
      if (bars.length === 0) continue;
      const packed = packRows(bars, ((window.end - window.start) * MIN_BAR) / width);
      for (const [index, bar] of bars.entries()) this.#places.set(bar.id, { bar, y: y + (packed[index] ?? 0) * ROW });
      const rows = packed.reduce((most, row) => Math.max(most, row + 1), 1);
      lanes.push({ title, y, rows });
      y += rows * ROW + LANE_GAP;
    }
    this.#lanes = lanes;
    this.#bottom = y;
  }

  get height(): number {
    return this.#bottom + 10;
  }

  #x(offset: number): number {
    const { start, end } = this.#window;
    const part = (Math.min(end, Math.max(start, offset)) - start) / (end - start);
    return LABEL_WIDTH + part * (this.#width - LABEL_WIDTH - 10);
  }

  /** `y`: where it begins, in pixels. */
  render(y: number): string[] {
    const { title } = this.#timeline;
    return [
      `<g transform="translate(0 ${y})">`,
      `<text class="t h" x="10" y="20">${escapeMarkup(title)}</text>`,
      `<text class="t m" x="10" y="37">${escapeMarkup(this.#summary())}</text>`,
      ...this.#backgrounds(),
      ...this.#axis(),
      ...this.#path(),
      ...this.#arrows(),
      ...[...this.#places.values()].map((place) => this.#bar(place.bar, place.y)),
      ...this.#marks(),
      '</g>',
    ];
  }

  #summary(): string {
    const { critical, source } = this.#timeline;
    if (critical === undefined) return source;
    return `${source}: ${durationText(critical.end - critical.start)} from ${critical.from} to ${critical.to}`;
  }

  #backgrounds(): string[] {
    return this.#lanes.flatMap(({ title, y, rows }) => [
      `<rect class="lane" x="0" y="${y - 2}" width="${this.#width}" height="${rows * ROW + 2}"/>`,
      `<text class="t" x="10" y="${y + 11}">${escapeMarkup(title)}</text>`,
    ]);
  }

  #axis(): string[] {
    return ticks(this.#window, 8).flatMap((offset) => {
      const x = this.#x(offset).toFixed(1);
      return [
        `<line class="grid" x1="${x}" x2="${x}" y1="${TOP - 6}" y2="${this.#bottom}"/>`,
        `<text class="t m" x="${x}" y="${TOP - 10}" text-anchor="middle">${durationText(offset)}</text>`,
      ];
    });
  }

  #path(): string[] {
    const { critical } = this.#timeline;
    if (critical === undefined) return [];
    return [
      `<text class="t" x="10" y="${TOP + 12}">critical path</text>`,
      ...critical.segments.flatMap(({ start, end, owner, text }) => {
        const [from, to] = [this.#x(start), this.#x(end)];
        return this.#box(from, TOP, to - from, OWNER_COLOURS[owner], text, `${text}: ${durationText(end - start)}`, '');
      }),
    ];
  }

  #bar(bar: Bar, y: number): string {
    const [from, to] = [this.#x(bar.start), this.#x(bar.end)];
    const verdict = this.#verdicts.get(bar.id);
    const path = verdict === undefined && this.#onPath.has(bar.id) ? 'crit' : undefined;
    const state = bar.outcome === 'error' ? 'err' : (STATES.get(verdict) ?? path ?? '');
    const failed = bar.error === undefined ? '' : `, failed: ${bar.error}`;
    const tip = `${bar.name}: ${durationText(bar.end - bar.start)}${verdict === undefined ? '' : `, ${verdict}`}${failed}`;
    return this.#box(from, y, to - from, LANE_COLOURS[bar.lane], bar.name, tip, state).join('\n');
  }

  #box(x: number, y: number, width: number, colour: string, label: string, tip: string, state: string): string[] {
    const wide = Math.max(MIN_BAR, width);
    const room = Math.floor((wide - 6) / CHARACTER);
    const text = label.length <= room ? label : room > 4 ? `${label.slice(0, room - 1)}…` : '';
    return [
      `<rect x="${x.toFixed(1)}" y="${y}" width="${wide.toFixed(1)}" height="${BAR}" rx="2" fill="${colour}"${state === '' ? '' : ` class="${state}"`}><title>${escapeMarkup(tip)}</title></rect>`,
      ...(text === ''
        ? []
        : [
            `<text class="in" pointer-events="none" x="${(x + 3).toFixed(1)}" y="${y + 11}">${escapeMarkup(text)}</text>`,
          ]),
    ];
  }

  /** Those along the critical path: all of them would hide the bars. */
  #arrows(): string[] {
    return this.#timeline.arrows.flatMap(({ from, to }) => {
      const [a, b] = [this.#places.get(from), this.#places.get(to)];
      if (a === undefined || b === undefined || !this.#onPath.has(from) || !this.#onPath.has(to)) return [];
      const [x1, x2] = [this.#x(Math.min(a.bar.end, b.bar.start)), this.#x(b.bar.start)];
      const y1 = a.y + BAR / 2;
      const y2 = b.y > a.y ? b.y : b.y < a.y ? b.y + BAR : y1;
      return [`<path class="arrow" d="M${x1.toFixed(1)} ${y1}H${x2.toFixed(1)}V${y2}"/>`];
    });
  }

  #marks(): string[] {
    const { start, end } = this.#window;
    return this.#timeline.marks.flatMap(({ name, offset, uncertainMs }) => {
      if (uncertainMs > 0 || offset < start || offset > end) return [];
      const x = this.#x(offset).toFixed(1);
      return [
        `<line class="mark" x1="${x}" x2="${x}" y1="${TOP - 6}" y2="${this.#bottom}"><title>${escapeMarkup(name)}</title></line>`,
      ];
    });
  }
}

const STATES: ReadonlyMap<Verdict | undefined, string> = new Map([
  ['slower', 'slow'],
  ['faster', 'fast'],
  ['only A', 'only'],
  ['only B', 'only'],
]);

/** One timeline, or two below each other with one scale and with what differs outlined. */
export function renderSvg(timelines: readonly Timeline[], options: SvgOptions): string {
  const verdicts = timelines.map((_, index) => {
    const ids = (options.comparison?.differences ?? []).flatMap(({ a, b, verdict }): [string, Verdict][] => {
      const id = index === 0 ? a : b;
      return id === undefined ? [] : [[id, verdictIn(index, verdict)]];
    });
    return new Map(ids);
  });
  const pictures = timelines.map((timeline, index) => new Picture(timeline, options, verdicts[index] ?? new Map()));
  const height = pictures.reduce((sum, picture) => sum + picture.height, 0);
  const title = timelines.map((timeline) => `${timeline.title}, ${timeline.source}`).join('; ');
  let y = 0;
  const bodies = pictures.map((picture) => {
    const body = picture.render(y);
    y += picture.height;
    return body;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${options.width}" height="${height}" viewBox="0 0 ${options.width} ${height}" role="img">`,
    `<title>${escapeMarkup(title)}</title>`,
    `<style>${STYLE}</style>`,
    '<rect class="bg" width="100%" height="100%"/>',
    ...bodies.flat(),
    '</svg>',
    '',
  ].join('\n');
}
