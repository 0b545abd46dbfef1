// A report as a list of blocks, and the two ways to write it: Markdown, and one HTML page that loads nothing. Pure; what comes
// from an experiment is text in both, and never markup.

import { escapeMarkup, htmlDocument } from '../../../lib/html.ts';
import type { MeasureSpec } from '../model.ts';
import { type Plot, plotTable } from './plot.ts';
import { PLOT_STYLE, renderPlot } from './plot-svg.ts';

/** `good` and `bad` also have their words: a tone is never the only sign. */
export type Tone = 'good' | 'bad' | 'muted';

export interface Cell {
  readonly text: string;
  readonly tone?: Tone;
  readonly code?: true;
  /** Address of a file beside the report. */
  readonly link?: string;
}

export type Block =
  | { readonly kind: 'heading'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'verdict'; readonly tone: Tone; readonly text: string }
  | { readonly kind: 'list'; readonly items: readonly string[] }
  | {
      readonly kind: 'table';
      readonly caption: string;
      readonly columns: readonly string[];
      readonly rows: readonly (readonly (string | Cell)[])[];
    }
  | { readonly kind: 'plot'; readonly plot: Plot; readonly unit: MeasureSpec['unit']; readonly name: string }
  | { readonly kind: 'code'; readonly summary: string; readonly text: string };

export interface ReportDocument {
  readonly title: string;
  readonly blocks: readonly Block[];
}

const cellOf = (cell: string | Cell): Cell => (typeof cell === 'string' ? { text: cell } : cell);

/** Where a plot's picture is, from the report. */
export const plotFile = (name: string): string => `plots/${name}.svg`;

// ---- Markdown

/** Text that Markdown shows as it is. */
const escapeMarkdown = (text: string): string =>
  text
    .replace(/[\\`*_[\]<>#|~]/g, (character) => `\\${character}`)
    .replaceAll('&', '&amp;')
    .replace(/\s*\n\s*/g, ' ');

/** Code in a row: a fence longer than any row of backticks in it. */
function codeSpan(text: string): string {
  const longest = [...text.matchAll(/`+/g)].reduce((most, [ticks]) => Math.max(most, ticks.length), 0);
  const fence = '`'.repeat(longest + 1);
  const pad = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return `${fence}${pad}${text.replace(/\s*\n\s*/g, ' ').replaceAll('|', '\\|')}${pad}${fence}`;
}

function markdownCell({ text, tone, code, link }: Cell): string {
  const shown = code === true ? codeSpan(text) : escapeMarkdown(text);
  const toned = tone === 'bad' && code !== true && text !== '' ? `**${shown}**` : shown;
  return link === undefined ? toned : `[${toned}](${encodeURI(link).replaceAll('(', '%28').replaceAll(')', '%29')})`;
}

function markdownTable(columns: readonly string[], rows: readonly (readonly Cell[])[]): string[] {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    row(columns.map(escapeMarkdown)),
    row(columns.map(() => '---')),
    ...rows.map((cells) => row(cells.map(markdownCell))),
  ];
}

