// Reads Prometheus' text format 0.0.4, strictly: what a scraper would refuse, or two series of one name and labels, throws.

export interface ParsedSample {
  /** With the suffix of a histogram's part. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Epoch ms. */
  readonly at: number | undefined;
}

export interface ParsedFamily {
  readonly type: string;
  readonly help: string;
  readonly samples: readonly ParsedSample[];
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: (-?\d+))?$/;
const SUFFIXES: ReadonlyMap<string, readonly string[]> = new Map([
  ['histogram', ['_bucket', '_sum', '_count']],
  ['summary', ['', '_sum', '_count']],
]);
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(,|$)/y;
const UNESCAPED: Readonly<Record<string, string>> = { '\\\\': '\\', '\\"': '"', '\\n': '\n' };
const WORDS: Readonly<Record<string, number>> = { '+Inf': Infinity, '-Inf': -Infinity, NaN: Number.NaN };

function parseLabels(text: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const match = LABEL.exec(text);
    if (match === null) throw new Error(`bad labels: ${text}`);
    const [, name = '', value = ''] = match;
    if (name in labels) throw new Error(`label ${name} twice: ${text}`);
    labels[name] = value.replace(/\\["\\n]/g, (escaped) => UNESCAPED[escaped] ?? escaped);
  }
  return labels;
}

/** By family. Throws an Error that names the line. */
export function parseMetrics(text: string): ReadonlyMap<string, ParsedFamily> {
  const families = new Map<string, { type: string; help: string; samples: ParsedSample[] }>();
  const seen = new Set<string>();
  let current = '';
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line has no end');
  for (const line of text.split('\n').slice(0, -1)) {
    const [, what, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (what === 'HELP') {
      if (families.has(name)) throw new Error(`${name} is there twice`);
      families.set(name, { type: 'untyped', help: rest, samples: [] });
      current = name;
      continue;
    }
    const family = families.get(current);
    if (what === 'TYPE') {
      if (family === undefined || name !== current || family.samples.length > 0) throw new Error(`misplaced: ${line}`);
      family.type = rest;
      continue;
    }
    const match = SAMPLE.exec(line);
    if (match === null || family === undefined) throw new Error(`bad line: ${line}`);
    const [, sample = '', labelText = '', valueText = '', at] = match;
    const suffixes = SUFFIXES.get(family.type) ?? [''];
    if (!suffixes.some((suffix) => sample === `${current}${suffix}`)) throw new Error(`not of ${current}: ${line}`);
    const labels = parseLabels(labelText);
    const key = `${sample} ${JSON.stringify(Object.entries(labels).sort())}`;
    if (seen.has(key)) throw new Error(`twice: ${line}`);
    seen.add(key);
    const value = WORDS[valueText] ?? Number(valueText);
    if (Number.isNaN(value) && valueText !== 'NaN') throw new Error(`bad value: ${line}`);
    family.samples.push({ name: sample, labels, value, at: at === undefined ? undefined : Number(at) });
  }
  return families;
}
