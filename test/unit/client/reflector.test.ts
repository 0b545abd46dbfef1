import { describe, expect, it } from 'vitest';
import type { ListOf, WatchEvent } from '../../../client/api.ts';
import { ApiError, UnreachableError } from '../../../client/errors.ts';
import { type ListWatcher, Reflector } from '../../../client/reflector.ts';
import type { Status } from '../../../client/types.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

interface Thing {
  kind?: string;
  apiVersion?: string;
  metadata: { name: string; uid: string; resourceVersion: string };
}
const thing = (name: string, version: string): Thing => ({
  metadata: { name, uid: name, resourceVersion: version },
});
const expired: Status = {
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  reason: 'Expired',
  code: 410,
  message: 'too old resource version',
};

/** A server that a test drives by hand: it answers lists from `items`, and each watch from a queue. */
class FakeServer implements ListWatcher {
  items: Thing[] = [];
  version = '10';
  failLists: unknown[] = [];
  readonly lists: number[] = [];
  readonly watches: { readonly query: Record<string, unknown>; readonly push: (step: Step) => void }[] = [];
  readonly #clock: VirtualClock;
  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  async list<T>(): Promise<ListOf<T>> {
    this.lists.push(this.#clock.monotonic());
    const failure = this.failLists.shift();
    if (failure !== undefined) throw failure;
    const list: ListOf<unknown> = {
      apiVersion: 'v1',
      kind: 'ThingList',
      metadata: { resourceVersion: this.version },
      items: structuredClone(this.items),
    };
    return list as ListOf<T>;
  }

  async *watch<T>(_path: string, query: Record<string, unknown>, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    const steps: Step[] = [];
    let wake: () => void = () => undefined;
    this.watches.push({
      query,
      push: (step) => {
        steps.push(step);
        wake();
      },
    });
    signal.addEventListener('abort', () => wake(), { once: true });
    while (!signal.aborted) {
      const step = steps.shift();
      if (step === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      } else if (step === 'end') return;
      else if (step instanceof Error) throw step;
      else yield step as WatchEvent<T>;
    }
  }

  push(...steps: Step[]): Promise<void> {
    for (const step of steps) this.watches.at(-1)?.push(step);
    return settle();
  }
}
type Step = WatchEvent<Thing> | 'end' | Error;

function start() {
  const clock = new VirtualClock();
  const server = new FakeServer(clock);
  const stop = new AbortController();
  const failures: number[] = [];
  let recoveries = 0;
  const log: string[] = [];
  const reflector = new Reflector<Thing>({
    client: server,
    path: '/api/v1/things',
    query: { fieldSelector: 'spec.nodeName=n' },
    clock,
    random: () => 0,
    onFailure: (_error, ms) => failures.push(ms),
    onRecovery: () => {
      recoveries++;
    },
  });
  reflector.store.onChange((changes) => {
    for (const { type, object } of changes)
      log.push(`${type} ${object.metadata.name}@${object.metadata.resourceVersion}`);
  });
  const run = (): Promise<void> => reflector.run(stop.signal);
  return { clock, server, stop, failures, log, reflector, run, recoveries: () => recoveries };
}

describe('Reflector', () => {
  it('lists, then watches from where the list was, with bookmarks', async () => {
    const { server, log, reflector, run, stop } = start();
    server.items = [thing('a', '3')];
    const running = run();
    await settle();
    expect(log).toEqual(['added a@3']);
    expect(reflector.store.synced).toBe(true);
    expect(server.watches[0]?.query).toMatchObject({
      fieldSelector: 'spec.nodeName=n',
      allowWatchBookmarks: true,
      resourceVersion: '10',
      timeoutSeconds: 300,
    });
    stop.abort();
    await running;
  });

  it('applies events, and goes on from the last one when the server ends the watch', async () => {
    const { clock, server, log, run, failures } = start();
    void run();
    await settle();
    await clock.advance(2000);
    await server.push(
      { type: 'ADDED', object: thing('a', '11') },
      { type: 'MODIFIED', object: thing('a', '12') },
      { type: 'DELETED', object: thing('a', '13') },
      'end',
    );
    expect(log).toEqual(['added a@11', 'modified a@12', 'removed a@13']);
    expect(server.watches[1]?.query['resourceVersion']).toBe('13');
    expect([server.lists.length, failures]).toEqual([1, []]);
  });

  it('moves on with bookmarks without announcing anything', async () => {
    const { server, log, run } = start();
    void run();
    await settle();
    await server.push({ type: 'BOOKMARK', object: thing('', '50') }, 'end');
    expect(log).toEqual([]);
    expect(server.watches[1]?.query['resourceVersion']).toBe('50');
  });

  it('resumes a broken watch where it broke: nothing lost, nothing twice', async () => {
    const { clock, server, log, run, failures } = start();
    void run();
    await settle();
    await server.push({ type: 'ADDED', object: thing('a', '11') }, new UnreachableError('broke', 'ECONNRESET'));
    expect(failures).toEqual([800]);
    await clock.advance(800);
    expect(server.watches[1]?.query['resourceVersion']).toBe('11');
    await server.push({ type: 'ADDED', object: thing('b', '12') });
    expect(log).toEqual(['added a@11', 'added b@12']);
    expect(server.lists.length).toBe(1);
  });

  it.each([
    ['an ERROR event in the stream', { type: 'ERROR', object: expired } satisfies Step],
    ['a refused watch', new ApiError(expired, 410, 'WATCH things')],
  ])('lists again at once when its version is too old: %s', async (_how, step) => {
    const { server, log, run, failures } = start();
    server.items = [thing('a', '3'), thing('b', '4')];
    void run();
    await settle();
    server.items = [thing('b', '4'), thing('c', '20')];
    server.version = '30';
    await server.push(step);
    expect(log).toEqual(['added a@3', 'added b@4', 'removed a@3', 'added c@20']);
    expect(server.watches[1]?.query['resourceVersion']).toBe('30');
    expect(failures).toEqual([]);
    // A server that always says so is not asked in a tight loop.
    await server.push(step);
    expect(failures).toEqual([800]);
  });

  it('retries its first list for ever, with waits that double from 800 ms to 30 s', async () => {
    const { clock, server, run, failures, reflector, recoveries } = start();
    server.failLists = Array.from({ length: 8 }, () => new UnreachableError('refused', 'ECONNREFUSED'));
    void run();
    await clock.advance(200_000);
    expect(failures).toEqual([800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
    expect(reflector.store.synced).toBe(true);
    expect(recoveries()).toBe(1);
  });

  it('starts from 800 ms again after two quiet minutes', async () => {
    const { clock, server, run, failures } = start();
    server.failLists = [new Error('x'), new Error('x')];
    void run();
    await clock.advance(10_000);
    await clock.advance(150_000);
    await server.push(new Error('broke'));
    expect(failures).toEqual([800, 1600, 800]);
  });

  it('backs off from a watch that ends at once without a word', async () => {
    const { server, run, failures } = start();
    void run();
    await settle();
    await server.push('end');
    expect(failures).toEqual([800]);
    expect(server.watches.length).toBe(1);
  });

  it('breaks off a watch that the server should have ended long ago', async () => {
    const { clock, server, run } = start();
    void run();
    await settle();
    await clock.advance(330_001);
    expect(server.watches.length).toBe(2);
  });

  it('lists again on demand, however far its watch lags behind', async () => {
    const { server, log, reflector, run } = start();
    server.items = [thing('a', '3')];
    void run();
    await settle();
    server.items = [thing('a', '4')];
    server.version = '20';
    await reflector.relist();
    expect(log).toEqual(['added a@3', 'modified a@4']);
    await settle();
    expect(server.lists.length).toBe(2);
    expect(server.watches.map(({ query }) => query['resourceVersion'])).toEqual(['10', '20']);
  });

  it('lists once more where a list was under way, and goes on after a failure', async () => {
    const { clock, server, log, reflector, run } = start();
    server.items = [thing('a', '3')];
    void run();
    const fresh = reflector.relist();
    // The first list has been sent already and may show the state before.
    server.items = [thing('a', '4')];
    server.failLists = [new UnreachableError('away', 'ECONNREFUSED')];
    await settle();
    await clock.advance(2000);
    await fresh;
    expect(log).toEqual(['added a@3', 'modified a@4']);
    expect(server.lists.length).toBe(3);
  });

  it('stops when aborted, in a watch or in a wait', async () => {
    const watching = start();
    const one = watching.run();
    await settle();
    watching.stop.abort();
    await one;
    const waiting = start();
    waiting.server.failLists = [new Error('x')];
    const two = waiting.run();
    await settle();
    waiting.stop.abort();
    await two;
    expect(waiting.clock.timers).toBe(0);
  });
});
