// The DNS server with real sockets and a real API server: the cluster's names under the rights that the lab gives it, forwarding,
// caching, reloading, and what others send.

import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decode, encode } from 'dns-packet';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { writeKubeconfig } from '../../../apiserver/pki/kubeconfig.ts';
import { applyDnsObjects, COREFILE } from '../../../cli/lab/dns.ts';
import { ApiClient } from '../../../client/api.ts';
import { resourcePath } from '../../../client/paths.ts';
import { runDns } from '../../../dns/main.ts';
import { Type } from '../../../dns/wire/message.ts';
import { makeQuery } from '../../../dns/wire/records.ts';
import { systemClock } from '../../../lib/clock.ts';
import { poll } from '../../../lib/retry.ts';
import { type Span, Tracer } from '../../../lib/trace.ts';
import { type Credentials, TestApiServer } from '../../support/api-server.ts';
import { parseMetrics } from '../../support/metrics-text.ts';
import { freePort } from '../support/ports.ts';
import { ask, exchange, LOCAL, Upstream } from './support.ts';

let api: TestApiServer;
let admin: ApiClient;
let upstream: Upstream;
let second: Upstream;
let directory: string;
const NODELET = fileURLToPath(new URL('../../../bin/nodelet', import.meta.url));
const WEB = 'web.default.svc.cluster.local';
const configMap = resourcePath('v1', 'configmaps', { namespace: 'kube-system', name: 'coredns' });

function access({ cert = '', key = '' }: Credentials) {
  return { server: api.server.url, ca: api.server.pki.ca.cert, clientCert: cert, clientKey: key };
}

interface Running {
  readonly lines: string[];
  readonly ended: Promise<unknown>;
  stop(): Promise<unknown>;
}

/** Of a forward whose questions are counted: on a busy machine one that waits too short asks again. */
const PATIENT = 'read_timeout 120s';

const running: Running[] = [];
/** The queries to upstreams. */
const queries: Span[] = [];
const tracer = new Tracer();
tracer.subscribe((span) => void (span.kind === 'dns' && queries.push(span)));

/** Resolves once questions are answered, or the server has ended. */
async function start(corefile: { file: string } | { configMap: string }): Promise<Running> {
  const stop = new AbortController();
  const lines: string[] = [];
  const ready = Promise.withResolvers<void>();
  const ended = runDns({
    access: access(api.server.pki.clients.dns),
    addresses: [LOCAL],
    corefile,
    tracer,
    clock: systemClock,
    log: (_, line) => lines.push(line),
    signal: stop.signal,
    onReady: ready.resolve,
  }).then(
    () => undefined,
    (error: unknown) => error,
  );
  const server = {
    lines,
    ended,
    stop: () => {
      stop.abort();
      return ended;
    },
  };
  running.push(server);
  await Promise.race([ready.promise, ended]);
  return server;
}

/** A server with these lines in the braces of its only block. Returns its port. */
async function serve(...lines: readonly string[]): Promise<number> {
  const port = await freePort();
  const file = join(directory, `Corefile-${port}`);
  await writeFile(file, `.:${port} {\n${lines.join('\n')}\n}\n`);
  await start({ file });
  return port;
}

const until = async (what: string, look: () => boolean | Promise<boolean>): Promise<void> => {
  if (!(await poll(look, { clock: systemClock, everyMs: 20, limitMs: 120_000 }))) throw new Error(`never ${what}`);
};
const address = (name: string, data: string, ttl = 60) => ({ type: 'A' as const, name, ttl, data });

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-dns-'));
  [api, upstream, second] = await Promise.all([TestApiServer.start(), Upstream.start(), Upstream.start()]);
  admin = new ApiClient(access(api.admin), { tracer: new Tracer(), clock: systemClock, userAgent: 'test' });
  await applyDnsObjects(admin, { address: LOCAL_SLICE, serviceIP: SERVICE_IP });
  const services = resourcePath('v1', 'services', { namespace: 'default' });
  const service = (name: string, spec: object) => ({ apiVersion: 'v1', kind: 'Service', metadata: { name }, spec });
  await admin.create(services, service('web', { clusterIP: '10.96.0.50', ports: [{ name: 'http', port: 80 }] }));
  await admin.create(services, service('out', { type: 'ExternalName', externalName: 'www.example.com' }));
});
/** Slices have no loopback addresses. */
const LOCAL_SLICE = '192.0.2.53';
const SERVICE_IP = '10.96.0.10';

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()));
  for (const each of [upstream, second]) {
    each.questions.length = 0;
    each.says = () => ({ rcode: 3 });
  }
});
afterAll(async () => {
  upstream?.close();
  second?.close();
  admin?.close();
  await api?.stop();
  await rm(directory, { recursive: true, force: true });
});

