// A timeline, or two of them, as one HTML file that loads nothing: the page's script and style are put into it as they are in
// page/, without their types. What comes from the trace is data, and never markup.

import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Comparison } from './compare.ts';
import type { Timeline } from './model.ts';
import type { PageData } from './page/data.ts';
import { LANE_COLOURS, OWNER_COLOURS } from './svg.ts';

/** In the order in which they need each other. */
const SCRIPTS = ['model.ts', 'page/view.ts', 'page/main.ts'];

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Files that import nothing but types and each other, as one script. */
export function pageScript(sources: readonly string[]): string {
  const bodies = sources.map((source) =>
    stripTypeScriptTypes(source)
      .replace(/^import\b[^;]*;$/gm, '')
      .replace(/^export /gm, '')
      .split('\n')
      .map((line) => line.trimEnd())
      .filter((line) => line !== '')
      .join('\n'),
  );
  return `(() => {\n'use strict';\n${bodies.join('\n')}\n})();`;
}

export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** JSON that ends no script element, whatever its texts are. */
export const scriptJson = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');

const HELP = `<p class="muted" id="help">Click a bar, or move with the arrow keys while the chart has the focus.
<kbd>+</kbd> <kbd>-</kbd> zoom (or Ctrl and wheel), drag or <kbd>Shift</kbd> and an arrow moves, <kbd>Enter</kbd> shows the chosen bar large, <kbd>0</kbd> from
create to Ready, <kbd>a</kbd> everything, <kbd>n</kbd> <kbd>p</kbd> along the critical path, <kbd>c</kbd> to the cause, <kbd>e</kbd> to the effect,
<kbd>Esc</kbd> chooses nothing. The tables below have the same in text.</p>`;

export function pageData(
  timelines: readonly Timeline[],
  comparison: Comparison | undefined,
  live: PageData['live'],
): PageData {
  return {
    timelines,
    comparison,
    ...(live === undefined ? {} : { live }),
    laneColours: LANE_COLOURS,
    ownerColours: OWNER_COLOURS,
  };
}

/** `comparison`: of the two. A page with `live` is served by `nodelet ui`, which it may connect to. */
export async function renderHtml(
  timelines: readonly Timeline[],
  comparison: Comparison | undefined,
  live?: PageData['live'],
): Promise<string> {
  const [style, ...sources] = await Promise.all(
    ['page/style.css', ...SCRIPTS].map((name) => readFile(here(name), 'utf8')),
  );
  const data = pageData(timelines, comparison, live);
  const connection =
    live === undefined
      ? '<p hidden><span id="connection"></span></p>'
      : '<p><a href="/">all pods</a>, <span id="connection" role="status">connecting</span></p>';
  const connects = live === undefined ? '' : "; connect-src 'self'";
  const title = timelines.map((timeline) => timeline.title).join(' and ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'${connects}">
<title>${escapeHtml(title)}: timeline</title>
<style>
${style}</style>
</head>
<body>
<header><h1>${escapeHtml(title)}</h1><div id="summary"></div>${connection}</header>
<div class="tools" role="toolbar" aria-label="View">
<button type="button" id="fit">create to Ready</button><button type="button" id="everything">everything</button>
<button type="button" id="in" aria-label="zoom in">+</button><button type="button" id="out" aria-label="zoom out">−</button>
<label>filter <input type="search" id="search" placeholder="RunPodSandbox"></label>
</div>
<main>
<div class="frame">
<div id="scroll"><div id="space"></div><canvas id="chart" tabindex="0" role="application" aria-label="Timeline of ${escapeHtml(title)}" aria-describedby="help"></canvas></div>
<section id="detail" aria-label="Details"></section>
</div>
<div id="live" class="hidden" aria-live="polite"></div>
${HELP}
<div class="tables"><section id="path" aria-label="Critical path"></section><section id="steps" aria-label="Steps"></section></div>
</main>
<script type="application/json" id="data">${scriptJson(data)}</script>
<script>
${pageScript(sources)}
</script>
</body>
</html>
`;
}
