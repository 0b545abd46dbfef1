// Services with ports of several protocols and with slices that someone wrote, and UDP between pods; with real packets. These tests are part of a
// file that has a lab with a proxy (test/e2e/proxy/traffic.test.ts).

import { afterAll, beforeAll, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { EndpointSlice, Pod, Service } from '../../../client/types.ts';
import { exec } from '../../../lib/exec.ts';
import { eventually, mainProcess, podPath } from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';
import { udpAnswer, udpServer } from '../support/udp.ts';

/** There: pods `client`, `single` and `one`, of which the latter answer with their names on 8080 and 8081 (HTTP). */
export function describePorts(lab: () => TestLab, namespace: string, mode: string): void {
  const pod = (name: string): Promise<Pod> => lab().client.get<Pod>(podPath(name, namespace));
  const networkOf = async (name: string): Promise<string> =>
    `/proc/${await mainProcess(lab(), await pod(name))}/ns/net`;
  const services = resourcePath('v1', 'services', { namespace });
  /** An answer may take its time; `seconds` is less where there is to be none. */
  async function tcp(address: string, port: number, seconds = 30): Promise<string | undefined> {
    const get = ['busybox', 'wget', '-q', '-O-', `http://${address}:${port}/`];
    const { code, stdout } = await exec('timeout', [String(seconds), ...get]);
    return code === 0 ? stdout.trim() : undefined;
  }
  const answers = (what: string, get: () => Promise<string | undefined>): Promise<string> => eventually(what, get);
  const silent = (what: string, get: () => Promise<string | undefined>): Promise<true> =>
    eventually(`no answer: ${what}`, async () => ((await get()) === undefined ? true : undefined));

  let client: string;
  let server: { readonly stop: () => Promise<void> } | undefined;
  beforeAll(async () => {
    client = await networkOf('client');
    server = udpServer(await networkOf('single'), 'single', 8080);
  });
  afterAll(() => server?.stop());

  test('UDP reaches a pod from another one and from the node', async () => {
    const { podIP = '' } = (await pod('single')).status ?? {};
    for (const from of [client, undefined]) {
      expect(await answers('UDP to a pod', () => udpAnswer(podIP, 8080, from))).toBe('single');
    }
  });

  test('one number for TCP and UDP, then for one of them alone', async () => {
    const name = `both-${mode}`;
    const [overTcp, overUdp] = [
      { name: 'tcp', port: 80, targetPort: 8080, protocol: 'TCP' },
      { name: 'udp', port: 80, targetPort: 8080, protocol: 'UDP' },
    ];
    const spec = { selector: { app: 'single' }, ports: [overTcp, overUdp] };
    const { spec: made } = await lab().client.create<Service>(services, { metadata: { name }, spec });
    const address = made?.clusterIP ?? '';
    const ports = (...wanted: object[]): Promise<unknown> =>
      lab().client.patch(`${services}/${name}`, { spec: { ports: wanted } }, 'merge');
    for (const from of [client, undefined]) {
      expect(await answers('UDP to a Service', () => udpAnswer(address, 80, from))).toBe('single');
    }
    expect(await answers('TCP', () => tcp(address, 80))).toBe('single');
    await ports(overTcp);
    await silent('UDP', () => udpAnswer(address, 80));
    expect(await answers('TCP', () => tcp(address, 80))).toBe('single');
    await ports(overUdp);
    await silent('TCP', () => tcp(address, 80, 1));
    expect(await answers('UDP to a Service', () => udpAnswer(address, 80, client))).toBe('single');
    await lab().client.delete(`${services}/${name}`);
  });

  test('slices that someone wrote: one address with several ports, and several addresses', async () => {
    const name = `written-${mode}`;
    const numbers = [80, 81, 82];
    const ports = numbers.map((port) => ({ name: `p${port}`, port, protocol: 'TCP' }));
    const { spec } = await lab().client.create<Service>(services, { metadata: { name }, spec: { ports } });
    const slices = resourcePath('discovery.k8s.io/v1', 'endpointslices', { namespace });
    const behind = [
      ['single', 8080],
      ['single', 8081],
      ['one', 8081],
    ] as const;
    for (const [index, [to, port]] of behind.entries()) {
      await lab().client.create<EndpointSlice>(slices, {
        metadata: { name: `${name}-${index}`, labels: { 'kubernetes.io/service-name': name } },
        addressType: 'IPv4',
        ports: [{ name: `p${numbers[index]}`, port, protocol: 'TCP' }],
        endpoints: [{ addresses: [(await pod(to)).status?.podIP ?? ''] }],
      });
    }
    for (const [index, [to]] of behind.entries()) {
      expect(await answers(`port ${index}`, () => tcp(spec?.clusterIP ?? '', numbers[index] ?? 0))).toBe(to);
    }
    await lab().client.delete(`${services}/${name}`);
    for (const index of behind.keys()) await lab().client.delete(`${slices}/${name}-${index}`);
  });
}