test('the lab’s Corefile: names of the cluster, others forwarded, a change of the ConfigMap followed, a wrong one not', async () => {
  const [port, health, ready, metrics] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const local = COREFILE.replace('.:53', `.:${port}`)
    .replace('/etc/resolv.conf', `${LOCAL}:${upstream.port}`)
    .replace('health', `health :${health}`)
    .replace('ready', `ready :${ready}`)
    .replace(':9153', `:${metrics}`);
  await admin.patch(configMap, { data: { Corefile: local } }, 'merge');
  upstream.says = (name) => ({ answers: [address(name, '192.0.2.1')] });
  const { lines } = await start({ configMap: 'kube-system/coredns' });
  expect(await ask(port, WEB)).toBe('NOERROR A 10.96.0.50');
  expect(await ask(port, WEB, 'A', 'tcp')).toBe('NOERROR A 10.96.0.50');
  expect(await ask(port, 'kubernetes.default.svc.cluster.local')).toBe('NOERROR A 10.96.0.1');
  expect(await ask(port, '10.0.96.10.in-addr.arpa', 'PTR')).toBe('NOERROR PTR kube-dns.kube-system.svc.cluster.local');
  expect(await ask(port, 'kube-dns.kube-system.svc.cluster.local')).toBe(`NOERROR A ${SERVICE_IP}`);
  expect(await ask(port, 'out.default.svc.cluster.local')).toBe('NOERROR CNAME www.example.com A 192.0.2.1');
  expect(await ask(port, 'example.com')).toBe('NOERROR A 192.0.2.1');
  expect(await ask(port, `no.${WEB}`)).toBe('NXDOMAIN');

  const get = async (at: number, path: string): Promise<string> => {
    const response = await fetch(`http://${LOCAL}:${at}${path}`);
    return `${response.status} ${await response.text()}`;
  };
  expect(await get(health, '/health')).toBe('200 OK');
  expect(await get(ready, '/ready')).toBe('200 OK');
  expect(await get(ready, '/health')).toMatch(/^404/);
  const families = parseMetrics((await get(metrics, '/metrics')).slice(4).replaceAll('\n\n', '\n'));
  const requests = families.get('coredns_dns_requests_total')?.samples ?? [];
  expect(requests.find(({ labels }) => labels['proto'] === 'tcp')).toMatchObject({
    labels: { server: `dns://${LOCAL}:${port}`, zone: '.', view: '', proto: 'tcp', family: '1', type: 'A' },
    value: 1,
  });
  const responses = families.get('coredns_dns_responses_total')?.samples ?? [];
  expect(responses.map(({ labels }) => `${labels['rcode']} ${labels['plugin']}`).sort()).toEqual([
    'NOERROR forward',
    'NOERROR kubernetes',
    'NXDOMAIN kubernetes',
  ]);

  await admin.patch(configMap, { data: { Corefile: local.replace('loop', 'rewrite name a b\nloop') } }, 'merge');
  await until('refused', () =>
    lines.some((line) => line.includes("the plugin 'rewrite' is not there: the old Corefile stays")),
  );
  expect(await ask(port, WEB)).toBe('NOERROR A 10.96.0.50');
  const hosts = 'hosts /dev/null {\n192.0.2.9 added.example\nfallthrough\n}\nloop';
  await admin.patch(configMap, { data: { Corefile: local.replace('loop', hosts) } }, 'merge');
  await until('reloaded', async () => (await ask(port, 'added.example')) === 'NOERROR A 192.0.2.9');
  expect(await ask(port, WEB)).toBe('NOERROR A 10.96.0.50');
  expect(await get(metrics, '/metrics')).toMatch(/coredns_reload_failed_total 1\n/);
});

