// A timeline, or two of them, as one HTML file that loads nothing: the page's script and style are in it.

import { escapeMarkup, htmlDocument } from '../../lib/html.ts';
import type { Comparison } from './compare.ts';
import type { Timeline } from './model.ts';
import type { PageData } from './page/data.ts';
import { pageScript, pageStyle, scriptJson } from './page-script.ts';
import { LANE_COLOURS, OWNER_COLOURS } from './svg.ts';

const SCRIPTS = [
  'model.ts',
  ...['elements', 'view', 'state', 'chart', 'choice', 'tables', 'main'].map((name) => `page/${name}.ts`),
];

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
  const [style, script] = await Promise.all([pageStyle(), pageScript(SCRIPTS)]);
  const data = pageData(timelines, comparison, live);
  const title = timelines.map((timeline) => timeline.title).join(' and ');
  return htmlDocument({
    title: `${title}: timeline`,
    style,
    allows: ["script-src 'unsafe-inline'", ...(live === undefined ? [] : ["connect-src 'self'"])],
    body: `${markup(escapeMarkup(title), live !== undefined)}
<script type="application/json" id="data">${scriptJson(data)}</script>
<script>
${script}
</script>`,
  });
}

/** `title`: escaped. */
function markup(title: string, isLive: boolean): string {
  const connection = isLive
    ? '<p><a href="/">all pods</a>, <span id="connection" role="status">connecting</span></p>'
    : '<p hidden><span id="connection"></span></p>';
  return `<header><h1>${title}</h1><div id="summary"></div>${connection}</header>
<div class="tools" role="toolbar" aria-label="View">
<button type="button" id="fit">create to Ready</button><button type="button" id="everything">everything</button>
<button type="button" id="in" aria-label="zoom in">+</button><button type="button" id="out" aria-label="zoom out">−</button>
<label>filter <input type="search" id="search" placeholder="RunPodSandbox"></label>
</div>
<main>
<div class="frame">
<div id="scroll"><div id="space"></div><canvas id="chart" tabindex="0" role="application" aria-label="Timeline of ${title}" aria-describedby="help"></canvas></div>
<section id="detail" aria-label="Details"></section>
</div>
<div id="live" class="hidden" aria-live="polite"></div>
${HELP}
<div class="tables"><section id="path" aria-label="Critical path"></section><section id="steps" aria-label="Steps"></section></div>
</main>`;
}
