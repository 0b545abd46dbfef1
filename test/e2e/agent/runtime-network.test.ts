// A lab whose CNI is left to the runtime (--network=runtime), as on a node with Calico or Flannel; and pods that use the
// node's own network.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { startLab, type TestLab } from '../support/lab.ts';
import { freePort } from '../support/ports.ts';
import {
  apply,
  deletePods,
  filesIn,
  httpGet,
  leases,
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
