import { describe, expect, test, vi } from 'vitest';
import { type ChangeDetection, LINGER_MS, SharedObjects } from '../../../../agent/api/shared-objects.ts';
import type { ListOf, WatchEvent } from '../../../../client/api.ts';
import { ApiError } from '../../../../client/errors.ts';
import type { Query } from '../../../../client/paths.ts';
import type { ConfigMap, Pod } from '../../../../client/types.ts';
import { ManualClock, pod } from '../volumes/support.ts';

const apiError = (code: number, reason: string) =>
  new ApiError({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code }, code, 'x');

/** ConfigMaps at a server that counts requests, and sends watchers what a test changes. */
class Server {
  readonly calls: string[] = [];
  readonly objects = new Map<string, ConfigMap>();
  readonly watchers = new Set<(event: WatchEvent<ConfigMap> | Error) => void>();
  revision = 1;
  listFailure: Error | undefined;

  set(name: string, value: string, more: Partial<ConfigMap> = {}): void {
    const type = this.objects.has(name) ? 'MODIFIED' : 'ADDED';
    const metadata = { name, namespace: 'ns', uid: name, resourceVersion: String(++this.revision) };
    const object: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { value }, ...more };
    this.objects.set(name, object);
    for (const tell of this.watchers) tell({ type, object });
  }
  remove(name: string): void {
    const object = this.objects.get(name);
    this.objects.delete(name);
    this.revision++;
    if (object !== undefined) for (const tell of this.watchers) tell({ type: 'DELETED', object });
  }
  /** Every watch ends with this. */
  breakWatches(error: Error): void {
    for (const tell of [...this.watchers]) tell(error);
  }

  async get<T>(path: string): Promise<T> {
    this.calls.push(`GET ${path}`);
    const found = this.objects.get(path.split('/').at(-1) ?? '');
    if (found === undefined) throw apiError(404, 'NotFound');
    return structuredClone(found) as T;
  }
  async list<T>(path: string, query: Query = {}): Promise<ListOf<T>> {
    this.calls.push(`LIST ${path} ${query['fieldSelector']}`);
    if (this.listFailure !== undefined) throw this.listFailure;
    const name = String(query['fieldSelector']).replace('metadata.name=', '');
    const items = [...this.objects.values()].filter(({ metadata }) => metadata.name === name);
    const metadata = { resourceVersion: String(this.revision) };
    return { apiVersion: 'v1', kind: 'ConfigMapList', metadata, items: structuredClone(items) as T[] };
  }
  async *watch<T>(path: string, query: Query, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    this.calls.push(`WATCH ${path} ${query['fieldSelector']} from ${query['resourceVersion']}`);
    const name = String(query['fieldSelector']).replace('metadata.name=', '');
    const queue: (WatchEvent<ConfigMap> | Error)[] = [];
    let wake: () => void = () => undefined;
    const tell = (event: WatchEvent<ConfigMap> | Error) => {
      if (!(event instanceof Error) && event.type !== 'ERROR' && event.object.metadata.name !== name) return;
      queue.push(event);
      wake();
    };
    this.watchers.add(tell);
    signal.addEventListener('abort', () => wake(), { once: true });
    try {
      while (!signal.aborted) {
        const next = queue.shift();
        if (next instanceof Error) throw next;
        if (next !== undefined) yield structuredClone(next) as WatchEvent<T>;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      this.watchers.delete(tell);
    }
  }
}

function fixture(strategy: ChangeDetection = 'Watch') {
  const server = new Server();
  const clock = new ManualClock();
  const failures: string[] = [];
  const shared = new SharedObjects({
    client: server,
    clock,
    strategy,
    ttlMs: () => 60_000,
    onFailure: (what) => failures.push(what),
    random: () => 0,
  });
  const read = async (name = 'cm') => (await shared.read('configMap', 'ns', name))?.data?.['value'];
  /** Waits until so many watches run. */
  const watching = (count = 1) => vi.waitFor(() => expect(server.watchers.size).toBe(count));
  return { server, clock, shared, failures, read, watching };
}

const user = (uid: string, name = 'cm'): Pod =>
  pod({ volumes: [{ name: 'v', configMap: { name } }] }, { uid, namespace: 'ns' });
const envUser = (uid: string, name = 'cm'): Pod =>
  pod({ containers: [{ name: 'c', image: 'i', envFrom: [{ configMapRef: { name } }] }] }, { uid, namespace: 'ns' });
