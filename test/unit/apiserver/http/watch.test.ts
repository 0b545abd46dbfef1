import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import {
  JSON_LINES,
  serveWatch,
  type WatchEncoding,
  type WatchResponseOptions,
} from '../../../../apiserver/http/watch.ts';
import type { ResourceKind } from '../../../../apiserver/kinds/resource.ts';
import { patchObject } from '../../../../apiserver/registry/patch.ts';
import { parseSelection } from '../../../../apiserver/registry/selectors.ts';
import { ADMIN, createPod, type Fixture, fixture, pods } from '../support.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function watch(
  f: Fixture,
  more: {
    resourceVersion?: string;
    allowBookmarks?: boolean;
    as?: 'object' | 'table';
    timeoutSeconds?: number;
    row?: ResourceKind;
    encoding?: WatchEncoding;
  } = {},
): Promise<{ response: IncomingMessage; lines: () => unknown[]; unread: () => number }> {
  const options: WatchResponseOptions = {
    watch: {
      namespace: 'ns',
      selection: parseSelection(pods, '', ''),
      resourceVersion: more.resourceVersion ?? '',
      resourceVersionMatch: '',
      allowBookmarks: more.allowBookmarks ?? false,
    },
    render: { form: { media: 'json', as: more.as ?? 'object', version: 'v1', pretty: false }, includeObject: 'None' },
    encoding: more.encoding ?? JSON_LINES,
    timeoutSeconds: more.timeoutSeconds,
    clock: f.clock,
    headers: {},
  };
  let unread = (): number => 0;
  const server = createServer((_request, response) => {
    unread = () => response.writableLength;
    serveWatch(f.registry, more.row ?? pods, response, options);
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const [response] = (await once(get({ port, host: '127.0.0.1' }), 'response')) as [IncomingMessage];
  let text = '';
  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    text += chunk;
  });
  return {
    response,
    unread: () => unread(),
    lines: () =>
      text
        .split('\n')
        .filter((line) => line !== '')
        .map((line): unknown => JSON.parse(line)),
  };
}