describe('forward', () => {
  test('an answer that is cut comes whole over TCP, to the client or where the Corefile prefers UDP', async () => {
    const many = (name: string) => Array.from({ length: 60 }, (_, last) => address(name, `192.0.2.${last}`));
    upstream.says = (name, _, by) => (by === 'udp' ? { truncated: true } : { answers: many(name) });
    const plain = await serve(`forward . ${LOCAL}:${upstream.port} {\n${PATIENT}\n}`);
    const query = makeQuery(1, 'many.example', Type.A);
    expect(decode(await exchange(plain, query, 'udp', { once: true }))).toMatchObject({ flag_tc: true, answers: [] });
    expect(decode(await exchange(plain, query, 'tcp')).answers).toHaveLength(60);
    expect(upstream.questions).toEqual(['udp A many.example', 'tcp A many.example']);
    const prefers = await serve(`forward . ${LOCAL}:${upstream.port} {\nprefer_udp\n${PATIENT}\n}`);
    queries.length = 0;
    const cut = decode(await exchange(prefers, query, 'udp', { once: true }));
    const about = { upstream: `${LOCAL}:${upstream.port}`, question: 'many.example', type: 'A' };
    expect(queries).toMatchObject([
      { name: 'forward', outcome: 'ok', attributes: { ...about, transport: 'udp' } },
      { name: 'forward', outcome: 'ok', attributes: { ...about, transport: 'tcp' } },
    ]);
    expect(cut.flag_tc).toBe(true);
    expect(cut.answers?.length).toBeGreaterThan(10);
  });

  test('records that this server does not know are passed on as they are', async () => {
    const data = Buffer.from('0001000001000302683200', 'hex');
    upstream.says = (name) => ({ answers: [{ type: 'NULL', name, ttl: 60, data }] });
    const port = await serve('cache', 'loadbalance', `forward . ${LOCAL}:${upstream.port}`);
    const query = makeQuery(1, 'odd.example', 10 as typeof Type.A);
    for (const turn of [1, 2]) {
      expect(decode(await exchange(port, query)).answers, `turn ${turn}`).toMatchObject([{ type: 'NULL', data }]);
    }
  });

  test('the next upstream where one does not answer; one that does not is left out until it does again', async () => {
    upstream.says = () => 'silent';
    second.says = (name) => ({ answers: [address(name, '192.0.2.2')] });
    const both = `${LOCAL}:${upstream.port} ${LOCAL}:${second.port}`;
    const options = 'policy sequential\nread_timeout 1s\nmax_fails 1\nhealth_check 20ms';
    const port = await serve(`forward . ${both} {\n${options}\n}`);
    await until('answered by the second', async () => (await ask(port, 'one.example')) === 'NOERROR A 192.0.2.2');
    const questions = (): number => upstream.questions.filter((each) => each.includes('A ')).length;
    await until('left out', async () => {
      const before = questions();
      await ask(port, 'two.example');
      return questions() === before;
    });
    upstream.says = (name) => ({ answers: [address(name, '192.0.2.1')] });
    expect(queries.find(({ name }) => name === 'health check')).toMatchObject({
      outcome: 'error',
      attributes: { type: 'NS' },
    });
    await until('used again', async () => (await ask(port, 'three.example')) === 'NOERROR A 192.0.2.1');
  });

  test('SERVFAIL where no upstream is there, and an ExternalName is its alias alone', async () => {
    const gone = await freePort();
    const file = join(directory, 'away');
    const port = await freePort();
    await writeFile(file, `.:${port} {\nerrors\nkubernetes cluster.local\nforward . ${LOCAL}:${gone}\n}\n`);
    const { lines } = await start({ file });
    expect(await ask(port, 'example.com')).toBe('SERVFAIL');
    expect(lines.join('\n')).toMatch(/plugin\/errors: SERVFAIL example\.com\. A: .*ECONNREFUSED/);
    expect(await ask(port, 'out.default.svc.cluster.local')).toBe('NOERROR CNAME www.example.com');
  });

  test('no more questions at a time than the Corefile allows', async () => {
    upstream.says = (name) => (name === 'slow.example' ? 'silent' : { answers: [address(name, '192.0.2.1')] });
    const port = await serve(`forward . ${LOCAL}:${upstream.port} {\nmax_concurrent 1\n${PATIENT}\n}`);
    const slow = createSocket('udp4');
    slow.send(makeQuery(1, 'slow.example', Type.A), port, LOCAL);
    await until('under way', () => upstream.questions.length === 1);
    expect(await ask(port, 'fast.example')).toBe('REFUSED');
    slow.close();
  });

  test('an upstream that is this server ends it', async () => {
    const port = await freePort();
    const file = join(directory, 'loop');
    await writeFile(file, `.:${port} {\nloop\nforward . ${LOCAL}:${port}\n}\n`);
    const { ended } = await start({ file });
    expect(String(await ended)).toMatch(/Loop \(127\.0\.0\.1:\d+\) detected for zone "\."/);
  });
});

