// A lab whose CNI is left to the runtime (--network=runtime), as on a node with Calico or Flannel; and pods that use the
// node's own network.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Node } from '../../../client/types.ts';
import { startLab, type TestLab } from '../support/lab.ts';
import { freePort } from '../support/ports.ts';
import { udpAnswer, udpServer } from '../support/udp.ts';
import {
  apply,
  deletePods,
  eventually,
  filesIn,
  httpGet,
  leases,
  mainProcess,
  nodeWhen,
  nothingLeft,
  podResources,
  ready,
  shellPod,
  spans,
} from './harness.ts';

let lab: TestLab;
let before: readonly string[];

beforeAll(async () => {
  lab = await startLab({ network: 'runtime' });
  before = await podResources(lab);
});
afterAll(() => lab?.stop());

test('the node is Ready with the network of the runtime, and no shim is there', async () => {
  await nodeWhen(lab, 'Ready', (shown) => shown.status === 'True');
  expect(await filesIn(lab.paths.cni.shimConfDir)).toEqual([]);
});

test('a pod gets its address from the CNI chain that containerd runs by itself', async () => {
  await apply(lab, shellPod('plain', 'exec httpd -f -p 8080 -h /etc'));
  const pod = await ready(lab, 'plain');
  expect([...(await leases(lab)).values()]).toEqual([pod.status?.podIP]);
  expect(await httpGet(`http://${pod.status?.podIP}:8080/hostname`)).toEqual({ status: 200, body: 'plain\n' });
  expect((await spans(lab)).filter((span) => span.kind === 'cni')).toEqual([]);
  await deletePods(lab, ['plain']);
  await nothingLeft(lab, before);
});

test('a hostPort answers on the address of the node', async () => {
  const hostPort = await freePort();
  const ports = [{ containerPort: 8080, hostPort, protocol: 'TCP' }];
  await apply(lab, shellPod('with-port', 'exec httpd -f -p 8080 -h /etc', {}, { ports }));
  const pod = await ready(lab, 'with-port');
  const url = `http://${pod.status?.hostIP}:${hostPort}/hostname`;
  expect(await httpGet(url)).toEqual({ status: 200, body: 'with-port\n' });
  await deletePods(lab, ['with-port']);
  await nothingLeft(lab, before);
});

test('three pods have one hostPort, each with another address or protocol', async () => {
  const hostPort = await freePort();
  const { status } = await lab.client.get<Node>(resourcePath('v1', 'nodes', { name: lab.nodeName }));
  const hostIP = status?.addresses?.find(({ type }) => type === 'InternalIP')?.address ?? '';
  const ports = { loopback: ['127.0.0.1', 'TCP'], node: [hostIP, 'TCP'], udp: [hostIP, 'UDP'] } as const;
  const names = Object.keys(ports);
  const pods = Object.entries(ports).map(([name, [address, protocol]]) => {
    const port = { containerPort: 8080, hostPort, hostIP: address, protocol };
    return shellPod(name, 'exec httpd -f -p 8080 -h /etc', {}, { ports: [port] });
  });
  await apply(lab, ...pods);
  const [, , udp] = await Promise.all(names.map((name) => ready(lab, name)));
  if (udp === undefined) throw new Error('no pod');
  const server = udpServer(`/proc/${await mainProcess(lab, udp)}/ns/net`, 'udp', 8080);
  try {
    const body = async (address: string): Promise<string> =>
      (await httpGet(`http://${address}:${hostPort}/hostname`)).body.trim();
    expect(await body('127.0.0.1')).toBe('loopback');
    expect(await body(hostIP)).toBe('node');
    expect(await eventually('an answer over UDP', () => udpAnswer(hostIP, hostPort))).toBe('udp');
  } finally {
    await server.stop();
  }
  await deletePods(lab, names);
  await nothingLeft(lab, before);
});

test('a hostNetwork pod has the address of the node, its name and its interfaces, and takes no lease', async () => {
  await apply(
    lab,
    shellPod('host', 'trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done', { hostNetwork: true }),
  );
  const pod = await ready(lab, 'host');
  expect(pod.status?.podIP).toBe(pod.status?.hostIP);
  expect((await leases(lab)).size).toBe(0);
  expect(await lab.kubectl('exec', 'host', '--', 'ip', '-o', 'link')).toContain(lab.paths.bridge);
  expect((await lab.kubectl('exec', 'host', '--', 'hostname')).trim()).toBe(
    (
      await lab.kubectl('get', 'node', lab.nodeName, '-o', 'jsonpath={.metadata.labels.kubernetes\\.io/hostname}')
    ).trim(),
  );
  await deletePods(lab, ['host']);
  await nothingLeft(lab, before);
});
