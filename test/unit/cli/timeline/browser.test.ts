// The page in Debian's Chromium, where that is installed: drawing, keyboard, what a screen reader hears, light and dark, ten
// thousand spans. Its arithmetic, which decides all that, is tested without a browser in view.test.ts; its markup in formats.test.ts.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildTimeline } from '../../../../cli/timeline/build.ts';
import { compareTimelines } from '../../../../cli/timeline/compare.ts';
import { renderHtml } from '../../../../cli/timeline/html.ts';
import type { Timeline } from '../../../../cli/timeline/model.ts';
import { chromiumPath, openPage, type Page } from '../../../support/chromium.ts';
import { evidence, podStart, span } from './support.ts';

const one = buildTimeline(evidence(podStart()), { pod: 'web' });
const KINDS = ['cri', 'cni', 'api', 'probe', 'volume'] as const;
const many = buildTimeline(
  evidence(
    Array.from({ length: 10_000 }, (_, id) => {
      const start = (id * 7919) % 60_000;
      return span(id + 1, KINDS[id % KINDS.length] ?? 'cri', `call ${id}`, start, start + 1 + (id % 97));
    }),
  ),
);

test('a page is made for ten thousand spans', async () => {
  expect(many.bars).toHaveLength(10_000);
  expect((await renderHtml([many], undefined)).length).toBeLessThan(10_000_000);
});

const chromium = chromiumPath();

function inBrowser(path: string): void {
  let dir = '';
  let page: Page;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'nodelet-page-'));
    page = await openPage(path, 'about:blank', { width: 1300, height: 900 });
  });
  afterAll(async () => {
    await page?.close();
    if (dir !== '') await rm(dir, { recursive: true });
  });

  async function show(timelines: readonly Timeline[]): Promise<void> {
    const [a, b] = timelines;
    const comparison = a === undefined || b === undefined ? undefined : compareTimelines(a, b);
    const file = join(dir, 'page.html');
    await writeFile(file, await renderHtml(timelines, comparison));
    const { identifier } = await page.send('Page.addScriptToEvaluateOnNewDocument', {
      source: `globalThis.loaded = new Promise((resolve) => addEventListener('load', resolve));
        globalThis.boxes = 0;
        globalThis.layouts = 0;
        const { get } = Object.getOwnPropertyDescriptor(Element.prototype, 'clientWidth');
        Object.defineProperty(Element.prototype, 'clientWidth', { get() { layouts++; return get.call(this); } });
        const { fillRect } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillRect = function (...box) { boxes++; return fillRect.apply(this, box); };`,
    });
    await page.send('Page.navigate', { url: `file://${file}` });
    await page.evaluate('loaded');
    await page.send('Page.removeScriptToEvaluateOnNewDocument', { identifier });
    await page.evaluate(`document.getElementById('chart').focus()`);
  }
  const text = (id: string): Promise<unknown> => page.evaluate(`document.getElementById('${id}').textContent`);

  test('it draws, and the tables say the same in text', async () => {
    await show([one]);
    expect(await page.evaluate('boxes')).toBeGreaterThan(one.bars.length);
    expect(await text('path')).toContain('waiting for the API server: PATCH pods/status');
    expect(await text('steps')).toContain('RunPodSandbox');
    expect(await page.evaluate('document.activeElement.id')).toBe('chart');
  });

  test('the keyboard chooses; what is chosen is announced and shown with its facts, causes and effects', async () => {
    await show([one]);
    await page.press('ArrowDown');
    expect(await text('live')).toContain('until the pod worker’s round begins, agent, at 0.0 ms');
    for (const key of ['ArrowDown', 'ArrowDown']) await page.press(key);
    expect(await text('live')).toContain('syncPod, Pod worker, at 2.0 ms, took 3.0 ms');
    expect(await text('detail')).toContain('decidedcreateSandbox');
    expect(await text('detail')).toContain('Caused bySyncLoop ADD');
    await page.press('c');
    expect(await text('live')).toContain('SyncLoop ADD, API server, at 0.0 ms, one moment');
    await page.press('e');
    await page.press('n');
    expect(await text('live')).toContain('the agent: createSandbox, agent, at 4.0 ms');
    await page.press('Escape');
    expect(await text('live')).toBe('');
  });

  test('a click on the chart and on a table chooses, and the filter narrows the table', async () => {
    await show([one]);
    await page.evaluate(
      `[...document.querySelectorAll('#steps button')].find((b) => b.textContent === 'RunPodSandbox').click()`,
    );
    expect(await text('live')).toContain('RunPodSandbox, CRI, at 10.0 ms');
    await page.evaluate(
      `(() => { const s = document.getElementById('search'); s.value = 'bridge'; s.dispatchEvent(new Event('input')); })()`,
    );
    expect(await page.evaluate(`document.querySelectorAll('#steps tbody tr').length`)).toBe(1);
  });

  test('two runs: both are drawn, and what differs is in a table', async () => {
    const slower = buildTimeline(
      evidence(podStart().map((each) => (each.id === 11 ? { ...each, durationMs: 80 } : each))),
    );
    await show([one, slower]);
    expect(await text('path')).toContain('Steps that differ: 1 of');
    expect(await text('path')).toContain('▲ B slower');
  });

  test('where the keyboard’s focus is can be seen on the chart: its ring is inside of what the box around it shows', async () => {
    await show([one]);
    await page.press('ArrowDown');
    const ring = await page.evaluate(
      `(() => { const s = getComputedStyle(document.getElementById('chart')); return [s.outlineStyle, parseFloat(s.outlineOffset) + parseFloat(s.outlineWidth)]; })()`,
    );
    expect(ring).toEqual(['solid', 0]);
  });

  test.each(['light', 'dark'])('%s', async (value) => {
    await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
    await show([one]);
    const background = await page.evaluate('getComputedStyle(document.body).backgroundColor');
    expect(background).toBe(value === 'dark' ? 'rgb(13, 17, 23)' : 'rgb(255, 255, 255)');
  });

  test('of ten thousand spans a frame draws those that can be seen', async () => {
    await show([many]);
    const frame = async (key: string): Promise<unknown> => {
      await page.evaluate('boxes = 0; layouts = 0');
      await page.press(key);
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
      return await page.evaluate('boxes');
    };
    // Zoomed in, a hundredth of the time is in sight.
    for (let step = 0; step < 7; step++) await page.press('+');
    const near = Number(await frame('+'));
    expect(near).toBeGreaterThan(5);
    expect(near).toBeLessThan(1000);
    expect(Number(await frame('a'))).toBeLessThan(many.bars.length);
    // Reading the layout for each bar would make a frame fifteen times as expensive.
    expect(Number(await page.evaluate('layouts'))).toBeLessThan(20);
  });

  test('nothing went wrong in the page', () => {
    expect(page.problems).toEqual([]);
  });
}

// Registered only where the browser is: docs/timeline.md says so.
if (chromium !== undefined) describe('in Chromium', () => inBrowser(chromium));
