// DNS as pods of a lab use it: their resolv.conf, busybox's nslookup, names of Services, endpoints and others. These tests are part of a
// file that has a lab with a proxy (test/e2e/proxy/traffic.test.ts).

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COREFILE } from '../../../cli/lab/dns.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Service } from '../../../client/types.ts';
import { exec } from '../../../lib/exec.ts';
import { eventually } from '../agent/harness.ts';
import { answerFor } from '../explain/answers.ts';
import type { TestLab } from '../support/lab.ts';
import { freePort } from '../support/ports.ts';
import { LOCAL, Upstream } from './support.ts';

const CONFIG_MAP = resourcePath('v1', 'configmaps', { namespace: 'kube-system', name: 'coredns' });

/** There: pod `client`; pods `one` and `two` behind Services `web` and, with their names, `headless`. */
export function describeDnsFromPods(lab: () => TestLab, namespace: string): void {
  const inPod = async (...command: readonly string[]): Promise<string> => {
    const { stdout, stderr } = await lab().tryKubectl(['-n', namespace, 'exec', 'client', '--', ...command]);
    return `${stdout}${stderr}`;
  };
  const configure = (forward: string): Promise<unknown> => {
    const Corefile = COREFILE.replace('/etc/resolv.conf', forward).replace('cache 30', 'cache 1');
    return lab().client.patch(CONFIG_MAP, { data: { Corefile } }, 'merge');
  };
  /** What a command in the pod prints in the end: the time limit of a resolver in the pod may be too short for a busy machine. */
  const prints = (expected: RegExp, ...command: readonly string[]): Promise<string> =>
    eventually(`${command.join(' ')}: ${expected}`, async () => {
      const text = await inPod(...command);
      return expected.test(text) ? text : undefined;
    });
  const finds = (name: string, expected: RegExp, type = 'a'): Promise<string> =>
    prints(expected, 'nslookup', `-type=${type}`, name);

  describe('DNS from pods', () => {
    let upstream: Upstream;
    let gone: number;
    beforeAll(async () => {
      upstream = await Upstream.start();
      upstream.says = (name) => ({ answers: [{ type: 'A', name, ttl: 1, data: '192.0.2.77' }] });
      gone = await freePort();
    });
    afterAll(() => upstream?.close());

    test('resolv.conf is the kubelet’s of a cluster with DNS', async () => {
      const lines = (await inPod('cat', '/etc/resolv.conf')).trim().split('\n');
      const [search = '', nameserver, options] = lines;
      const domains = [`${namespace}.svc.cluster.local`, 'svc.cluster.local', 'cluster.local'];
      expect(search.split(' ').slice(0, 4)).toEqual(['search', ...domains]);
      expect([nameserver, options]).toEqual([`nameserver 10.96.0.10`, 'options ndots:5']);
    });

    test('nslookup of Services, of endpoints by their names, and of addresses; names in part', async () => {
      const address = /Name:\s+kubernetes\.default\.svc\.cluster\.local\s+Address: 10\.96\.0\.1\n/;
      const kubernetes = await finds('kubernetes.default.svc.cluster.local', address);
      expect(kubernetes).toMatch(/Server:\s+10\.96\.0\.10/);
      await prints(/Address: 10\.96\.0\.1\n/, 'nslookup', 'kubernetes.default.svc.cluster.local');
      const ip = (name: string): Promise<string> =>
        lab().kubectl('-n', namespace, 'get', 'pod', name, '-o', 'jsonpath={.status.podIP}');
      const [one, two] = await Promise.all([ip('one'), ip('two')]);
      const headless = `headless.${namespace}.svc.cluster.local`;
      await finds(`one.${headless}`, new RegExp(`Address: ${one}\n`));
      const all = await finds(headless, new RegExp(`Address: ${one}\n`));
      expect(all).toContain(`Address: ${two}\n`);
      await prints(/name = kube-dns\.kube-system\.svc\.cluster\.local/, 'nslookup', '10.96.0.10');
      await finds(`_80-8080._tcp.${headless}`, new RegExp(`one\\.${headless}`), 'srv');
      for (const name of ['web', `web.${namespace}`, `web.${namespace}.svc`]) {
        await prints(/^(one|two)\n$/, 'wget', '-q', '-O-', `http://${name}/`);
      }
    });

    test('names of others, and an ExternalName, by the upstream; SERVFAIL without one; each after a change of the Corefile', async () => {
      const external = { type: 'ExternalName', externalName: 'www.upstream.test' };
      const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'out' }, spec: external };
      await lab().client.create<Service>(resourcePath('v1', 'services', { namespace }), service as Service);
      await configure(`${LOCAL}:${upstream.port}`);
      await finds('anything.upstream.test', /Address: 192\.0\.2\.77\n/);
      const alias = await finds(`out.${namespace}.svc.cluster.local`, /canonical name = www\.upstream\.test/);
      expect(alias).toContain('Address: 192.0.2.77\n');
      await configure(`${LOCAL}:${gone}`);
      await finds('other.upstream.test', /SERVFAIL/);
      await finds('kubernetes.default.svc.cluster.local', /Address: 10\.96\.0\.1\n/);
    });

    test('the commands of docs/dns.md work as they are written', async () => {
      const page = await readFile(fileURLToPath(new URL('../../../docs/dns.md', import.meta.url)), 'utf8');
      const blocks = [...page.matchAll(/^```sh dns\n([\s\S]*?)^```$/gm)].map(([, script = '']) => script);
      expect(blocks).toHaveLength(3);
      const script = blocks.join('').replaceAll('/var/lib/nodelet', lab().root);
      const { code, stdout, stderr } = await exec('bash', ['-euo', 'pipefail', '-c', script], { timeoutMs: 500_000 });
      expect(code, `${stdout}\n${stderr}`).toBe(0);
      expect(stdout).toContain('Address: 10.96.0.1\n');
    });

    test('explain finds the name in DNS from the pod', async () => {
      const found = new RegExp(`web\\.${namespace}\\.svc\\.cluster\\.local is 10\\.96\\.\\S+, by 10\\.96\\.0\\.10`);
      await eventually('the answer', async () => {
        const { fine } = await answerFor(lab(), 'service', `${namespace}/web`, { from: `${namespace}/client` });
        return found.test(fine.join('\n')) ? true : undefined;
      });
    });
  });
}