function markdownBlock(block: Block): string[] {
  switch (block.kind) {
    case 'heading':
      return [`## ${escapeMarkdown(block.text)}`];
    case 'text':
      return block.text
        .trim()
        .split(/\n\s*\n/)
        .flatMap((part, index) => [...(index === 0 ? [] : ['']), escapeMarkdown(part)]);
    case 'verdict':
      return [`> **${escapeMarkdown(block.text)}**`];
    case 'list':
      return block.items.map((item) => `- ${escapeMarkdown(item)}`);
    case 'table':
      return [
        ...(block.caption === '' ? [] : [`${escapeMarkdown(block.caption)}:`, '']),
        ...markdownTable(
          block.columns,
          block.rows.map((row) => row.map(cellOf)),
        ),
      ];
    case 'plot':
      return [`![${escapeMarkdown(block.plot.alt)}](${plotFile(block.name)})`];
    case 'code': {
      const longest = [...block.text.matchAll(/`+/g)].reduce((most, [ticks]) => Math.max(most, ticks.length), 2);
      const fence = '`'.repeat(longest + 1);
      return [`${escapeMarkdown(block.summary)}:`, '', `${fence}yaml`, block.text.trimEnd(), fence];
    }
  }
}

export function renderMarkdown({ title, blocks }: ReportDocument): string {
  const parts = [`# ${escapeMarkdown(title)}`, ...blocks.map((block) => markdownBlock(block).join('\n'))];
  return `${parts.join('\n\n')}\n`;
}

/** Markdown in one file: each plot as its table. */
export function plotsInText({ title, blocks }: ReportDocument): string {
  const tables = blocks.map((block): Block => {
    if (block.kind !== 'plot') return block;
    return { kind: 'table', ...plotTable(block.plot, block.unit) };
  });
  return renderMarkdown({ title, blocks: tables });
}

// ---- HTML

const STYLE = `
:root{color-scheme:light dark;--fg:#1c2128;--bg:#fff;--soft:#f6f8fa;--line:#d0d7de;--muted:#57606a;--good:#116329;--bad:#b3202c;--link:#0550ae}
@media (prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--soft:#161b22;--line:#30363d;--muted:#9da7b3;--good:#7ee787;--bad:#ff8a80;--link:#79c0ff}}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:1rem 1.2rem 3rem}h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.2rem;margin-top:2rem}
a{color:var(--link)}.verdict{border-left:.4rem solid var(--muted);background:var(--soft);padding:.7rem 1rem;font-weight:600}
.verdict.good{border-color:var(--good)}.verdict.bad{border-color:var(--bad)}
.frame{overflow-x:auto;margin:.8rem 0}.frame:focus-visible,summary:focus-visible,a:focus-visible{outline:3px solid var(--link);outline-offset:2px}
table{border-collapse:collapse;font-size:.92rem}caption{text-align:left;color:var(--muted);padding:.2rem 0}
th,td{border:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top}th{background:var(--soft)}
.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}.muted{color:var(--muted)}p.verdict{color:var(--fg)}
code,pre{font:.88rem/1.45 ui-monospace,monospace}pre{background:var(--soft);padding:.8rem;overflow-x:auto;border:1px solid var(--line)}
figure{margin:1.2rem 0}svg.plot{max-width:100%;height:auto;border:1px solid var(--line)}summary{cursor:pointer;color:var(--muted)}
@media print{body{font-size:11pt}details>*{display:block}}`.trim();

function htmlCell(cell: Cell, head: boolean): string {
  const tag = head ? 'th scope="row"' : 'td';
  const text = cell.code === true ? `<code>${escapeMarkup(cell.text)}</code>` : escapeMarkup(cell.text);
  const linked = cell.link === undefined ? text : `<a href="${escapeMarkup(encodeURI(cell.link))}">${text}</a>`;
  return `<${tag}${cell.tone === undefined ? '' : ` class="${cell.tone}"`}>${linked}</${head ? 'th' : 'td'}>`;
}

/** Wide tables are scrolled by the keyboard, too: the frame takes the focus. */
function htmlTable(caption: string, columns: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const head = columns.map((column) => `<th scope="col">${escapeMarkup(column)}</th>`).join('');
  const body = rows.map((row) => `<tr>${row.map((cell, index) => htmlCell(cell, index === 0)).join('')}</tr>`);
  return [
    `<div class="frame" role="region" tabindex="0" aria-label="${escapeMarkup(caption)}"><table>`,
    `<caption>${escapeMarkup(caption)}</caption>`,
    `<thead><tr>${head}</tr></thead>`,
    `<tbody>${body.join('\n')}</tbody></table></div>`,
  ].join('\n');
}

function htmlPlot({ plot, unit, name }: Extract<Block, { readonly kind: 'plot' }>): string {
  const { caption, columns, rows } = plotTable(plot, unit);
  return [
    '<figure>',
    renderPlot(plot, `plot-${name}`, false),
    `<figcaption><details><summary>The numbers of this plot: ${escapeMarkup(plot.title)}</summary>`,
    htmlTable(
      caption,
      columns,
      rows.map((row) => row.map(cellOf)),
    ),
    '</details></figcaption></figure>',
  ].join('\n');
}

function htmlBlock(block: Block): string {
  switch (block.kind) {
    case 'heading':
      return `<h2>${escapeMarkup(block.text)}</h2>`;
    case 'text':
      return block.text
        .trim()
        .split(/\n\s*\n/)
        .map((part) => `<p>${escapeMarkup(part)}</p>`)
        .join('\n');
    case 'verdict':
      return `<p class="verdict ${block.tone}">${escapeMarkup(block.text)}</p>`;
    case 'list':
      return `<ul>${block.items.map((item) => `<li>${escapeMarkup(item)}</li>`).join('')}</ul>`;
    case 'table':
      return htmlTable(
        block.caption,
        block.columns,
        block.rows.map((row) => row.map(cellOf)),
      );
    case 'plot':
      return htmlPlot(block);
    case 'code':
      return `<details><summary>${escapeMarkup(block.summary)}</summary><pre tabindex="0"><code>${escapeMarkup(block.text)}</code></pre></details>`;
  }
}

export function renderHtml({ title, blocks }: ReportDocument): string {
  return htmlDocument({
    title,
    style: `${STYLE}\n${PLOT_STYLE}`,
    allows: [],
    body: `<main>
<h1>${escapeMarkup(title)}</h1>
${blocks.map(htmlBlock).join('\n')}
</main>`,
  });
}