test('the cache: one question for many, TTLs that become less, and denials', async () => {
  upstream.says = (name) => (name === 'there.example' ? { answers: [address(name, '192.0.2.1', 600)] } : 'silent');
  const port = await serve('cache 300', `forward . ${LOCAL}:${upstream.port} {\n${PATIENT}\n}`);
  const query = makeQuery(1, 'there.example', Type.A);
  for (const turn of [1, 2, 3]) {
    const { answers = [] } = decode(await exchange(port, query, 'udp', { once: true }));
    const [first] = answers;
    expect(first?.type === 'A' ? first.ttl : undefined, `turn ${turn}`).toBeLessThanOrEqual(300);
  }
  expect(upstream.questions).toEqual(['udp A there.example']);
});

describe('what others send', () => {
  const FLOOD = 2000;
  test('answers to what is wrong, none to answers and scraps', async () => {
    const port = await serve('kubernetes cluster.local');
    const good = makeQuery(7, WEB, Type.A);
    const changed = (change: (bytes: Buffer) => void): Buffer => {
      const bytes = Buffer.from(good);
      change(bytes);
      return bytes;
    };
    const code = async (bytes: Buffer): Promise<string> => {
      const { id, rcode, flag_qr } = decode(await exchange(port, bytes)) as unknown as {
        id: number;
        rcode: string;
        flag_qr: boolean;
      };
      return `${id} ${rcode} ${flag_qr}`;
    };
    expect(await code(good.subarray(0, 20))).toBe('7 FORMERR true');
    expect(await code(changed((bytes) => bytes.writeUInt16BE(2, 4)))).toBe('7 FORMERR true');
    expect(await code(changed((bytes) => bytes.writeUInt16BE(0xc00c, 12)))).toBe('7 FORMERR true');
    expect(await code(changed((bytes) => bytes.writeUInt16BE(0x2800, 2)))).toBe('7 NOTIMP true');
    expect(await code(changed((bytes) => bytes.writeUInt16BE(3, bytes.length - 2)))).toBe('7 REFUSED true');
    const edns = { type: 'OPT' as const, name: '.', udpPayloadSize: 1232, extendedRcode: 0, flags: 0, flag_do: false };
    const version = { ...edns, ednsVersion: 1, options: [] };
    const question = [{ type: 'A' as const, name: WEB }];
    const bad = decode(await exchange(port, encode({ id: 7, questions: question, additionals: [version] })));
    expect(bad.additionals).toMatchObject([{ type: 'OPT', extendedRcode: 1 }]);
    // What gets no answer would have been answered before this.
    const socket = createSocket('udp4');
    const seen: number[] = [];
    const answered = new Promise<void>((resolve) => {
      socket.on('message', (bytes) => {
        seen.push(bytes.readUInt16BE(0));
        resolve();
      });
    });
    socket.send(
      changed((bytes) => bytes.writeUInt16BE(0x8000, 2)),
      port,
      LOCAL,
    );
    socket.send(Buffer.from('scrap'), port, LOCAL);
    socket.send(
      changed((bytes) => bytes.writeUInt16BE(8, 0)),
      port,
      LOCAL,
    );
    await answered;
    expect(seen).toEqual([8]);
    socket.close();
  });

  test('a flood of odd messages is survived, and questions over TCP may come together', async () => {
    const port = await serve('kubernetes cluster.local');
    const socket = createSocket('udp4');
    let random = 12_345;
    for (let index = 0; index < FLOOD; index++) {
      // What is not lost by the kernel is what has to be survived.
      if (index % 200 === 0) expect(await ask(port, WEB)).toBe('NOERROR A 10.96.0.50');
      const bytes = makeQuery(index & 0xffff, WEB, Type.A);
      for (let damage = 0; damage < 4; damage++) {
        random = (random * 1_103_515_245 + 12_345) & 0x7fffffff;
        bytes[random % bytes.length] = random >> 16;
      }
      socket.send(bytes, port, LOCAL);
    }
    expect(await ask(port, WEB, 'A', 'tcp')).toBe('NOERROR A 10.96.0.50');
    expect(await ask(port, WEB)).toBe('NOERROR A 10.96.0.50');
    socket.close();
    const pipelined = Buffer.concat([1, 2].map((id) => framed(makeQuery(id, WEB, Type.A))));
    expect(await idsOverTcp(port, pipelined, 2)).toEqual([1, 2]);
  });
});

