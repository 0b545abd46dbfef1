// A timeline as one SVG picture: lanes, bars, marks and the critical path, light or dark as the viewer is. Pure; texts from the
// trace are escaped.

import { type Bar, durationText, type Owner, type Timeline } from './model.ts';
import { clip, type TimeWindow } from './window.ts';

export interface SvgOptions {
  /** Pixels. */
  readonly width: number;
  readonly window: TimeWindow;
}

/** Each with a contrast of 3 to 1 against both backgrounds; black or white text on it has 4.5 to 1. */
export const LANE_COLOURS: Readonly<Record<Bar['lane'], string>> = {
  api: '#3b7dd8',
  scheduler: '#8661c5',
  worker: '#0f8a8a',
  volumes: '#9a6a1f',
  cgroup: '#7a7f2a',
  cri: '#2f8f4e',
  cni: '#c2571a',
  kernel: '#6b7683',
  probes: '#b8478f',
  containers: '#5f8ca8',
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
  waiting: '#8c8c8c',
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

// XML 1.0 has no other control characters.
const escapeXml = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

/** About `count` round numbers between the two. */
export function ticks({ start, end }: TimeWindow, count: number): number[] {
  const raw = (end - start) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw) ?? raw;
  const found: number[] = [];
  for (let tick = Math.ceil(start / step) * step; tick <= end; tick += step) found.push(tick);
  return found;
}

const STYLE = `
  .bg{fill:#fff}.t{fill:#1c2128;font:11px system-ui,sans-serif}.h{font-size:14px;font-weight:600}.m{fill:#57606a}
  .grid{stroke:#d8dee4}.lane{fill:#f6f8fa}.in{fill:#fff;font:11px system-ui,sans-serif}.err{stroke:#cf222e;stroke-width:2}
  .crit{stroke:#1c2128;stroke-width:1.5}.mark{stroke:#cf222e;stroke-dasharray:3 3}.arrow{fill:none;stroke:#1c2128;opacity:.55}
  @media (prefers-color-scheme:dark){.bg{fill:#0d1117}.t{fill:#e6edf3}.m{fill:#9da7b3}.grid{stroke:#30363d}.lane{fill:#161b22}
  .crit{stroke:#fff}.mark{stroke:#ff7b72}.err{stroke:#ff7b72}.arrow{stroke:#e6edf3}}`.trim();

class Picture {
  readonly #timeline: Timeline;
  readonly #window: TimeWindow;
  readonly #width: number;
  readonly #tops = new Map<string, number>();
  readonly #bottom: number;
  readonly #onPath: ReadonlySet<string>;

  constructor(timeline: Timeline, { width, window }: SvgOptions) {
    this.#timeline = timeline;
    this.#window = window;
    this.#width = width;
    this.#onPath = new Set(timeline.critical?.segments.flatMap(({ bar }) => bar ?? []));
    let y = TOP + PATH_HEIGHT + LANE_GAP;
    for (const { id, rows } of timeline.lanes) {
      this.#tops.set(id, y);
      y += rows * ROW + LANE_GAP;
    }
    this.#bottom = y;
  }

  #x(offset: number): number {
    const { start, end } = this.#window;
    const part = (Math.min(end, Math.max(start, offset)) - start) / (end - start);
    return LABEL_WIDTH + part * (this.#width - LABEL_WIDTH - 10);
  }

  #y(bar: Bar): number {
    return (this.#tops.get(bar.lane) ?? 0) + bar.row * ROW;
  }

