// Network policies as a user has them: stock kubectl, real pods, the lab's own `nodelet netpol`. These tests are part of a file that has a lab
// with a proxy (test/e2e/proxy/traffic.test.ts).

import { describe, expect, test } from 'vitest';
import { resourcePath } from '../../../client/paths.ts';
import type { Pod } from '../../../client/types.ts';
import { exec } from '../../../lib/exec.ts';
import { apply, eventually } from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';

/** There: pod `client`; pods `one` and `two` that answer on port 8080 with their names, behind the Service `web`. */
export function describePoliciesFromPods(lab: () => TestLab, namespace: string): void {
  const kubectl = (...args: string[]): Promise<string> => lab().kubectl('-n', namespace, ...args);
  const get = async (address: string, seconds = 30): Promise<string | undefined> => {
    const command = ['exec', 'client', '--', 'timeout', String(seconds), 'wget', '-q', '-O-', `http://${address}/`];
    const { code, stdout } = await lab().tryKubectl(['-n', namespace, ...command]);
    return code === 0 ? stdout.trim() : undefined;
  };
  const policy = (name: string, spec: object) => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace },
    spec,
  });

  describe('network policies', () => {
    test('default deny, then allow by a label', async () => {
      const { status } = await lab().client.get<Pod>(resourcePath('v1', 'pods', { namespace, name: 'one' }));
      const address = `${status?.podIP}:8080`;
      expect(await eventually('an answer', () => get(address))).toBe('one');
      await apply(lab(), policy('default-deny', { podSelector: {}, policyTypes: ['Ingress'] }));
      await eventually('a refusal', async () => ((await get(address, 2)) === undefined ? true : undefined));
      // The node reaches its pods.
      expect((await exec('busybox', ['wget', '-q', '-O-', `http://${address}/`])).stdout.trim()).toBe('one');
      const from = [{ podSelector: { matchLabels: { access: 'true' } } }];
      await apply(lab(), policy('allow', { podSelector: {}, ingress: [{ from, ports: [{ port: 8080 }] }] }));
      await kubectl('label', 'pod', 'client', 'access=true');
      expect(await eventually('an answer', () => get(address))).toBe('one');
      await kubectl('delete', 'networkpolicy', '--all');
      await kubectl('label', 'pod', 'client', 'access-');
      expect(await eventually('an answer', () => get(address))).toBe('one');
    });
  });
}
