// A full node's ConfigMaps and Secrets, 110 MB of them, go through an agent whose heap may be smaller than they are:
// nothing of that size is kept, neither after the first mount nor after all have changed, nor by an agent that starts anew.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { BIG_STAYS_MS } from '../../../../agent/api/content-cache.ts';
import {
  contentOf,
  encodedContentOf,
  isSecret,
  NAMESPACE,
  OBJECT_BYTES,
  objectName,
  ownFile,
  SHARED,
} from './full-node-pods.ts';

const PODS = 110;
/** Less than all contents together; what the agent once had. */
const OLD_SPACE_MIB = 96;
/** For giving up only. */
const PATIENCE_MS = 300_000;
const PROGRAM = join(import.meta.dirname, 'full-node-program.ts');

/** An API server with the objects of full-node-pods.ts, all of one version, made when they are asked for. */
class ObjectServer {
  version = 1;
  /** Requests for contents. */
  reads = 0;
  readonly #watches = new Map<string, ServerResponse>();
  readonly #server = createServer((request, response) => this.#answer(request, response));

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
  get watching(): number {
    return this.#watches.size;
  }
  /** Every object is replaced, and every watcher receives all of it. */
  async changeAll(): Promise<void> {
    this.version++;
    for (const [name, response] of this.#watches) {
      if (name === SHARED) continue;
      for (const part of this.#object(name, '{"type":"MODIFIED","object":{', '}\n')) response.write(part);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  /** Its JSON between two texts, of which the first has opened the object; in parts that are made once for all objects. */
  *#object(name: string, before: string, after: string): Iterable<string | Buffer> {
    const isEncoded = name !== SHARED && isSecret(Number(name.split('-')[1]));
    const metadata = { name, namespace: NAMESPACE, uid: name, resourceVersion: String(this.version) };
    const note = name === SHARED ? '"note":"short",' : '';
    yield `${before}"metadata":${JSON.stringify(metadata)},"data":{${note}"content":"`;
    yield* isEncoded ? encodedContentOf(name, this.version) : contentOf(name, this.version);
    yield `"}}${after}`;
  }
  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://server');
    const selected = url.searchParams.get('fieldSelector')?.replace('metadata.name=', '');
    const name = selected ?? url.pathname.split('/').at(-1) ?? '';
    response.setHeader('content-type', 'application/json');
    if (url.searchParams.get('watch') === 'true') {
      response.flushHeaders();
      this.#watches.set(name, response);
      response.on('close', () => this.#watches.delete(name));
      return;
    }
    this.reads++;
    const kind = url.pathname.includes('/secrets') ? 'Secret' : 'ConfigMap';
    const list = `"metadata":{"resourceVersion":"${this.version}"},"items":[{`;
    const parts =
      selected === undefined
        ? this.#object(name, `{"apiVersion":"v1","kind":"${kind}",`, '')
        : this.#object(name, `{"apiVersion":"v1","kind":"${kind}List",${list}`, ']}');
    for (const part of parts) response.write(part);
    response.end();
  }
}

class Agent {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterableIterator<string>;
  #stderr = '';

  constructor(server: string, root: string) {
    const flags = [`--max-old-space-size=${OLD_SPACE_MIB}`, '--optimize-for-size', '--expose-gc'];
    this.#process = spawn(process.execPath, [...flags, PROGRAM, server, root, String(PODS)]);
    this.#process.stderr?.on('data', (chunk: Buffer) => (this.#stderr = (this.#stderr + chunk).slice(-4000)));
    const { stdout } = this.#process;
    if (stdout === null) throw new Error('the program has no stdout');
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  }
  async line(): Promise<{ mounted?: number; bytes?: number }> {
    const { done, value } = await this.#lines.next();
    if (done === true) throw new Error(`the program ended: ${this.#process.signalCode} ${this.#stderr}`);
    return JSON.parse(value);
  }
  /** Bytes in use after a garbage collection. */
  async bytes(): Promise<number> {
    this.#process.stdin?.write('\n');
    return (await this.line()).bytes ?? Number.NaN;
  }
  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#process.kill('SIGKILL');
    await once(this.#process, 'exit');
  }
}

const server = new ObjectServer();
let root = '';
let url = '';
let agent: Agent | undefined;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nodelet-full-node-'));
  url = await server.listen();
});
afterAll(async () => {
  await agent?.kill();
  server.close();
  await rm(root, { recursive: true, force: true });
});

/** A file as it was read last. */
const file = Buffer.alloc(OBJECT_BYTES + 1);
function shows(index: number): boolean {
  const fd = openSync(join(root, ownFile(index)), 'r');
  try {
    const read = file.subarray(0, readSync(fd, file));
    const [own, filler] = contentOf(objectName(index), server.version);
    return read.subarray(0, own.length).equals(own) && read.subarray(own.length).equals(filler);
  } finally {
    closeSync(fd);
  }
}
const all = Array.from({ length: PODS }, (_, index) => index);

/** Far below what one in ten of the objects takes. */
const KEPT_BYTES = 40 * 1024 * 1024;

test('110 pods with 110 MB of ConfigMaps and Secrets: mounted, followed, and mounted again by the next agent', async () => {
  const began = performance.now();
  const first = new Agent(url, root);
  agent = first;
  expect((await first.line()).mounted).toBe(PODS);
  // Each object was asked for once; the one that all share may have been dropped and read again, as often as time passed.
  const drops = (performance.now() - began) / BIG_STAYS_MS;
  expect(server.reads).toBeLessThan(PODS * 1.2 + drops);
  expect(all.filter((index) => !shows(index))).toEqual([]);
  await vi.waitFor(() => expect(server.watching).toBe(PODS + 1), { timeout: PATIENCE_MS, interval: 100 });
  await vi.waitFor(async () => expect(await first.bytes()).toBeLessThan(KEPT_BYTES), {
    timeout: PATIENCE_MS,
    interval: 500,
  });

  await server.changeAll();
  await vi.waitFor(() => expect(all.find((index) => !shows(index))).toBeUndefined(), {
    timeout: PATIENCE_MS,
    interval: 300,
  });
  await vi.waitFor(async () => expect(await first.bytes()).toBeLessThan(KEPT_BYTES), {
    timeout: PATIENCE_MS,
    interval: 500,
  });

  await first.kill();
  const second = new Agent(url, root);
  agent = second;
  expect((await second.line()).mounted).toBe(PODS);
  expect(all.filter((index) => !shows(index))).toEqual([]);
  await vi.waitFor(async () => expect(await second.bytes()).toBeLessThan(KEPT_BYTES), {
    timeout: PATIENCE_MS,
    interval: 500,
  });
}, 1_200_000);
