// Stock kubectl's commands about roles and certificates, against the embedded API server alone: the oldest and the newest.

import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubectls } from '../support/kubectls.ts';
import { type Kubectl, kubectlFor, startTestServer, type TestServer } from './support.ts';

const versions = (await kubectls()).filter(({ full }) => full);

let test: TestServer;
beforeAll(async () => {
  test = await startTestServer();
});
afterAll(async () => {
  await test.stop();
});

describe.each(versions)('kubectl $version', ({ command, version }) => {
  const id = `k${version.replace('.', '-')}`;
  let kubectl: Kubectl;
  const refused = async (...args: string[]): Promise<string> => {
    const { code, stderr } = await kubectl.run(args);
    expect(code, stderr).toBe(1);
    return stderr;
  };

  beforeAll(async () => {
    const home = join(test.root, `home-${version}`);
    await mkdir(home, { recursive: true });
    kubectl = kubectlFor(command, test.kubeconfig, home);
    await kubectl.ok('create', 'namespace', id);
  });

  it('creates roles and bindings, which decide what their subjects may', async () => {
    const [as, ns] = [`--as=alice-${id}`, `-n=${id}`];
    expect(await refused('get', 'pods', ns, as)).toBe(
      `Error from server (Forbidden): pods is forbidden: User "alice-${id}" cannot list resource "pods" in API group "" in the namespace "${id}"\n`,
    );
    await kubectl.ok('create', 'role', 'reader', ns, '--verb=get,list', '--resource=pods,leases.coordination.k8s.io');
    await kubectl.ok('create', 'rolebinding', 'reader', ns, '--role=reader', `--user=alice-${id}`);
    await kubectl.ok('create', 'clusterrole', id, '--verb=get', '--non-resource-url=/metrics');
    await kubectl.ok('create', 'clusterrolebinding', id, `--clusterrole=${id}`, '--serviceaccount=x:y', '--group=devs');
    expect((await kubectl.run(['get', 'pods', ns, as])).code).toBe(0);
    expect(await kubectl.ok('auth', 'can-i', 'list', 'pods', ns, as)).toBe('yes\n');
    expect((await kubectl.run(['auth', 'can-i', 'delete', 'pods', ns, as])).stdout).toBe('no\n');
    expect(await kubectl.ok('auth', 'can-i', 'get', '/metrics', as, '--as-group=devs')).toBe('yes\n');
    const list = await kubectl.ok('auth', 'can-i', '--list', ns, as);
    expect(list).toMatch(/^pods\s+\[\]\s+\[\]\s+\[get list\]$/m);
    expect(list).toMatch(/^leases\.coordination\.k8s\.io\s+\[\]\s+\[\]\s+\[get list\]$/m);
    expect(await kubectl.ok('get', 'clusterrolebinding', id, '-o', 'wide', '--no-headers')).toMatch(
      new RegExp(`^${id}\\s+ClusterRole/${id}\\s+\\S+\\s+devs\\s+x/y\\s*$`),
    );
  });

  it('grants no more than the one who does it has', async () => {
    const [as, ns] = [`--as=admin-${id}`, `-n=${id}`];
    await kubectl.ok('create', 'rolebinding', 'admin', ns, '--clusterrole=admin', `--user=admin-${id}`);
    expect(await refused('create', 'role', 'more', ns, as, '--verb=get', '--resource=nodes')).toContain(
      'is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}',
    );
    await kubectl.ok('create', 'rolebinding', 'edit', ns, as, '--clusterrole=edit', '--user=somebody');
  });

  it('reconciles roles', async () => {
    const manifest = JSON.stringify({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'reader', namespace: id },
      rules: [{ verbs: ['watch'], apiGroups: [''], resources: ['pods'] }],
    });
    await kubectl.feed(manifest, 'auth', 'reconcile', '-f', '-');
    const verbs = await kubectl.ok('get', 'role', 'reader', '-n', id, '-o', 'jsonpath={.rules[*].verbs[*]}');
    expect(verbs.split(' ').sort()).toEqual(['get', 'get', 'list', 'list', 'watch']);
  });

  it('approves and denies certificate requests', async () => {
    const args = ['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    const pem = execFileSync('openssl', [...args, '-keyout', '/dev/null', '-subj', '/CN=jane'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    for (const [name, verb, condition] of [
      [`${id}-a`, 'approve', 'Approved'],
      [`${id}-d`, 'deny', 'Denied'],
    ] as const) {
      const spec = { request: pem.toString('base64'), signerName: 'example.com/s', usages: ['client auth'] };
      const api = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' };
      await kubectl.feed(JSON.stringify({ ...api, metadata: { name }, spec }), 'create', '-f', '-');
      expect(await kubectl.ok('get', 'csr', name, '--no-headers')).toMatch(
        /example.com\/s\s+kubernetes-admin\s+<none>\s+Pending/,
      );
      await kubectl.ok('certificate', verb, name);
      expect(await kubectl.ok('get', 'csr', name, '--no-headers')).toContain(condition);
    }
  });
});
