import { describe, expect, test } from 'vitest';
import { accessAttributes } from '../../../../agent/server/caller.ts';
import { HttpError } from '../../../../agent/server/http-answer.ts';
import { logContainerId, parseLogRequest } from '../../../../agent/server/log-request.ts';
import { parseRoute } from '../../../../agent/server/routes.ts';
import { forwardedPorts, streamFlags } from '../../../../agent/server/streams.ts';
import { tlsCiphers, tlsVersion } from '../../../../agent/server/tls-settings.ts';
import { upgradeProblem, upgradeRequestText } from '../../../../agent/server/tunnel.ts';
import { bearerToken } from '../../../../client/reviews.ts';
import type { ContainerStatus, PodStatus } from '../../../../client/types.ts';
import { epochMs } from '../../../../lib/clock.ts';
import { TtlCache } from '../../../../lib/ttl-cache.ts';
import { ManualClock } from '../volumes/support.ts';

describe('paths', () => {
  test.each<[string, object | undefined]>([
    ['/healthz', { kind: 'healthz' }],
    ['/healthz/ping', { kind: 'ping' }],
    ['/healthz/syncloop', { kind: 'syncloop' }],
    ['/pods', { kind: 'pods' }],
    ['/pods/', { kind: 'pods' }],
    ['/runningpods/', { kind: 'runningPods' }],
    ['/configz', { kind: 'configz' }],
    ['/stats/summary', { kind: 'summary' }],
    ['/containerLogs/ns/p/c', { kind: 'containerLogs', namespace: 'ns', pod: 'p', container: 'c' }],
    ['/containerLogs/ns/p', undefined],
    ['/exec/ns/p/c', { kind: 'stream', target: { verb: 'exec', namespace: 'ns', pod: 'p', container: 'c' } }],
    ['/exec/ns/p/uid/c', { kind: 'stream', target: { verb: 'exec', namespace: 'ns', pod: 'p', container: 'c' } }],
    ['/attach/ns/p/c', { kind: 'stream', target: { verb: 'attach', namespace: 'ns', pod: 'p', container: 'c' } }],
    [
      '/portForward/ns/p',
      { kind: 'stream', target: { verb: 'portForward', namespace: 'ns', pod: 'p', container: undefined } },
    ],
    [
      '/portForward/ns/p/uid',
      { kind: 'stream', target: { verb: 'portForward', namespace: 'ns', pod: 'p', container: undefined } },
    ],
    ['/exec/ns//c', undefined],
    ['/exec/ns/%zz/c', undefined],
    ['/', undefined],
    ['/constructor', undefined],
    ['/metrics', { kind: 'metrics', page: 'agent' }],
    ['/metrics/cadvisor', { kind: 'metrics', page: 'cadvisor' }],
    ['/metrics/probes', { kind: 'metrics', page: 'probes' }],
    ['/metrics/resource/', { kind: 'metrics', page: 'resource' }],
    ['/metrics/slis', { kind: 'metrics', page: 'slis' }],
    ['/metrics/other', undefined],
    ['/logs', { kind: 'nodeLogs', path: undefined }],
    ['/logs/', { kind: 'nodeLogs', path: '' }],
    ['/logs/pods/a%20b/', { kind: 'nodeLogs', path: 'pods/a b/' }],
    ['/logs/%2e%2e/x', undefined],
    ['/logs/..%2fx', undefined],
    ['/logs/%zz', undefined],
  ])('%s', (path, route) => {
    expect(parseRoute(path)).toEqual(route);
  });
});

describe('what a request does to the node', () => {
  test.each([
    ['GET', '/pods', 'get', ['pods', 'proxy']],
    ['GET', '/podsx', 'get', ['proxy']],
    ['GET', '/stats/summary', 'get', ['stats']],
    ['GET', '/metrics/cadvisor', 'get', ['metrics']],
    ['GET', '/logs/', 'get', ['log']],
    ['GET', '/healthz/ping', 'get', ['healthz', 'proxy']],
    ['GET', '/configz', 'get', ['configz', 'proxy']],
    ['GET', '/containerLogs/a/b/c', 'get', ['proxy']],
    ['POST', '/exec/a/b/c', 'create', ['proxy']],
    ['PUT', '/x', 'update', ['proxy']],
    ['DELETE', '/x', 'delete', ['proxy']],
    ['OPTIONS', '/x', '', ['proxy']],
  ])('%s %s is %s on nodes/%j', (method, path, verb, subresources) => {
    expect(accessAttributes(method, path)).toEqual({ verb, subresources });
  });
  test.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['Basic abc', undefined],
    ['Bearer', undefined],
    [undefined, undefined],
  ])('the token of %j is %j', (header, token) => {
    expect(bearerToken(header)).toBe(token);
  });
});

