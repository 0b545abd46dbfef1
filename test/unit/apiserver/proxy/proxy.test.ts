import { describe, expect, it } from 'vitest';
import { addressOf } from '../../../../apiserver/proxy/node-address.ts';
import { chooseContainer, kubeletPath, type StreamKind } from '../../../../apiserver/proxy/pods.ts';
import { requestHead } from '../../../../apiserver/proxy/tunnel.ts';
import { body, failureOf } from '../support.ts';

const pod = (containers: string[], init: string[] = []) =>
  body(
    'Pod',
    { name: 'p', namespace: 'ns' },
    {
      spec: { containers: containers.map((name) => ({ name })), initContainers: init.map((name) => ({ name })) },
    },
  );

describe('the container of a request', () => {
  it('is the only one, or the one that is named', () => {
    expect(chooseContainer(pod(['a']), '')).toBe('a');
    expect(chooseContainer(pod(['a', 'b'], ['i']), 'i')).toBe('i');
  });
  const refusals: readonly [string, ReturnType<typeof pod>, string, string][] = [
    [
      'must be named when there are several',
      pod(['a', 'b']),
      '',
      'a container name must be specified for pod p, choose one of: [a b]',
    ],
    [
      'lists init containers too',
      pod(['a', 'b'], ['i']),
      '',
      'a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]',
    ],
    ['must exist', pod(['a']), 'x', 'container x is not valid for pod p'],
  ];
  for (const [does, given, requested, message] of refusals) {
    it(does, () => expect(failureOf(() => chooseContainer(given, requested))).toMatchObject({ code: 400, message }));
  }
});

describe('the kubelet’s path', () => {
  const cases: readonly [StreamKind, string, string][] = [
    ['log', '', '/containerLogs/ns/p/a'],
    ['log', 'follow=true&tailLines=5&timestamps=false&pretty=1', '/containerLogs/ns/p/a?follow=true&tailLines=5'],
    ['log', 'sinceTime=2026-01-01T00:00:00Z', '/containerLogs/ns/p/a?sinceTime=2026-01-01T00%3A00%3A00Z'],
    ['exec', 'command=ls&command=-l&stdout=true&stderr=true', '/exec/ns/p/a?output=1&error=1&command=ls&command=-l'],
    [
      'exec',
      'command=sh&stdin=true&stdout=true&stderr=true&tty=true',
      '/exec/ns/p/a?input=1&output=1&tty=1&command=sh',
    ],
    ['exec', 'command=ls', '/exec/ns/p/a?output=1&error=1&command=ls'],
    ['attach', 'stdout=true&stderr=false', '/attach/ns/p/a?output=1'],
    ['portforward', 'ports=80&ports=81', '/portForward/ns/p?port=80&port=81'],
  ];
  for (const [kind, query, path] of cases) {
    it(`for ${kind}?${query}`, () => expect(kubeletPath(pod(['a']), kind, new URLSearchParams(query))).toBe(path));
  }
  const refusals: readonly [StreamKind, string, RegExp][] = [
    ['exec', '', /at least 1 command/],
    ['attach', 'stdout=false&stderr=false', /at least one of stdin, stdout, stderr/],
    ['log', 'tailLines=-1', /tailLines/],
    ['log', 'sinceSeconds=0', /sinceSeconds/],
    ['log', 'sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z', /at most one/],
  ];
  for (const [kind, query, message] of refusals) {
    it(`is refused for ${kind}?${query}`, () => {
      const failure = failureOf(() => kubeletPath(pod(['a']), kind, new URLSearchParams(query)));
      expect(failure.code).toBe(400);
      expect(failure.message).toMatch(message);
    });
  }
});

describe('the kubelet’s address', () => {
  const node = (addresses: object[], port?: number) =>
    body(
      'Node',
      { name: 'n' },
      { status: { addresses, daemonEndpoints: { kubeletEndpoint: port === undefined ? {} : { Port: port } } } },
    );
  it('is the internal IP, else the host name', () => {
    const both = [
      { type: 'Hostname', address: 'h' },
      { type: 'InternalIP', address: '10.0.0.1' },
    ];
    expect(addressOf(node(both, 10250))).toEqual({ host: '10.0.0.1', port: 10250 });
    expect(addressOf(node(both.slice(0, 1), 10250))).toEqual({ host: 'h', port: 10250 });
  });
  it('is an error while the node has not reported it', () => {
    expect(failureOf(() => addressOf(node([{ type: 'InternalIP', address: '10.0.0.1' }]))).code).toBe(400);
  });
});

describe('a tunnel', () => {
  it('passes on what upgrades and no credentials', () => {
    const head = requestHead('POST', '/exec/ns/p/a?command=ls', { host: '::1', port: 10250 }, [
      'Host',
      'api',
      'Authorization',
      'Bearer x',
      'Upgrade',
      'SPDY/3.1',
      'Connection',
      'Upgrade',
      'X-Stream-Protocol-Version',
      'v5.channel.k8s.io',
      'X-Stream-Protocol-Version',
      'v4.channel.k8s.io',
    ]);
    expect(head.split('\r\n')).toEqual([
      'POST /exec/ns/p/a?command=ls HTTP/1.1',
      'Host: [::1]:10250',
      'Connection: Upgrade',
      'Upgrade: SPDY/3.1',
      'X-Stream-Protocol-Version: v5.channel.k8s.io',
      'X-Stream-Protocol-Version: v4.channel.k8s.io',
      'Content-Length: 0',
      '',
      '',
    ]);
  });
});
