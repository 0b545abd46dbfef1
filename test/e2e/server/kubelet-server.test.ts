// The kubelet's HTTPS API in front of a real containerd: logs from real log files, exec, attach and port-forward through
// its streaming server. Needs root.

import { writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { completeConfiguration } from '../../../agent/config/kubelet-configuration.ts';
import type { PodSnapshot } from '../../../agent/ports/runtime.ts';
import { createLogReader } from '../../../agent/runtime/logs/read-logs.ts';
import { createKubeletServer } from '../../../agent/server/kubelet-server.ts';
import type { KubeletServer, ServedPods } from '../../../agent/server/options.ts';
import { generateKeyPair, issueCertificate } from '../../../apiserver/pki/keys.ts';
import type { PodStatus } from '../../../client/types.ts';
import { epochMs, systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { PAGES } from '../../unit/agent/server/support.ts';
import {
  eventually,
  type RuntimeLab,
  removePod,
  type StartedPod,
  startPod,
  startRuntimeLab,
  testPod,
} from '../runtime/harness.ts';

let lab: RuntimeLab;
let started: StartedPod;
let server: KubeletServer;
let snapshot: PodSnapshot;
let client: { cert: string; key: string };

const SCRIPT = `
mkdir /www; echo served > /www/index.html; httpd -p 8080 -h /www
trap 'exit 0' TERM
i=0; while :; do echo line $i; i=$((i+1)); sleep 0.2 & wait $!; done
`;

beforeAll(async () => {
  lab = await startRuntimeLab('nlsrv0', '10.213.7.0/24');
  started = await startPod(lab, testPod(SCRIPT));
  snapshot = await lab.runtime.observePod(started.ref);

  const life = { notBefore: epochMs(Date.now() - 60_000), notAfter: epochMs(Date.now() + 3_600_000) };
  const ca = generateKeyPair();
  const caCert = await issueCertificate({ commonName: 'ca', usage: 'ca', ...life }, ca);
  const clientCAFile = join(lab.root, 'ca.crt');
  await writeFile(clientCAFile, caCert);
  const pair = generateKeyPair();
  const signer = { cert: caCert, key: ca.privateKey };
  const cert = await issueCertificate({ commonName: 'caller', usage: 'client', ...life }, pair, signer);
  client = { cert, key: pair.privateKey };

  const { pod } = started;
  const status: PodStatus = {
    containerStatuses: [
      {
        name: 'main',
        image: '',
        imageID: '',
        ready: true,
        restartCount: 0,
        containerID: `containerd://${started.containerId}`,
        state: { running: {} },
      },
    ],
  };
  const pods: ServedPods = {
    getPod: (namespace, name) => (namespace === 'test' && name === pod.metadata.name ? pod : undefined),
    listPods: () => [pod],
    statusOf: () => status,
    snapshotOf: () => snapshot,
    containerIdFor: (_namespace, _name, container) => (container === 'main' ? started.containerId : undefined),
  };
  const config = completeConfiguration(
    { address: '127.0.0.1', authorization: { mode: 'AlwaysAllow' }, authentication: { x509: { clientCAFile } } },
    'test',
  );
  server = createKubeletServer({
    options: {
      nodeName: 'node',
      nodeIPs: ['127.0.0.1'],
      certDir: join(lab.root, 'kubelet-pki'),
      config: { ...config, port: 0 },
    },
    pods,
    runtime: lab.runtime,
    logs: createLogReader(systemClock),
    ...PAGES,
    tracer: new Tracer(),
    clock: systemClock,
  });
  await server.listen();
});

afterAll(async () => {
  await server?.close();
  if (started !== undefined) await removePod(lab, started);
  await lab?.close();
});

const at = (path: string): string => `${path.replace('POD', `test/${started.pod.metadata.name}`)}`;

function get(path: string, onData?: (text: string, response: IncomingMessage) => void) {
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const call = request(
      // The certificate is self-signed and this is the one that the server returns.
      { host: '127.0.0.1', port: server.port, path: at(path), ca: server.certificate, agent: false, ...client },
      (response) => {
        let body = '';
        response.on('data', (chunk: Buffer) => {
          body += chunk.toString();
          onData?.(body, response);
        });
        response.on('close', () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    call.on('error', reject);
    call.end();
  });
}

/** A WebSocket of the channel protocol: what came on each channel, and a way to send. */
function stream(path: string, protocols = ['v4.channel.k8s.io']) {
  const socket = new WebSocket(`wss://127.0.0.1:${server.port}${at(path)}`, protocols, {
    ca: server.certificate,
    ...client,
  });
  const channels: Record<number, Buffer> = {};
  socket.on('message', (data: Buffer) => {
    const [channel = -1] = data;
    channels[channel] = Buffer.concat([channels[channel] ?? Buffer.alloc(0), data.subarray(1)]);
  });
  const failed = new Promise<string>((resolve) => {
    socket.on('unexpected-response', (_request, response) => {
      resolve(`${response.statusCode}`);
      response.resume();
    });
    socket.on('error', (error) => resolve(error.message));
  });
  const bytes = (channel: number): Buffer => channels[channel] ?? Buffer.alloc(0);
  return {
    bytes,
    text: (channel: number): string => bytes(channel).toString(),
    send: (channel: number, data: string | Buffer) =>
      socket.send(Buffer.concat([Buffer.from([channel]), Buffer.from(data)])),
    opened: new Promise<void>((resolve) => socket.once('open', () => resolve())),
    closed: new Promise<void>((resolve) => socket.once('close', () => resolve())),
    failed,
    close: () => socket.close(),
  };
}

const exec = (...command: string[]) =>
  `/exec/POD/main?output=1&error=1&${command.map((word) => `command=${encodeURIComponent(word)}`).join('&')}`;

describe('logs', () => {
  test('are the container’s own lines', async () => {
    await eventually('a few lines', async () =>
      (await get('/containerLogs/POD/main')).body.includes('line 3') ? true : undefined,
    );
    const { status, body } = await get('/containerLogs/POD/main?tailLines=2&timestamps=true');
    expect(status).toBe(200);
    expect(body.trimEnd().split('\n')).toHaveLength(2);
    expect(body).toMatch(/^\d{4}-\d\d-\d\dT[^ ]+ line \d+\n/);
    expect((await get('/containerLogs/POD/main?limitBytes=5')).body).toBe('line ');
  });

  test('are followed as they are written', async () => {
    let arrivals = 0;
    const { status, body } = await get('/containerLogs/POD/main?follow=true&tailLines=0', (text, response) => {
      // They come one by one, and not all at the end, which never comes.
      if (++arrivals >= 3 && text.split('\n').length > 3) response.destroy();
    });
    expect(status).toBe(200);
    expect(body).toMatch(/^line (\d+)\nline \d+\nline \d+\n/);
  });
});

describe('streams through containerd', () => {
  test('exec returns output, errors and the exit code', async () => {
    const session = stream(exec('sh', '-c', 'echo out; echo err >&2; exit 3'));
    await session.closed;
    expect(session.text(1)).toBe('out\n');
    expect(session.text(2)).toBe('err\n');
    expect(JSON.parse(session.text(3))).toMatchObject({ status: 'Failure', reason: 'NonZeroExitCode' });
    expect(session.text(3)).toContain('"3"');
  });

  test('exec with a terminal and input talks both ways', async () => {
    const session = stream('/exec/POD/main?output=1&input=1&tty=1&command=sh');
    await session.opened;
    session.send(0, 'echo answer-$((6*7)); exit\n');
    await session.closed;
    expect(session.text(1)).toContain('answer-42');
  });

  test('attach shows what the container writes', async () => {
    const session = stream('/attach/POD/main?output=1');
    await eventually('output', () => (/line \d+\n/.test(session.text(1)) ? true : undefined));
    session.close();
    await session.closed;
  });

  test('port-forward reaches a server in the pod', async () => {
    const session = stream('/portForward/POD?port=8080');
    await session.opened;
    session.send(0, 'GET /index.html HTTP/1.0\r\n\r\n');
    await eventually('the page', () => (session.text(0).includes('served') ? true : undefined));
    // The first two bytes on each channel are the port, little-endian.
    expect(session.bytes(0).readUInt16LE(0)).toBe(8080);
    expect(session.bytes(1).readUInt16LE(0)).toBe(8080);
    session.close();
    await session.closed;
  });

  test('a caller who offers only v5 is refused with 400', async () => {
    expect(await stream(exec('true'), ['v5.channel.k8s.io']).failed).toBe('400');
  });

  test('a container that does not exist is refused', async () => {
    expect(await stream('/exec/POD/other?output=1&command=true').failed).toBe('500');
    expect(await stream('/exec/test/nobody/main?output=1&command=true').failed).toBe('404');
  });

  test('the exec process ends when its caller goes away', async () => {
    const session = stream('/exec/POD/main?output=1&input=1&command=cat');
    await session.opened;
    session.send(0, 'x\n');
    await eventually('the echo', () => (session.text(1) === 'x\n' ? true : undefined));
    session.close();
    await eventually('cat to end', async () => {
      const { stdout } = await lab.runtime.execSync(started.containerId, ['ps'], 60_000);
      return / cat$/m.test(stdout.toString()) ? undefined : true;
    });
  });
});

test('what runs is listed', async () => {
  const running: unknown = JSON.parse((await get('/runningpods/')).body);
  expect(running).toMatchObject({ items: [{ metadata: { name: started.pod.metadata.name } }] });
});
