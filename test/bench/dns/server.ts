// What the benchmark asks, a program of its own: `dns`, the server with 1,000 Services, or `echo`, a socket that sends back what it gets.
// Prints its port.

import { createSocket } from 'node:dgram';
import type { EndpointSlice, Service } from '../../../client/types.ts';
import { ClusterIndex } from '../../../dns/cluster/index.ts';
import { DnsMetrics } from '../../../dns/metrics.ts';
import { DnsServer } from '../../../dns/server/server.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { ENDPOINTS, SERVICES, serviceName } from './questions.ts';

const LOCAL = '127.0.0.1';
const [what = 'dns', port = '0'] = process.argv.slice(2);

function meta(name: string, labels: Record<string, string> = {}) {
  return { namespace: 'bench', name, uid: name, resourceVersion: '1', labels };
}

/** Every second one is headless. */
function service(index: number): Service {
  const clusterIP = index % 2 === 0 ? `10.96.${index >> 8}.${index & 255}` : 'None';
  const spec = { clusterIP, ports: [{ name: 'http', port: 80, protocol: 'TCP' }] };
  return { apiVersion: 'v1', kind: 'Service', metadata: meta(serviceName(index)), spec };
}

function slice(index: number): EndpointSlice {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, place) => {
    const number = index * ENDPOINTS + place;
    return {
      addresses: [`10.128.${number >> 8}.${number & 255}`],
      hostname: `pod-${place}`,
      conditions: { ready: true },
    };
  });
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: meta(`${serviceName(index)}-1`, { 'kubernetes.io/service-name': serviceName(index) }),
    addressType: 'IPv4',
    endpoints,
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  };
}

function cluster(): ClusterIndex {
  const now = systemClock.now();
  const index = new ClusterIndex(now);
  index.synced = true;
  index.namespaceChanged({ type: 'added', object: { metadata: { ...meta('bench') } } }, now);
  for (let number = 0; number < SERVICES; number++) {
    index.serviceChanged({ type: 'added', object: service(number) }, now);
    index.sliceChanged({ type: 'added', object: slice(number) }, now);
  }
  return index;
}

const COREFILE = `.:${port} {
  errors
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    pods insecure
    ttl 30
  }
  cache 30 {
    disable success cluster.local
    disable denial cluster.local
  }
  loadbalance
}`;

if (what === 'echo') {
  const socket = createSocket('udp4');
  socket.on('message', (bytes, from) => socket.send(bytes, from.port, from.address));
  socket.bind(Number(port), LOCAL, () => process.stdout.write(`${port}\n`));
} else {
  const server = new DnsServer({
    cluster: cluster(),
    addresses: [LOCAL],
    metrics: new DnsMetrics(),
    tracer: new Tracer(),
    clock: systemClock,
    random: Math.random,
    log: (_, line) => void process.stderr.write(`${line}\n`),
    signal: new AbortController().signal,
    notReady: () => [],
    onLoop: () => undefined,
  });
  await server.apply(COREFILE);
  process.stdout.write(`${port}\n`);
}