const LIST = 'LIST /api/v1/namespaces/ns/configmaps metadata.name=cm';

describe('an object that pods use', () => {
  test('is listed once and then watched by its name from the list on', async () => {
    const { server, shared, read, watching } = fixture();
    server.set('cm', '1');
    shared.follow(user('a'), () => undefined);
    expect(server.calls).toEqual([]);
    expect(await Promise.all([read(), read()])).toEqual(['1', '1']);
    expect(await read()).toBe('1');
    await watching();
    expect(server.calls).toEqual([LIST, 'WATCH /api/v1/namespaces/ns/configmaps metadata.name=cm from 2']);
  });

  test('costs the second pod no request at all', async () => {
    const { server, shared, read, watching } = fixture();
    server.set('cm', '1');
    shared.follow(user('a'), () => undefined);
    await read();
    await watching();
    shared.follow(user('b'), () => undefined);
    expect(await read()).toBe('1');
    expect(server.calls).toHaveLength(2);
    shared.close();
  });

  test('is listed again for a pod that comes while the first list is under way, and watched from the newest', async () => {
    const { server, shared, read, watching } = fixture();
    const changed = vi.fn();
    server.set('cm', '1');
    shared.follow(user('a'), changed);
    const first = read();
    server.set('cm', '2');
    shared.follow(envUser('b'), () => undefined);
    const second = read();
    expect(await first).toBe('1');
    expect(await second).toBe('2');
    await watching();
    expect(server.calls).toEqual([LIST, LIST, `WATCH ${LIST.slice(5)} from 3`]);
    expect(changed).toHaveBeenCalledTimes(1);
    shared.close();
  });

  test('notifies every pod whose volume shows it, and no other', async () => {
    const { server, shared, read, watching } = fixture();
    const [a, b, env] = [vi.fn(), vi.fn(), vi.fn()];
    server.set('cm', '1');
    shared.follow(user('a'), a);
    shared.follow(user('b'), b);
    shared.follow(envUser('c'), env);
    await read();
    await watching();
    server.set('cm', '2');
    await vi.waitFor(() => expect(a).toHaveBeenCalledTimes(1));
    expect(b).toHaveBeenCalledTimes(1);
    expect(env).not.toHaveBeenCalled();
    expect(await read()).toBe('2');
    shared.close();
  });

  test('that is deleted is not found, and is there again when it is made anew', async () => {
    const { server, shared, read, watching } = fixture();
    const reported = vi.fn();
    server.set('cm', '1');
    shared.follow(user('a'), reported);
    await read();
    await watching();
    server.remove('cm');
    await vi.waitFor(() => expect(reported).toHaveBeenCalledTimes(1));
    expect(await read()).toBeUndefined();
    server.set('cm', '2');
    await vi.waitFor(() => expect(reported).toHaveBeenCalledTimes(2));
    expect(await read()).toBe('2');
    shared.close();
  });

  test('that does not exist is listed once for all readers: the watch says when it is there', async () => {
    const { server, shared, read, watching } = fixture();
    shared.follow(user('a'), () => undefined);
    expect(await Promise.all([read(), read()])).toEqual([undefined, undefined]);
    await watching();
    server.set('cm', '1');
    await expect.poll(() => read()).toBe('1');
    expect(server.calls).toEqual([LIST, `WATCH ${LIST.slice(5)} from 1`]);
    shared.close();
  });

  test('that does not exist yet is followed all the same', async () => {
    const { server, shared, read, watching } = fixture();
    const reported = vi.fn();
    shared.follow(user('a'), reported);
    expect(await read()).toBeUndefined();
    await watching();
    server.set('cm', '1');
    await vi.waitFor(() => expect(reported).toHaveBeenCalledTimes(1));
    expect(await read()).toBe('1');
    shared.close();
  });
});

