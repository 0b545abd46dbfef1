import { execFileSync } from 'node:child_process';
import { mkdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { journalctlArguments, nodeLogQueryErrors, parseNodeLogQuery } from '../../../../agent/server/node-log-query.ts';
import { aggregate } from '../../../../lib/aggregate.ts';
import { epochMs } from '../../../../lib/clock.ts';
import type { Exec } from '../../../../lib/exec.ts';
import { OPEN, ServerStand } from './stand.ts';

const errorsOf = (text: string): readonly string[] => {
  const { query, errors } = parseNodeLogQuery(new URLSearchParams(text));
  return errors ?? (query === undefined ? [] : nodeLogQueryErrors(query));
};

describe('a query of the node’s logs', () => {
  test('names services or a file, and has options', () => {
    const parsed = parseNodeLogQuery(
      new URLSearchParams('query=kubelet&query=/x.log&tailLines=3&boot=-1&sinceTime=2026-01-02T03:04:05Z'),
    );
    expect(parsed.query).toEqual({
      services: ['kubelet'],
      files: ['/x.log'],
      options: { tailLines: 3, boot: -1, sinceTime: epochMs(Date.UTC(2026, 0, 2, 3, 4, 5)) },
    });
    expect(parseNodeLogQuery(new URLSearchParams('other=1'))).toEqual({ query: undefined });
  });

  test.each([
    ['query', 'query: Invalid value: []string{""}: may not be empty'],
    ['query=%20', 'query: Invalid value: []string{" "}: may not be empty'],
    ['query=a&sinceTime=today', 'sinceTime: Invalid value: "today": invalid time format'],
    ['query=a&tailLines=x', 'tailLines: Invalid value: "x": strconv.Atoi: parsing "x": invalid syntax'],
    ['tailLines=1', 'query: Required value: cannot be empty with options'],
    ['query=a&query=/b', 'query: Invalid value: "[/b], [a]": cannot specify a file and service'],
    ['query=/a&query=/b', 'query: Invalid value: []string{"/a", "/b"}: cannot specify more than one file'],
    ['query=/a&boot=0', 'query: Invalid value: []string{"/a"}: cannot specify file with options'],
    ['query=a;b', 'query: Invalid value: "a;b": input contains unsupported characters'],
    ['query=--root', 'query: Invalid value: "--root": input contains unsupported characters'],
    ['query=a&query=b&query=c&query=d&query=e', 'query: Too many: 5: must have at most 4 items'],
    ['query=a&boot=1', 'boot: Invalid value: 1: must be less than 1'],
    ['query=a&tailLines=100001', 'tailLines: Invalid value: 100001: must be between 0 and 100000, inclusive'],
    [
      'query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z',
      'untilTime: Invalid value: 2026-01-01T00:00:00Z: must be after `sinceTime`',
    ],
  ])('%s is refused', (text, error) => {
    expect(errorsOf(text)).toEqual([error]);
  });

  test('several errors are one list', () => {
    expect(aggregate(['a', 'b'])).toBe('[a, b]');
    expect(aggregate(['a'])).toBe('a');
  });

  test('becomes the arguments of journalctl', () => {
    const time = epochMs(Date.UTC(2026, 0, 2, 3, 4, 5));
    const options = { sinceTime: time, untilTime: time, tailLines: 3, boot: 0, pattern: 'x y' };
    expect(journalctlArguments(['a', 'b'], options)).toEqual([
      '--utc',
      '--no-pager',
      '--output=short-precise',
      '--since=2026-01-02 03:04:05 UTC',
      '--until=2026-01-02 03:04:05 UTC',
      '--pager-end',
      '--lines=3',
      '--unit=a',
      '--unit=b',
      '--grep=x y',
      '--boot',
      '0',
    ]);
  });
});

describe('/logs/', () => {
  let stand: ServerStand;
  let directory: string;
  beforeEach(async () => {
    stand = await ServerStand.make();
    directory = join(stand.dir, 'log');
    await mkdir(join(directory, 'pods'), { recursive: true });
    await writeFile(join(directory, 'syslog'), 'one\ntwo\n');
    await writeFile(join(directory, 'a:<b>.log'), Buffer.from([0, 1, 2]));
    await writeFile(join(directory, 'pods', 'pods.log'), 'of pods\n');
    await writeFile(join(stand.dir, 'secret'), 'secret\n');
    await symlink('../secret', join(directory, 'outside'));
    await symlink('syslog', join(directory, 'inside'));
    execFileSync('mkfifo', [join(directory, 'pipe')]);
    await utimes(join(directory, 'syslog'), 1_000, 1_000.5);
  });
  afterEach(() => stand.close());

  const journal: Exec = (_file, args) => {
    const result = { code: 0, signal: null, timedOut: false, stderr: '' };
    const stdout = args.includes('--field') ? 'kubelet.service\nssh.service\n' : `${args.join(' ')}\n`;
    return Promise.resolve({ ...result, stdout });
  };

  async function get(path: string, config: object = {}, headers: Record<string, string> = {}) {
    const port =
      stand.server?.port ?? (await stand.start({ ...OPEN, ...config }, { nodeLogs: { directory, exec: journal } }));
    return await new Promise<{ status: number; body: Buffer; header(name: string): string | undefined }>(
      (resolve, reject) => {
        const options = { host: '127.0.0.1', port, path, headers, rejectUnauthorized: false, agent: false };
        const call = request(options, (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          const header = (name: string): string | undefined => response.headers[name]?.toString();
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks), header }));
        });
        call.on('error', reject);
        call.end();
      },
    );
  }

  test('lists a directory', async () => {
    const { status, body, header } = await get('/logs/');
    expect([status, header('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(body.toString().split('\n').slice(2)).toEqual([
      '<pre>',
      '<a href="./a%3A%3Cb%3E.log">a:&lt;b&gt;.log</a>',
      '<a href="inside">inside</a>',
      '<a href="outside">outside</a>',
      '<a href="pipe">pipe</a>',
      '<a href="pods/">pods/</a>',
      '<a href="syslog">syslog</a>',
      '</pre>',
      '',
    ]);
  });

  test('sends a file, or a part of it, or that it is the same', async () => {
    const whole = await get('/logs/syslog');
    expect([whole.status, whole.body.toString()]).toEqual([200, 'one\ntwo\n']);
    expect(whole.header('content-type')).toBe('text/plain; charset=utf-8');
    expect(whole.header('last-modified')).toBe('Thu, 01 Jan 1970 00:16:40 GMT');
    const part = await get('/logs/inside', {}, { range: 'bytes=-4' });
    expect([part.status, part.body.toString(), part.header('content-range')]).toEqual([206, 'two\n', 'bytes 4-7/8']);
    expect((await get('/logs/syslog', {}, { range: 'bytes=8-' })).status).toBe(416);
    const known = { 'if-modified-since': 'Thu, 01 Jan 1970 00:16:40 GMT' };
    expect((await get('/logs/syslog', {}, known)).status).toBe(304);
    expect((await get('/logs/a:%3Cb%3E.log')).header('content-type')).toBe('application/octet-stream');
  });

  test.each([
    ['/logs', 301, 'logs/'],
    ['/logs/pods', 301, 'pods/'],
    ['/logs/syslog/', 301, '../syslog'],
    ['/logs/missing', 404, undefined],
    ['/logs/syslog/x', 404, undefined],
    ['/logs/a%00b', 404, undefined],
    ['/logs/outside', 403, undefined],
    ['/logs/pipe', 403, undefined],
  ])('%s has status %i', async (path, status, location) => {
    const answer = await get(path);
    expect([answer.status, answer.header('location')]).toEqual([status, location]);
  });

  test('is off with enableSystemLogHandler, and with the debugging handlers', async () => {
    const off = await get('/logs/', { enableSystemLogHandler: false });
    expect([off.status, off.body.toString()]).toEqual([405, 'logs endpoint is disabled.\n']);
    await stand.server?.close();
    stand.server = undefined;
    const debugging = await get('/logs/', { enableDebuggingHandlers: false });
    expect([debugging.status, debugging.body.toString()]).toEqual([405, 'Debug endpoints are disabled.']);
  });

  test('knows no queries unless they are enabled', async () => {
    expect((await get('/logs/?query=kubelet')).body.toString()).toContain('<pre>');
  });

  test('answers a query from the journal, from a file, or says what is wrong', async () => {
    const config = { enableSystemLogQuery: true };
    const text = async (path: string): Promise<string> => (await get(path, config)).body.toString();
    expect(await text('/logs/?query=kubelet&tailLines=3')).toBe(
      '--utc --no-pager --output=short-precise --pager-end --lines=3 --unit=kubelet\n',
    );
    expect(await text('/logs/?query=syslog')).toBe('one\ntwo\n');
    expect(await text('/logs/?query=pods')).toBe('of pods\n');
    expect(await text('/logs/?query=/pods/pods.log')).toBe('of pods\n');
    expect(await text('/logs/?query=nothing')).toBe('\nlog not found for nothing\n');
    expect(await text('/logs/?query=outside')).toBe('\nerror getting log for outside: 403 Forbidden\n');
    expect(await text('/logs/?query=syslog&boot=0')).toBe(
      '\noptions present and query resolved to log files for [syslog]\ntry without specifying options\n',
    );
    expect((await get('/logs/?query=')).status).toBe(400);
    expect((await get('/logs/?query=a;b')).status).toBe(406);
    expect((await get('/logs/pods/?query=kubelet')).body.toString()).toBe('path not allowed in query mode\n');
    const zipped = await get('/logs/?query=syslog', config, { 'accept-encoding': 'gzip' });
    expect(zipped.header('content-encoding')).toBe('gzip');
    expect(gunzipSync(zipped.body).toString()).toBe('one\ntwo\n');
  });
});