describe('a watch on the wire', () => {
  it('responds at once, before there is any event', async () => {
    const { response, lines } = await watch(fixture());
    expect([response.statusCode, response.headers['content-type'], lines()]).toEqual([200, 'application/json', []]);
  });

  it('is one JSON document per line, the same bytes for every watcher', async () => {
    const f = fixture();
    const [one, two] = [await watch(f), await watch(f)];
    createPod(f, 'a');
    await expect.poll(() => [one.lines().length, two.lines().length]).toEqual([1, 1]);
    expect(one.lines()).toEqual(two.lines());
    expect(one.lines()).toMatchObject([{ type: 'ADDED', object: { kind: 'Pod', metadata: { name: 'a' } } }]);
  });

  it('reports compacted history as an ERROR event with a 410 Status, and ends', async () => {
    const f = fixture();
    f.store.compact(f.store.revision);
    const { response, lines } = await watch(f, { resourceVersion: '1' });
    await once(response, 'end');
    expect(response.statusCode).toBe(200);
    expect(lines()).toMatchObject([{ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }]);
  });

  it('is whatever its encoding makes of events and errors', async () => {
    const encoding: WatchEncoding = {
      contentType: 'text/plain',
      event: (type, object) => Buffer.from(`["${type}",${object}]\n`),
    };
    const f = fixture();
    const seen = await watch(f, { encoding });
    createPod(f, 'a');
    await expect.poll(() => seen.lines().length).toBe(1);
    expect(seen.response.headers['content-type']).toBe('text/plain');
    expect(seen.lines()).toMatchObject([['ADDED', { metadata: { name: 'a' } }]]);
    f.store.compact(f.store.revision);
    const { response, lines } = await watch(f, { resourceVersion: '1', encoding });
    await once(response, 'end');
    expect(lines()).toMatchObject([['ERROR', { kind: 'Status', code: 410 }]]);
  });

  it('sends a bookmark every minute to those that want them', async () => {
    const f = fixture();
    const [wants, does_not] = [await watch(f, { allowBookmarks: true }), await watch(f)];
    await f.clock.advance(60_000);
    await expect.poll(() => wants.lines().length).toBe(1);
    const resourceVersion = String(f.store.revision);
    expect(wants.lines()).toMatchObject([{ type: 'BOOKMARK', object: { kind: 'Pod', metadata: { resourceVersion } } }]);
    expect(does_not.lines()).toEqual([]);
  });

  it('ends when its time is up, and sets no timer after that', async () => {
    const f = fixture();
    await f.clock.advance(3000);
    const before = f.clock.timers;
    const { response } = await watch(f, { timeoutSeconds: 5, allowBookmarks: true });
    const ended = once(response, 'end');
    await f.clock.advance(5000);
    await ended;
    await expect.poll(() => f.clock.timers).toBe(before);
  });

  it('releases everything when the client disconnects', async () => {
    const f = fixture();
    await f.clock.advance(5000);
    const before = f.clock.timers;
    const { response } = await watch(f, { allowBookmarks: true });
    expect(f.clock.timers).toBe(before + 2);
    response.destroy();
    await expect.poll(() => f.clock.timers).toBe(before);
  });

  it('sends bookmarks of a table as a table with a row for the revision alone', async () => {
    const f = fixture();
    const { lines } = await watch(f, { as: 'table', allowBookmarks: true });
    await f.clock.advance(60_000);
    await expect.poll(() => lines().length).toBe(1);
    expect(lines()).toMatchObject([{ type: 'BOOKMARK', object: { kind: 'Table', rows: [{ object: null }] } }]);
  });

  it('that cannot show an object says so and ends, and the write stands', async () => {
    const f = fixture();
    const broken: ResourceKind = {
      ...pods,
      strategy: {
        ...pods.strategy,
        table: {
          columns: [],
          row: () => {
            throw new RangeError('no such row');
          },
        },
      },
    };
    const { response, lines } = await watch(f, { as: 'table', row: broken });
    const ended = once(response, 'end');
    createPod(f, 'a');
    await ended;
    expect(lines()).toMatchObject([{ type: 'ERROR', object: { code: 500 } }]);
    expect(f.registry.find(pods, 'ns', 'a')).toBeDefined();
  });

  it('as a table says its columns with the first event only', async () => {
    const f = fixture();
    const { lines } = await watch(f, { as: 'table' });
    createPod(f, 'a');
    createPod(f, 'b');
    await expect.poll(() => lines().length).toBe(2);
    expect(lines()).toMatchObject([
      { object: { kind: 'Table', columnDefinitions: [{ name: 'Name' }, { name: 'Age' }] } },
      { object: { kind: 'Table', columnDefinitions: null, rows: [{ cells: ['b', '0s'] }] } },
    ]);
  });

  for (const when of ['before it begins', 'while it follows']) {
    it(`that is not read buffers little of what is written ${when}, and all of it comes once it is read`, async () => {
      const f = fixture(undefined, { bytes: 256 * 1024 * 1024 });
      createPod(f, 'a');
      const resourceVersion = String(f.store.revision);
      const large = 'x'.repeat(400_000);
      const write = (count: number): void => {
        for (let i = 0; i < count; i++) {
          const patch = { metadata: { annotations: { large: `${i}${large}` } } };
          patchObject(f.registry, pods, 'ns', 'a', patch, 'application/merge-patch+json', ADMIN);
        }
      };
      const count = 60;
      if (when === 'before it begins') write(count);
      const { response, lines, unread } = await watch(f, { resourceVersion });
      response.pause();
      if (when === 'while it follows') write(count);
      const most = await mostUnread(unread);
      // 24 MB were written.
      expect(most).toBeLessThan(large.length * 6);
      response.resume();
      await expect.poll(() => lines().length, { interval: 200 }).toBe(count);
      const revisions = lines().map((line) => Number(revisionOf(line)));
      expect(revisions).toEqual(Array.from({ length: count }, (_, i) => Number(resourceVersion) + 1 + i));
    });
  }
});

/** The most that was waiting, once nothing more comes. */
async function mostUnread(unread: () => number): Promise<number> {
  let most = 0;
  let same = 0;
  for (let last = -1; same < 50; ) {
    await new Promise((resolve) => setImmediate(resolve));
    const now = unread();
    most = Math.max(most, now);
    same = now === last ? same + 1 : 0;
    last = now;
  }
  return most;
}

function revisionOf(line: unknown): unknown {
  const path = ['object', 'metadata', 'resourceVersion'];
  return path.reduce<unknown>(
    (inner, name) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, name) : undefined),
    line,
  );
}