describe('a watch', () => {
  test('that breaks is begun again where it was; meanwhile what is known stands', async () => {
    const { server, clock, shared, failures, read, watching } = fixture();
    server.set('cm', '1');
    shared.follow(user('a'), () => undefined);
    await read();
    await watching();
    server.breakWatches(new Error('connection reset'));
    await vi.waitFor(() => expect(failures).toEqual(['configmap ns/cm']));
    expect(await read()).toBe('1');
    expect(server.calls).toHaveLength(2);
    clock.advance(800);
    await vi.waitFor(() => expect(server.calls).toHaveLength(3));
    expect(server.calls[2]).toContain('from 2');
    shared.close();
  });

  test('whose revision is too old lists again, and emits what it finds', async () => {
    const { server, shared, read, watching } = fixture();
    const reported = vi.fn();
    server.set('cm', '1');
    shared.follow(user('a'), reported);
    await read();
    await watching();
    const [tell] = server.watchers;
    if (tell !== undefined) server.watchers.delete(tell);
    server.set('cm', '2');
    tell?.(apiError(410, 'Expired'));
    await vi.waitFor(() => expect(reported).toHaveBeenCalledTimes(1));
    expect(await read()).toBe('2');
    expect(server.calls.filter((call) => call === LIST)).toHaveLength(2);
    shared.close();
  });

  test('is not begun for an immutable object, whatever becomes of it', async () => {
    const { server, clock, shared, read } = fixture();
    server.set('cm', '1', { immutable: true });
    shared.follow(user('a'), () => undefined);
    expect(await read()).toBe('1');
    expect(clock.pending).toBe(0);
    server.remove('cm');
    shared.follow(user('b'), () => undefined);
    expect(await read()).toBe('1');
    expect(server.calls).toEqual([LIST]);
  });

  test('ends when its object becomes immutable', async () => {
    const { server, shared, read, watching } = fixture();
    const reported = vi.fn();
    server.set('cm', '1');
    shared.follow(user('a'), reported);
    await read();
    await watching();
    server.set('cm', '2', { immutable: true });
    await vi.waitFor(() => expect(server.watchers.size).toBe(0));
    expect(reported).toHaveBeenCalledTimes(1);
    expect(await read()).toBe('2');
  });

  test('ends when the last pod has gone, a little later, and not when another has come', async () => {
    const { server, clock, shared, read, watching } = fixture();
    server.set('cm', '1');
    shared.follow(user('a'), () => undefined);
    shared.follow(user('b'), () => undefined);
    await read();
    await watching();
    shared.release('a');
    expect(clock.pending).toBe(1);
    shared.release('b');
    clock.advance(LINGER_MS - 1);
    shared.follow(user('c'), () => undefined);
    clock.advance(LINGER_MS);
    expect([shared.size, server.watchers.size]).toEqual([1, 1]);
    shared.release('c');
    clock.advance(LINGER_MS);
    await vi.waitFor(() => expect(server.watchers.size).toBe(0));
    expect(shared.size).toBe(0);
  });

  test('and memory of an immutable object end with its last pod: the next one sees what has the name then', async () => {
    const { server, clock, shared, read } = fixture();
    server.set('cm', '1', { immutable: true });
    shared.follow(user('a'), () => undefined);
    expect(await read()).toBe('1');
    shared.release('a');
    expect([shared.size, clock.pending]).toEqual([0, 0]);
    server.remove('cm');
    server.set('cm', '2', { immutable: true });
    shared.follow(user('b'), () => undefined);
    expect(await read()).toBe('2');
  });

  test('of what a newer version of a pod no longer uses ends', async () => {
    const { clock, shared } = fixture();
    shared.follow(user('a', 'old'), () => undefined);
    shared.follow(user('a', 'new'), () => undefined);
    clock.advance(LINGER_MS);
    expect(shared.size).toBe(1);
    expect(shared.release('a')).toBeUndefined();
    clock.advance(LINGER_MS);
    expect(shared.size).toBe(0);
  });
});

