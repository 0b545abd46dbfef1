// The pages over HTTP, and in Debian's Chromium where that is installed.

import { type IncomingMessage, request } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startUiServer, type UiServer } from '../../../../cli/ui/server.ts';
import { UiStore } from '../../../../cli/ui/store.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { chromiumPath, openPage, type Page } from '../../../support/chromium.ts';
import { podStart, span, version } from '../timeline/support.ts';

interface Answer {
  readonly code: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

let store: UiStore;
let server: UiServer;
let address: URL;
let cookie = '';

beforeEach(async () => {
  store = new UiStore();
  store.beginConnection();
  for (const each of podStart()) store.addSpan(each);
  server = await startUiServer({ store, clock: systemClock, port: 0 });
  address = new URL(server.url);
  cookie = '';
  const { headers } = await get(`/${address.search}`);
  cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? '';
});
afterEach(() => server.close());

function get(
  path: string,
  more: { readonly method?: string; readonly headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { method = 'GET', headers = {} } = more;
  return new Promise((resolve, reject) => {
    const options = { host: address.hostname, port: address.port, path, method, headers: { cookie, ...headers } };
    const sent = request(options, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ code: response.statusCode ?? 0, headers: response.headers, body }));
    });
    sent.on('error', reject);
    sent.end();
  });
}

describe('access', () => {
  test('the token of the printed address becomes a cookie, and leaves the address', async () => {
    const answer = await get(`/timeline${address.search}&pod=demo%2Fweb`, { headers: { cookie: '' } });
    expect(answer.code).toBe(303);
    expect(answer.headers.location).toBe('/timeline?pod=demo%2Fweb');
    expect(answer.headers['set-cookie']?.[0]).toMatch(/^nodelet-ui=[\w-]{32}; HttpOnly; SameSite=Strict; Path=\/$/);
  });

  test.each([
    ['no cookie', '/pods', { cookie: '' }, 401],
    ['another cookie', '/pods', { cookie: 'nodelet-ui=guess' }, 401],
    ['another token', '/?token=guess', {}, 401],
    ['the name of another site', '/pods', { host: 'evil.example:80' }, 421],
  ] as const)('not with %s', async (_what, path, headers, code) => {
    const answer = await get(path, { headers });
    expect(answer.code).toBe(code);
    expect(answer.body).not.toContain('demo');
  });

  test('requests that would write are refused', async () => {
    expect((await get('/pods', { method: 'POST' })).code).toBe(405);
  });

  test('a page may load nothing but from this server, and be in no other page', async () => {
    const { headers, body } = await get('/');
    expect(headers['x-frame-options']).toBe('DENY');
    expect(body).toContain("default-src 'none'");
  });
});

describe('pages', () => {
  test('the list has every pod', async () => {
    store.addSpan(span(900, 'cri', 'RunPodSandbox', 0, 1, { pod: { namespace: 'demo', name: 'db', uid: 'u-2' } }));
    const { pods } = JSON.parse((await get('/pods')).body);
    expect(pods.map(({ name }: { readonly name: string }) => name).sort()).toEqual(['demo/db', 'demo/web']);
  });

  test('a timeline has the pod’s bars, in the page and as data', async () => {
    const page = await get('/timeline?pod=demo%2Fweb');
    expect(page.code).toBe(200);
    expect(page.body).toContain("connect-src 'self'");
    const data = JSON.parse((await get('/data?pod=demo%2Fweb')).body);
    expect(data.timelines[0].title).toBe('demo/web');
    expect(data.timelines[0].bars.map(({ name }: { readonly name: string }) => name)).toContain('RunPodSandbox');
    expect(data.live).toEqual({ data: '/data?pod=demo%2Fweb', events: '/events?pod=demo%2Fweb' });
  });

  test('two pods are compared', async () => {
    for (const each of podStart())
      store.addSpan({ ...each, id: each.id + 500, pod: { namespace: 'demo', name: 'db', uid: 'u-2' } });
    const data = JSON.parse((await get('/data?pod=demo%2Fweb&with=demo%2Fdb')).body);
    expect(data.timelines).toHaveLength(2);
    expect(data.comparison.differences.length).toBeGreaterThan(0);
  });

  test.each(['/timeline?pod=demo%2Fnothing', '/nothing'])('%s is not there', async (path) => {
    expect((await get(path)).code).toBe(404);
  });

  test('events come for the pod of the page alone', async () => {
    const events: string[] = [];
    const options = { host: address.hostname, port: address.port, path: '/events?pod=demo%2Fweb', headers: { cookie } };
    const response = await new Promise<IncomingMessage>((resolve) => request(options, resolve).end());
    response.setEncoding('utf8');
    response.on('data', (text: string) => events.push(text));
    await expect.poll(() => events.length).toBe(1);
    store.addSpan(span(901, 'cri', 'RunPodSandbox', 0, 1, { pod: { namespace: 'demo', name: 'db', uid: 'u-2' } }));
    store.addSpan(span(902, 'cri', 'StopContainer', 0, 1));
    store.addSpan(span(903, 'cri', 'RemoveContainer', 0, 1));
    await expect.poll(() => events.length).toBe(2);
    response.destroy();
  });
});

const chromium = chromiumPath();

function inBrowser(path: string): void {
  let page: Page;
  beforeEach(async () => {
    page = await openPage(path, server.url, { width: 1300, height: 900 });
  });
  afterEach(() => page?.close());

  const textOf = (id: string): Promise<unknown> => page.evaluate(`document.getElementById('${id}').textContent`);

  test('the list and a timeline follow what happens, and keep what is chosen', async () => {
    await expect.poll(() => textOf('pods')).toContain('demo/web');
    const { object, at } = version('9', 400, { node: 'n1', phase: 'Running', ready: true });
    store.addVersion(object, at);
    await expect.poll(() => textOf('pods')).toContain('Ready');
    await page.evaluate(`document.querySelector('a[href*="pod=demo"]').click()`);
    await expect.poll(() => page.evaluate('document.title')).toBe('demo/web: timeline');
    await expect.poll(() => textOf('connection')).toBe('live');
    await page.evaluate(
      `[...document.querySelectorAll('#steps button')].find((b) => b.textContent === 'RunPodSandbox').click()`,
    );
    store.addSpan(span(950, 'cri', 'StopContainer', 500, 510));
    await expect.poll(() => textOf('steps')).toContain('StopContainer');
    expect(await textOf('detail')).toContain('RunPodSandbox');
    expect(page.problems).toEqual([]);
  });
}

if (chromium !== undefined) describe('in Chromium', () => inBrowser(chromium));