  render(): string {
    const { title, source } = this.#timeline;
    const height = this.#bottom + 10;
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.#width}" height="${height}" viewBox="0 0 ${this.#width} ${height}" role="img">`,
      `<title>${escapeXml(`${title}, ${source}`)}</title>`,
      `<style>${STYLE}</style>`,
      `<rect class="bg" width="100%" height="100%"/>`,
      `<text class="t h" x="10" y="20">${escapeXml(title)}</text>`,
      `<text class="t m" x="10" y="37">${escapeXml(this.#summary())}</text>`,
      ...this.#lanes(),
      ...this.#axis(),
      ...this.#path(),
      ...this.#arrows(),
      ...clip(this.#timeline.bars, this.#window).map((bar) => this.#bar(bar)),
      ...this.#marks(),
      '</svg>',
      '',
    ].join('\n');
  }

  #summary(): string {
    const { critical, source } = this.#timeline;
    if (critical === undefined) return source;
    return `${source}: ${durationText(critical.end - critical.start)} from ${critical.from} to ${critical.to}`;
  }

  #lanes(): string[] {
    return this.#timeline.lanes.flatMap(({ id, title, rows }) => {
      const y = this.#tops.get(id) ?? 0;
      return [
        `<rect class="lane" x="0" y="${y - 2}" width="${this.#width}" height="${rows * ROW + 2}"/>`,
        `<text class="t" x="10" y="${y + 11}">${escapeXml(title)}</text>`,
      ];
    });
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

  #bar(bar: Bar): string {
    const [from, to] = [this.#x(bar.start), this.#x(bar.end)];
    const state = `${this.#onPath.has(bar.id) ? ' crit' : ''}${bar.outcome === 'error' ? ' err' : ''}`.trim();
    const tip = `${bar.name}: ${durationText(bar.end - bar.start)}${bar.error === undefined ? '' : `, failed: ${bar.error}`}`;
    return this.#box(from, this.#y(bar), to - from, LANE_COLOURS[bar.lane], bar.name, tip, state).join('\n');
  }

  #box(x: number, y: number, width: number, colour: string, label: string, tip: string, state: string): string[] {
    const wide = Math.max(MIN_BAR, width);
    const room = Math.floor((wide - 6) / CHARACTER);
    const text = label.length <= room ? label : room > 4 ? `${label.slice(0, room - 1)}…` : '';
    return [
      `<rect x="${x.toFixed(1)}" y="${y}" width="${wide.toFixed(1)}" height="${BAR}" rx="2" fill="${colour}"${state === '' ? '' : ` class="${state}"`}><title>${escapeXml(tip)}</title></rect>`,
      ...(text === ''
        ? []
        : [`<text class="in" pointer-events="none" x="${(x + 3).toFixed(1)}" y="${y + 11}">${escapeXml(text)}</text>`]),
    ];
  }

  /** Those along the critical path: all of them would hide the bars. */
  #arrows(): string[] {
    const byId = new Map(this.#timeline.bars.map((bar) => [bar.id, bar]));
    return this.#timeline.arrows.flatMap(({ from, to }) => {
      const [a, b] = [byId.get(from), byId.get(to)];
      if (a === undefined || b === undefined || !this.#onPath.has(from) || !this.#onPath.has(to)) return [];
      if (b.start > this.#window.end) return [];
      const x = this.#x(b.start);
      const [y1, y2] = [this.#y(a) + BAR / 2, this.#y(b) + BAR / 2];
      const begin = this.#x(Math.min(a.end, b.start));
      return [`<path class="arrow" d="M${begin.toFixed(1)} ${y1}L${x.toFixed(1)} ${y2}"/>`];
    });
  }

  #marks(): string[] {
    const { start, end } = this.#window;
    return this.#timeline.marks.flatMap(({ name, offset, uncertainMs }) => {
      if (uncertainMs > 0 || offset < start || offset > end) return [];
      const x = this.#x(offset).toFixed(1);
      return [
        `<line class="mark" x1="${x}" x2="${x}" y1="${TOP - 6}" y2="${this.#bottom}"><title>${escapeXml(name)}</title></line>`,
      ];
    });
  }
}

export function renderSvg(timeline: Timeline, options: SvgOptions): string {
  return new Picture(timeline, options).render();
}