describe('a big object', () => {
  const BIG = 'x'.repeat(200_000);
  const GET = 'GET /api/v1/namespaces/ns/configmaps/cm';

  test('is not kept: its version is, and contents are read again on demand', async () => {
    const { server, clock, shared, read, watching } = fixture();
    server.set('cm', BIG);
    shared.follow(user('a'), () => undefined);
    await Promise.all([read(), read()]);
    await watching();
    clock.advance(60_000);
    expect([shared.contentBytes, shared.version('configMap', 'ns', 'cm')]).toEqual([0, 'cm/2']);
    shared.follow(user('b'), () => undefined);
    expect(await Promise.all([read(), read()])).toEqual([BIG, BIG]);
    expect(server.calls.filter((call) => !call.startsWith('WATCH'))).toEqual([LIST, GET]);
    shared.close();
    expect(shared.contentBytes).toBe(0);
  });

  test('that changes is not read again by those who are called for it', async () => {
    const { server, shared, read, watching } = fixture();
    const changed = vi.fn();
    server.set('cm', BIG);
    shared.follow(user('a'), changed);
    await read();
    await watching();
    server.set('cm', `${BIG}2`);
    await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(1));
    expect([await read(), shared.version('configMap', 'ns', 'cm')]).toEqual([`${BIG}2`, 'cm/3']);
    expect(server.calls).not.toContain(GET);
    shared.close();
  });

  test('that is deleted while its contents are not cached is not found', async () => {
    const { server, clock, shared, read, watching } = fixture();
    server.set('cm', BIG);
    shared.follow(user('a'), () => undefined);
    await read();
    await watching();
    clock.advance(60_000);
    server.remove('cm');
    await vi.waitFor(() => expect(shared.version('configMap', 'ns', 'cm')).toBe('absent'));
    expect(await read()).toBeUndefined();
    shared.close();
  });

  test('that cannot change can be read again, too', async () => {
    const { server, clock, shared, read } = fixture();
    server.set('cm', BIG, { immutable: true });
    shared.follow(user('a'), () => undefined);
    await read();
    clock.advance(60_000);
    expect([shared.contentBytes, shared.version('configMap', 'ns', 'cm')]).toEqual([0, 'cm/2']);
    expect(await read()).toBe(BIG);
    expect(server.calls).toEqual([LIST, GET]);
    shared.close();
  });

  test.each(['Get', 'Cache'] as const)('is not kept with %s either', async (strategy) => {
    const { server, clock, shared, read } = fixture(strategy);
    server.set('cm', BIG);
    shared.follow(user('a'), () => undefined);
    await read();
    clock.advance(10_000);
    expect(shared.contentBytes).toBe(0);
    expect(await read()).toBe(BIG);
    shared.close();
  });
});

describe('what cannot be read', () => {
  test('fails in the server’s words, and the next reader asks again', async () => {
    const { server, shared, read } = fixture();
    server.set('cm', '1');
    server.listFailure = new Error('configmaps "cm" is forbidden');
    shared.follow(user('a'), () => undefined);
    await expect(read()).rejects.toThrow('is forbidden');
    server.listFailure = undefined;
    expect(await read()).toBe('1');
    shared.close();
  });

  test('is not asked for twice at once, when no pod is known to use it either', async () => {
    const { server, read } = fixture();
    server.set('cm', '1');
    expect(await Promise.all([read(), read()])).toEqual(['1', '1']);
    await read();
    expect(server.calls).toEqual(Array(2).fill('GET /api/v1/namespaces/ns/configmaps/cm'));
  });
});

describe('configMapAndSecretChangeDetectionStrategy', () => {
  const GET = 'GET /api/v1/namespaces/ns/configmaps/cm';

  test('Get asks the API server each time', async () => {
    const { server, shared, read } = fixture('Get');
    server.set('cm', '1');
    shared.follow(user('a'), () => undefined);
    await read();
    server.set('cm', '2');
    expect(await read()).toBe('2');
    expect(server.calls).toEqual([GET, GET]);
    expect(shared.live).toBe(false);
  });

  test('Cache asks again after a minute, or for a pod that has just come', async () => {
    const { server, clock, shared, read } = fixture('Cache');
    server.set('cm', '1');
    shared.follow(user('a'), () => undefined);
    await read();
    server.set('cm', '2');
    clock.advance(59_999);
    expect(await read()).toBe('1');
    clock.advance(1);
    expect(await read()).toBe('2');
    server.set('cm', '3');
    expect(await read()).toBe('2');
    shared.follow(user('b'), () => undefined);
    expect(await read()).toBe('3');
    expect(server.calls).toEqual([GET, GET, GET]);
  });

  test.each(['Get', 'Cache'] as const)('%s reads an immutable object once', async (strategy) => {
    const { server, clock, shared, read } = fixture(strategy);
    server.set('cm', '1', { immutable: true });
    shared.follow(user('a'), () => undefined);
    await read();
    clock.advance(3_600_000);
    shared.follow(user('b'), () => undefined);
    expect(await read()).toBe('1');
    expect(server.calls).toEqual([GET]);
  });
});

test('managedFields, annotations and labels of an object are not kept', async () => {
  const { server, shared } = fixture();
  server.set('cm', '1');
  const object = server.objects.get('cm');
  if (object !== undefined) object.metadata.annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'x' };
  shared.follow(user('a'), () => undefined);
  const read = await shared.read('configMap', 'ns', 'cm');
  expect(Object.keys(read?.metadata ?? {}).sort()).toEqual(['name', 'namespace', 'resourceVersion', 'uid']);
  shared.close();
});