describe('log options', () => {
  const parse = (query: string) => parseLogRequest(new URLSearchParams(query), epochMs(100_000));
  test.each([
    ['', { previous: false, options: { follow: false, timestamps: false } }],
    ['follow=true&timestamps=1&previous=t', { previous: true, options: { follow: true, timestamps: true } }],
    ['tailLines=0', { options: { tailLines: 0 } }],
    ['tail=5', { options: { tailLines: 5 } }],
    ['sinceSeconds=60', { options: { sinceTime: 40_000 } }],
    ['sinceTime=1970-01-01T00:00:30Z', { options: { sinceTime: 30_000 } }],
    ['limitBytes=10', { options: { limitBytes: 10 } }],
    ['stream=Stderr', { options: { stream: 'stderr' } }],
  ])('%j', (query, expected) => {
    expect(parse(query)).toMatchObject(expected);
  });
  test.each([
    ['tailLines=x', 400],
    ['follow=maybe', 400],
    ['sinceTime=yesterday', 400],
    ['tailLines=-1', 422],
    ['limitBytes=0', 422],
    ['sinceSeconds=0', 422],
    ['sinceSeconds=5&sinceTime=1970-01-01T00:00:30Z', 422],
    ['stream=Both', 422],
  ])('%j is refused with %d', (query, status) => {
    expect(() => parse(query)).toThrow(expect.objectContaining({ status }));
  });
});

describe('the instance whose log is meant', () => {
  type State = Pick<ContainerStatus, 'state' | 'lastState' | 'containerID'>;
  const status = (state: State): PodStatus => ({
    containerStatuses: [{ name: 'c', image: '', imageID: '', ready: false, restartCount: 0, ...state }],
  });
  const terminated = (containerID?: string) => ({
    terminated: { exitCode: 0, ...(containerID === undefined ? {} : { containerID }) },
  });
  const waiting = (reason: string) => ({ waiting: { reason } });
  test.each<[string, State, boolean, string]>([
    ['running', { state: { running: {} }, containerID: 'containerd://now' }, false, 'now'],
    ['ended', { state: terminated('containerd://ended') }, false, 'ended'],
    ['waiting to restart', { state: waiting('CrashLoopBackOff'), lastState: terminated('c://last') }, false, 'last'],
    ['before the running one', { state: { running: {} }, lastState: terminated('c://last') }, true, 'last'],
    ['ended without id but with one before', { state: terminated(), lastState: terminated('c://last') }, false, 'last'],
  ])('%s', (_, state, previous, id) => {
    expect(logContainerId(status(state), 'p', 'c', previous)).toBe(id);
  });
  test.each<[string, PodStatus | undefined, boolean, string]>([
    ['unknown', undefined, false, 'container "c" in pod "p" is not available'],
    [
      'creating',
      status({ state: waiting('ContainerCreating') }),
      false,
      'container "c" in pod "p" is waiting to start: ContainerCreating',
    ],
    [
      'no image',
      status({ state: waiting('ErrImagePull') }),
      false,
      `container "c" in pod "p" is waiting to start: image can't be pulled`,
    ],
    [
      'backing off',
      status({ state: waiting('ImagePullBackOff') }),
      false,
      'container "c" in pod "p" is waiting to start: trying and failing to pull image',
    ],
    ['nothing known', status({}), false, 'container "c" in pod "p" is waiting to start - no logs yet'],
    ['ended without trace', status({ state: terminated() }), false, 'container "c" in pod "p" is terminated'],
    ['no previous', status({ state: { running: {} } }), true, 'previous terminated container "c" in pod "p" not found'],
  ])('%s is an answer of 400 in the kubelet’s words', (_, given, previous, message) => {
    expect(() => logContainerId(given, 'p', 'c', previous)).toThrow(new HttpError(400, message));
  });
});

