// A headless Chromium, driven by its DevTools protocol over a socket of this machine: for tests of pages. It loads nothing from
// any network.

import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import WebSocket from 'ws';
import { removeTree } from '../../lib/remove-tree.ts';

/** Debian's; undefined where it is not installed. */
export function chromiumPath(): string | undefined {
  const path = '/usr/bin/chromium';
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    // Not there, or not to be executed: tests that need it are not registered.
    return undefined;
  }
}

interface Reply {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

export interface Page {
  /** A command of the protocol. Rejects with its error. */
  send(method: string, params?: object): Promise<Readonly<Record<string, unknown>>>;
  /** The value of an expression in the page, which must be JSON. Rejects with what it throws. */
  evaluate(expression: string): Promise<unknown>;
  /** A key press; `key` as KeyboardEvent.key. */
  press(key: string): Promise<void>;
  /** Exceptions and errors of the console since the start. */
  readonly problems: readonly string[];
  close(): Promise<void>;
}

function connect(url: string): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { perMessageDeflate: false });
    socket.once('open', () => resolve(socket));
    socket.once('error', reject);
  });
}

/** Opens the page in a window of that size. */
export async function openPage(
  path: string,
  url: string,
  size: { readonly width: number; readonly height: number },
): Promise<Page> {
  const profile = await mkdtemp(join(tmpdir(), 'nodelet-chromium-'));
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'];
  const child = spawn(
    path,
    [
      ...flags,
      `--user-data-dir=${profile}`,
      `--window-size=${size.width},${size.height}`,
      '--remote-debugging-port=0',
      'about:blank',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], detached: true },
  );
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const endpoint = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      const found = /^DevTools listening on ws:\/\/([^/]+)/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    void exited.then(() => reject(new Error('chromium ended before it listened')));
  });
  const targets: unknown = await (await fetch(`http://${endpoint}/json/list`)).json();
  const target = Array.isArray(targets) ? targets.find((each) => each.type === 'page') : undefined;
  const socket = await connect(target.webSocketDebuggerUrl);
  const waiting = new Map<number, (reply: Reply) => void>();
  const events = new Map<string, () => void>();
  const problems: string[] = [];
  let last = 0;
  socket.on('message', (raw) => {
    const reply: Reply = JSON.parse(String(raw));
    if (reply.id !== undefined) waiting.get(reply.id)?.(reply);
    if (reply.method === 'Runtime.exceptionThrown' || reply.method === 'Log.entryAdded')
      problems.push(JSON.stringify(reply.params));
    if (reply.method !== undefined) events.get(reply.method)?.();
  });
  const send: Page['send'] = (method, params = {}) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      waiting.set(id, ({ result, error }) => {
        waiting.delete(id);
        if (error !== undefined) reject(new Error(`${method}: ${error.message}`));
        else resolve(result ?? {});
      });
      socket.send(JSON.stringify({ id, method, params }));
    });
  const evaluate: Page['evaluate'] = async (expression) => {
    const { result, exceptionDetails } = await send('Runtime.evaluate', {
      expression,
      returnByValue: true,
      awaitPromise: true,
    });
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return typeof result === 'object' && result !== null && 'value' in result ? result.value : undefined;
  };
  for (const domain of ['Page', 'Runtime', 'Log']) await send(`${domain}.enable`);
  const loaded = new Promise<void>((resolve) => events.set('Page.loadEventFired', resolve));
  await send('Page.navigate', { url });
  await loaded;
  return {
    send,
    evaluate,
    problems,
    press: async (key) => {
      const text = key.length === 1 ? { text: key } : {};
      await send('Input.dispatchKeyEvent', { type: 'keyDown', key, ...text });
      await send('Input.dispatchKeyEvent', { type: 'keyUp', key });
    },
    close: async () => {
      socket.close();
      // With its helpers, which are in its process group.
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      await exited;
      await removeTree(profile);
    },
  };
}