function framed(bytes: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

async function idsOverTcp(port: number, bytes: Buffer, count: number): Promise<readonly number[]> {
  const { connect } = await import('node:net');
  return new Promise((resolve, reject) => {
    const socket = connect(port, LOCAL, () => socket.write(bytes));
    const ids: number[] = [];
    let read: Buffer = Buffer.alloc(0);
    socket.once('error', reject);
    socket.on('data', (data) => {
      read = Buffer.concat([read, data]);
      while (read.length >= 2 && read.length >= 2 + read.readUInt16BE(0)) {
        ids.push(read.readUInt16BE(2));
        read = read.subarray(2 + read.readUInt16BE(0));
      }
      if (ids.length < count) return;
      socket.destroy();
      resolve(ids);
    });
  });
}

test('a flood of names that no upstream answers: names of the cluster are answered, and memory and log stay as they are', async () => {
  upstream.says = () => 'silent';
  const [port, metrics] = [await freePort(), await freePort()];
  const file = join(directory, 'Corefile-flood');
  const plugins = ['errors', 'kubernetes cluster.local', `prometheus ${LOCAL}:${metrics}`, 'cache 30'];
  const forward = `forward . ${LOCAL}:${upstream.port} {\nmax_concurrent 200\n}`;
  await writeFile(file, `.:${port} {\n${[...plugins, forward].join('\n')}\n}\n`);
  const kubeconfig = join(directory, 'dns.kubeconfig');
  const client = api.server.pki.clients.dns;
  await writeKubeconfig(kubeconfig, { server: api.server.url, ca: api.server.pki.ca.cert, user: 'dns', client });
  const child = spawn(NODELET, ['dns', '--kubeconfig', kubeconfig, '--bind-address', LOCAL, '--conf', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let lines = 0;
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => {
      lines += text.toString('utf8').split('\n').length - 1;
    });
  }
  const flooding = createSocket('udp4');
  const rejected = async (): Promise<number> => {
    const text = await (await fetch(`http://${LOCAL}:${metrics}/metrics`)).text();
    return Number(/^coredns_forward_max_concurrent_rejects_total (\d+)$/m.exec(text)?.[1]);
  };
  const flood = async (round: number): Promise<void> => {
    for (let turn = 0; turn < 60; turn++) {
      for (let each = 0; each < 200; each++) {
        flooding.send(makeQuery(each, `${round}-${turn}-${each}.example.com`, Type.A), port, LOCAL);
      }
      // The cluster's names in between, each by a socket of its own.
      expect(await ask(port, WEB)).toBe('NOERROR A 10.96.0.50');
    }
  };
  const resident = async (): Promise<number> => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
  };
  try {
    expect(await ask(port, WEB)).toBe('NOERROR A 10.96.0.50');
    await flood(1);
    const [warm, begun] = [await resident(), lines];
    await flood(2);
    await flood(3);
    // What an upstream does not answer is refused, as soon as so many wait.
    expect(await rejected()).toBeGreaterThan(1000);
    expect((await resident()) - warm).toBeLessThan(64);
    // Of 24,000 failures.
    expect(lines - begun).toBeLessThan(10_000);
  } finally {
    flooding.close();
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
});