describe('streams', () => {
  test.each([
    ['input=1&output=1&error=1', { stdin: true, stdout: true, stderr: true, tty: false }],
    ['output=true&error=1&tty=1', { stdin: false, stdout: true, stderr: false, tty: true }],
  ])('%s', (query, flags) => {
    expect(streamFlags(new URLSearchParams(query))).toEqual(flags);
  });
  test('none at all is refused', () => {
    expect(() => streamFlags(new URLSearchParams('tty=1&error=1'))).toThrow('at least 1 of stdin, stdout, stderr');
  });
  test('ports come from the query', () => {
    expect(forwardedPorts(new URLSearchParams('ports=80,443&port=8080'))).toEqual([80, 443, 8080]);
    expect(() => forwardedPorts(new URLSearchParams('port=0'))).toThrow('invalid port: "0"');
    expect(() => forwardedPorts(new URLSearchParams('port=a'))).toThrow('invalid port: "a"');
  });

  test.each([
    [{ upgrade: 'SPDY/3.1' }, undefined],
    [{ upgrade: 'websocket' }, undefined],
    [{ upgrade: 'websocket', 'sec-websocket-protocol': 'v5.channel.k8s.io, v4.channel.k8s.io' }, undefined],
    [{ upgrade: 'websocket', 'sec-websocket-protocol': 'base64.channel.k8s.io' }, undefined],
    [{ upgrade: 'websocket', 'sec-websocket-protocol': 'v5.channel.k8s.io' }, 'unsupported WebSocket subprotocol: v5'],
    [{ upgrade: 'websocket', 'sec-websocket-protocol': 'SPDY/3.1+portforward.k8s.io' }, 'unsupported WebSocket'],
    [{ upgrade: 'h2c' }, '"h2c" is not served'],
  ])('an upgrade with %j: %s', (headers, problem) => {
    if (problem === undefined) expect(upgradeProblem(headers)).toBeUndefined();
    else expect(upgradeProblem(headers)).toContain(problem);
  });

  test('the request reaches the streaming server with its headers, without the caller’s credentials', () => {
    const rawHeaders = [
      'Host',
      'kubelet:10250',
      'Authorization',
      'Bearer x',
      'Upgrade',
      'SPDY/3.1',
      'X-Stream',
      'v4',
      'X-Stream',
      'v3',
    ];
    expect(upgradeRequestText({ method: 'POST', rawHeaders }, new URL('http://127.0.0.1:99/exec/tok?x=1'))).toBe(
      'POST /exec/tok?x=1 HTTP/1.1\r\nHost: 127.0.0.1:99\r\nUpgrade: SPDY/3.1\r\nX-Stream: v4\r\nX-Stream: v3\r\n\r\n',
    );
  });
});

describe('TLS settings', () => {
  test('are translated from Go’s words', () => {
    expect(tlsVersion('')).toBe('TLSv1.2');
    expect(tlsVersion('VersionTLS13')).toBe('TLSv1.3');
    expect(tlsCiphers([])).toBeUndefined();
    expect(tlsCiphers(['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'])).toContain(':ECDHE-RSA-AES128-GCM-SHA256');
    expect(tlsCiphers(['TLS_AES_128_GCM_SHA256'])).toBeUndefined();
  });
  test('that are unknown are refused', () => {
    expect(() => tlsVersion('VersionTLS9')).toThrow('is not a TLS version');
    expect(() => tlsCiphers(['TLS_ROT13'])).toThrow('"TLS_ROT13" is not supported');
  });
});

describe('remembered answers', () => {
  test('are asked for once until they expire, each for its own time', async () => {
    const clock = new ManualClock();
    const cache = new TtlCache<boolean>(clock);
    let requested = 0;
    const get = (answer: boolean) =>
      cache.get(
        String(answer),
        async () => ++requested > 0 && answer,
        (value) => (value ? 300 : 30),
      );
    await Promise.all([get(true), get(true), get(false)]);
    expect(requested).toBe(2);
    clock.advance(30);
    await Promise.all([get(true), get(false)]);
    expect(requested).toBe(3);
    clock.advance(270);
    await get(true);
    expect(requested).toBe(4);
  });
  test('are not kept when asking failed, and never more than a bound', async () => {
    const cache = new TtlCache<number>(new ManualClock());
    const fail = () =>
      cache.get(
        'x',
        () => Promise.reject(new Error('down')),
        () => 1000,
      );
    await expect(fail()).rejects.toThrow('down');
    expect(
      await cache.get(
        'x',
        async () => 1,
        () => 1000,
      ),
    ).toBe(1);
    for (let i = 0; i < 4096; i++)
      await cache.get(
        `k${i}`,
        async () => i,
        () => 1000,
      );
    expect(
      await cache.get(
        'x',
        async () => 2,
        () => 1000,
      ),
    ).toBe(2);
  });
});
