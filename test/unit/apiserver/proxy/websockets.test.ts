// WebSockets of clients that the server itself speaks: logs, and port-forwards in SPDY. The kubelet is a plain HTTPS server.

import { once } from 'node:events';
import { createServer, request, type Server } from 'node:https';
import type { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { PORT_FORWARD_TUNNEL } from '../../../../apiserver/proxy/websockets.ts';
import { dataFrame, FrameReader, synReply } from '../../../../lib/spdy-frames.ts';
import { at, TestApiServer } from '../../../support/api-server.ts';

const POD = '/api/v1/namespaces/default/pods/web';
let stand: TestApiServer;
let kubelet: Server;
const seen: string[] = [];

beforeAll(async () => {
  stand = await TestApiServer.start();
  const { cert, key } = stand.server.pki.serving;
  kubelet = createServer({ cert, key }, (message, response) => {
    seen.push(message.url ?? '');
    if (message.url?.includes('previous')) response.writeHead(400).end('no previous container');
    else response.write('one\n', () => response.end('two\n'));
  });
  kubelet.on('upgrade', (message, socket) => {
    const protocol = message.headers['x-stream-protocol-version'];
    seen.push(`${message.method} ${message.url} ${message.headers.upgrade} ${protocol}`);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
    if (protocol === 'portforward.k8s.io') {
      socket.on('data', (chunk) => socket.write(String(chunk).toUpperCase()));
      return;
    }
    serveCommand(socket);
  });
  kubelet.listen(0, '127.0.0.1');
  await once(kubelet, 'listening');
  const address = kubelet.address();
  const Port = typeof address === 'object' && address !== null ? address.port : 0;
  await stand.admit('POST', '/api/v1/nodes', { kind: 'Node', apiVersion: 'v1', metadata: { name: 'n1' } });
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port } },
  };
  const patch = { 'content-type': 'application/merge-patch+json' };
  await stand.admit('PATCH', '/api/v1/nodes/n1/status', { status }, patch);
  const account = { kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name: 'default' } };
  await stand.admit('POST', '/api/v1/namespaces/default/serviceaccounts', account);
  await stand.admit('POST', '/api/v1/namespaces/default/pods', {
    ...{ kind: 'Pod', apiVersion: 'v1', metadata: { name: 'web' } },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'x:1' }] },
  });
});
afterAll(async () => {
  kubelet.closeAllConnections();
  kubelet.close();
  await stand.stop();
});

/** A command that sends its input back in capitals, on both outputs, and ends with 7 once the input has ended. */
function serveCommand(socket: Duplex): void {
  const reader = new FrameReader();
  const order = ['error', 'stdin', 'stdout', 'stderr'];
  const names = new Map<string, number>();
  socket.on('data', (chunk: Buffer) => {
    for (const frame of reader.push(chunk)) {
      if (frame.kind === 'syn-stream') {
        const name = order.shift();
        if (name !== undefined) names.set(name, frame.stream);
        socket.write(synReply(frame.stream, frame.stream === 1));
      }
      if (frame.kind !== 'data' || frame.stream !== names.get('stdin')) continue;
      const loud = Buffer.from(frame.data.toString('utf8').toUpperCase());
      for (const name of ['stdout', 'stderr']) {
        socket.write(dataFrame(names.get(name) ?? 0, loud, frame.fin));
      }
      if (frame.fin) socket.write(dataFrame(names.get('error') ?? 0, Buffer.from('{"status":"Failure"}'), true));
    }
  });
}

function open(path: string, protocols: string[]): WebSocket {
  const { cert, key } = stand.admin;
  const url = `${stand.server.url.replace(/^https/, 'wss')}${POD}${path}`;
  return new WebSocket(url, protocols, { ca: stand.server.pki.ca.cert, ...(cert && key ? { cert, key } : {}) });
}

/** Every message until the server closes; text where it is sent as text. */
async function all(socket: WebSocket): Promise<(string | Buffer)[]> {
  const messages: (string | Buffer)[] = [];
  socket.on('message', (data, isBinary) => {
    const bytes = Buffer.isBuffer(data) ? data : Buffer.alloc(0);
    messages.push(isBinary ? bytes : bytes.toString('utf8'));
  });
  await once(socket, 'close');
  return messages;
}

