// Static pods from a URL: what is asked for, how often, and what stays when the answer is no good.

import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { createHttpPodSource, fetchText } from '../../../../agent/sources/http-source.ts';
import type { Pod } from '../../../../client/types.ts';
import { Tracer } from '../../../../lib/trace.ts';
import { VirtualClock } from '../../../sim/clock.ts';

const pod = (name: string, image = 'nginx') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'main', image }] },
});
const list = (...items: object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items });

describe('a URL', () => {
  let clock: VirtualClock;
  let answer: string | Error;
  let requested: number;
  let notified: ReadonlyMap<string, Pod>[];
  let output: string[];
  let stop: () => void;
  const names = () => [...(notified.at(-1)?.values() ?? [])].map(({ metadata }) => metadata.name);

  beforeEach(() => {
    clock = new VirtualClock();
    answer = list();
    requested = 0;
    notified = [];
    output = [];
    const source = createHttpPodSource({
      url: 'http://manifests/pods',
      headers: {},
      nodeName: 'n1',
      checkMs: 20_000,
      clock,
      tracer: new Tracer(),
      log: (_level, message) => output.push(message),
      fetch: () => {
        requested++;
        return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
      },
    });
    source.start((pods) => notified.push(pods));
    stop = () => source.stop();
  });
  afterEach(() => stop());

  const next = async (body: string | Error): Promise<void> => {
    answer = body;
    await clock.advance(20_000);
  };

  it('is asked at once and then every httpCheckFrequency, until the source is stopped', async () => {
    await clock.advance(0);
    expect(requested).toBe(1);
    await clock.advance(60_000);
    expect(requested).toBe(4);
    stop();
    await clock.advance(60_000);
    expect(requested).toBe(4);
  });

  it('yields one pod or a list of them, and the same response is reported once', async () => {
    await next(JSON.stringify(pod('a')));
    expect(names()).toEqual(['a-n1']);
    await next(list(pod('a'), pod('b')));
    expect(names()).toEqual(['a-n1', 'b-n1']);
    await next(list(pod('a'), pod('b')));
    expect(notified).toHaveLength(3);
  });

  it('that gives a changed pod leaves the object of the others as it is', async () => {
    await next(list(pod('a'), pod('b')));
    const before = [...(notified.at(-1)?.values() ?? [])];
    await next(list(pod('a'), pod('b', 'other')));
    const after = [...(notified.at(-1)?.values() ?? [])];
    expect(after[0]).toBe(before[0]);
    expect(after[1]?.metadata.uid).not.toBe(before[1]?.metadata.uid);
  });

  const troubles: readonly [string, string | Error, RegExp][] = [
    ['cannot be reached', new Error('connect ECONNREFUSED'), /connect ECONNREFUSED/],
    ['gives no YAML', '{"a": [', /neither YAML nor JSON/],
    ['gives one bad pod among good ones', list(pod('a'), pod('B')), /items\[1\]: invalid pod: metadata.name/],
  ];
  test.each(troubles)('that %s is reported once, the pods stay, and its end is reported', async (_name, body, what) => {
    await next(list(pod('a')));
    await next(body);
    await next(body);
    expect(names()).toEqual(['a-n1']);
    expect(output).toHaveLength(1);
    expect(output[0]).toMatch(what);
    await next(list(pod('a')));
    expect(output[1]).toMatch(/is valid again/);
  });

  it('that is empty means no pods, and is reported', async () => {
    await next(list(pod('a')));
    await next('');
    await next('');
    expect(names()).toEqual([]);
    expect(output).toEqual(['http://manifests/pods: zero-length data received']);
  });
});

describe('fetching', () => {
  let server: Server;
  let base: string;
  beforeEach(async () => {
    server = createServer((request, response) => {
      if (request.url === '/long') {
        response.writeHead(200);
        const block = Buffer.alloc(1024 * 1024, 0x20);
        const more = (): void => {
          while (!response.destroyed && response.write(block));
          if (!response.destroyed) response.once('drain', more);
        };
        more();
      } else if (request.url === '/silent') response.writeHead(200).flushHeaders();
      else if (request.url === '/moved') response.writeHead(302, { location: '/headers' }).end();
      else if (request.url === '/round') response.writeHead(302, { location: '/round' }).end();
      else if (request.url === '/headers') response.end(JSON.stringify(request.headers['x-a']));
      else response.writeHead(404).end('no');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    base = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('sends the headers, and follows where it is sent', async () => {
    expect(await fetchText(`${base}/moved`, { 'x-a': ['1', '2'] }, 60_000)).toBe('"1, 2"');
  });

  const failures: readonly [string, string, RegExp][] = [
    ['an answer that is not 200', '/absent', /404 Not Found/],
    ['an answer that never ends', '/long', /larger than 10485760 bytes/],
    ['an answer that does not come', '/silent', /aborted|timeout/i],
    ['being sent round in circles', '/round', /stopped after 10 redirects/],
  ];
  test.each(failures)('%s is an error', async (_name, path, message) => {
    await expect(fetchText(`${base}${path}`, {}, path === '/silent' ? 200 : 60_000)).rejects.toThrow(message);
  });
});
