import { describe, expect, it } from 'vitest';
import { createStorageApi } from '../../../../agent/api/storage-api.ts';
import type { ListOf, PatchType, RequestOptions, WatchEvent } from '../../../../client/api.ts';
import { apiError } from '../../../support/fake-client.ts';
import { settle, VirtualClock } from '../../../support/virtual-clock.ts';

/** A server that lets a node get attachments, and list and watch them only when `watchable`. */
class Server {
  attachment: { metadata: { name: string; uid: string; resourceVersion: string } } | undefined;
  watchable = false;
  gets = 0;
  async get<T>(): Promise<T> {
    this.gets++;
    if (this.attachment === undefined) throw apiError(404, 'NotFound');
    return structuredClone(this.attachment) as T;
  }
  async list<T>(): Promise<ListOf<T>> {
    if (!this.watchable) throw apiError(403, 'Forbidden');
    const items = this.attachment === undefined ? [] : [structuredClone(this.attachment)];
    return { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '1' }, items: items as T[] };
  }
  async *watch<T>(_path: string, _query: unknown, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  }
  async patch<T>(_path: string, _body: unknown, _type: PatchType, _options?: RequestOptions): Promise<T> {
    throw apiError(405, 'MethodNotAllowed');
  }
}

function start(server: Server) {
  const clock = new VirtualClock();
  const troubles: string[] = [];
  const stop = new AbortController();
  const objects = createStorageApi({ client: server, clock, onError: (m) => void troubles.push(m) }, stop.signal);
  const states: (string | undefined)[] = [];
  const until = new AbortController();
  objects.followAttachment('a', (one) => void states.push(one?.metadata.resourceVersion), until.signal);
  return { clock, troubles, stop, states, until };
}
const version = (resourceVersion: string) => ({ metadata: { name: 'a', uid: 'u', resourceVersion } });

describe('following one object', () => {
  it('is a watch where a node may watch it', async () => {
    const server = new Server();
    server.watchable = true;
    server.attachment = version('7');
    const { states, until, clock } = start(server);
    await clock.advance(5000);
    expect(states).toEqual(['7']);
    expect(server.gets).toBe(0);
    until.abort();
    await settle();
  });

  it('is reading it every second where a node may only get it, as kube-apiserver has it', async () => {
    const server = new Server();
    const { states, troubles, clock, until } = start(server);
    await settle();
    expect(states).toEqual([undefined]);
    server.attachment = version('7');
    await clock.advance(1000);
    await clock.advance(3000);
    expect(states).toEqual([undefined, '7']);
    server.attachment = version('8');
    await clock.advance(1000);
    expect(states).toEqual([undefined, '7', '8']);
    expect(troubles).toEqual([]);
    until.abort();
    const { gets } = server;
    await clock.advance(10_000);
    expect(server.gets).toBe(gets);
    expect(clock.timers).toBe(0);
  });
});