describe('a log', () => {
  for (const protocols of [[], ['binary.k8s.io'], ['other', 'binary.k8s.io']]) {
    it(`is bytes for a client of [${protocols}]`, async () => {
      const socket = open('/log?tailLines=2', protocols);
      const messages = await all(socket);
      expect(socket.protocol).toBe(protocols.at(-1) ?? '');
      expect(messages[0]).toEqual(Buffer.alloc(0));
      expect(Buffer.concat(messages.map((one) => Buffer.from(one))).toString()).toBe('one\ntwo\n');
      expect(seen.at(-1)).toBe('/containerLogs/default/web/c?tailLines=2');
    });
  }
  it('is base64 text for a client that wants it', async () => {
    const messages = await all(open('/log', ['base64.binary.k8s.io']));
    expect(messages.map((one) => typeof one)).toEqual(messages.map(() => 'string'));
    expect(messages.map((one) => Buffer.from(String(one), 'base64').toString()).join('')).toBe('one\ntwo\n');
  });
  const refusals: readonly [string, string[], number, string][] = [
    ['/log', ['other'], 403, 'requested protocol(s) are not supported: [other]'],
    ['/log?previous=true', [], 400, 'no previous container'],
    ['/log?container=x', [], 400, 'container x is not valid for pod web'],
  ];
  for (const [path, protocols, code, message] of refusals) {
    it(`${path} for [${protocols}] is refused with ${code}`, async () => {
      const [, response] = await once(open(path, protocols), 'unexpected-response');
      let body = '';
      for await (const chunk of response) body += String(chunk);
      expect([response.statusCode, JSON.parse(body).message]).toEqual([code, expect.stringContaining(message)]);
    });
  }
});

it('a port-forward is the kubelet’s SPDY connection in binary messages', async () => {
  // The library's client refuses the name of this protocol: frames by hand, with a mask of zeros.
  const { cert, key } = stand.admin;
  const headers = {
    ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
    ...{ 'Sec-WebSocket-Key': Buffer.alloc(16).toString('base64'), 'Sec-WebSocket-Protocol': PORT_FORWARD_TUNNEL },
  };
  const identity = { ca: stand.server.pki.ca.cert, ...(cert && key ? { cert, key } : {}) };
  const outgoing = request(`${stand.server.url}${POD}/portforward`, { ...identity, headers }).end();
  const [response, socket] = await once(outgoing, 'upgrade');
  expect(response.headers['sec-websocket-protocol']).toBe(PORT_FORWARD_TUNNEL);
  expect(seen.at(-1)).toBe('POST /portForward/default/web SPDY/3.1 portforward.k8s.io');
  socket.write(Buffer.concat([Buffer.from([0x82, 0x85, 0, 0, 0, 0]), Buffer.from('hello')]));
  const [frame] = await once(socket, 'data');
  expect(frame).toEqual(Buffer.concat([Buffer.from([0x82, 5]), Buffer.from('HELLO')]));
  socket.destroy();
});

it('a command’s streams are SPDY for the kubelet, and its input can end', async () => {
  const socket = open('/exec?command=cat&stdin=1&stdout=1&stderr=1', ['v5.channel.k8s.io', 'v4.channel.k8s.io']);
  const messages = all(socket);
  await once(socket, 'open');
  expect(socket.protocol).toBe('v5.channel.k8s.io');
  expect(seen.at(-1)).toBe('POST /exec/default/web/c?input=1&output=1&error=1&command=cat SPDY/3.1 v4.channel.k8s.io');
  socket.send(Buffer.from('\0hello'));
  socket.send(Buffer.from([255, 0]));
  const byChannel = (channel: number, list: readonly (string | Buffer)[]): string =>
    list
      .map((one) => Buffer.from(one))
      .filter((one) => one[0] === channel)
      .map((one) => one.subarray(1).toString())
      .join('');
  const list = await messages;
  expect([1, 2, 3].map((channel) => byChannel(channel, list))).toEqual(['HELLO', 'HELLO', '{"status":"Failure"}']);
});

describe('a request for a stream without an upgrade gets what is wrong with it, in kube-apiserver’s order', () => {
  beforeAll(async () => {
    const container = { name: 'c', image: 'x:1' };
    const pod = (name: string, spec: object) => ({ kind: 'Pod', apiVersion: 'v1', metadata: { name }, spec });
    const containers = [container, { ...container, name: 'd' }];
    const pods = '/api/v1/namespaces/default/pods';
    await stand.admit('POST', pods, pod('waiting', { containers: [container] }));
    await stand.admit('POST', pods, pod('two', { containers }));
    await stand.admit('POST', pods, pod('lost', { nodeName: 'gone', containers: [container] }));
  });
  it.each([
    ['none/exec?command=ls', 404, 'pods "none" not found'],
    ['two/exec?container=x', 400, 'container x is not valid for pod two'],
    ['two/attach', 400, 'a container name must be specified for pod two, choose one of: [c d]'],
    ['waiting/exec', 400, 'pod waiting does not have a host assigned'],
    ['two/portforward', 400, 'pod two does not have a host assigned'],
    ['lost/portforward', 404, 'pods "gone" not found'],
    ['web/exec?command=ls', 400, 'Upgrade request required'],
    ['web/portforward', 400, 'Upgrade request required'],
  ])('%s: %i %s', async (path, code, message) => {
    const url = `/api/v1/namespaces/default/pods/${path}`;
    const answer = await stand.call({ method: 'POST', path: url, as: stand.admin });
    expect([answer.code, at(answer.json, 'message')]).toEqual([code, message]);
  });
});
