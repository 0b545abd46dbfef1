// `kubectl certificate approve` and what the control plane makes of it: a certificate that the API server takes; kubelets' requests
// that are approved by themselves; and requests that no signer takes.

import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ApiClient } from '../../../client/api.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { CertificateSigningRequest } from '../../../controlplane/controllers/shared/objects.ts';
import { execOk } from '../../../lib/exec.ts';
import { type Kubectl, kubectlFor } from '../kubectl/support.ts';
import { kubectls } from '../support/kubectls.ts';
import { Cluster, eventually, NODE } from './cluster.ts';

const REQUESTS = resourcePath('certificates.k8s.io/v1', 'certificatesigningrequests');
const programs = (await kubectls()).filter(({ full }) => full);

let cluster: Cluster;
let admin: ApiClient;
beforeAll(async () => {
  cluster = await Cluster.start();
  admin = await cluster.client();
  await cluster.startControlPlane();
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

/** A request by a new key, whose file is returned; `client` makes it. */
async function ask(
  client: ApiClient,
  name: string,
  subject: string,
  signer: string,
  usages: readonly string[],
): Promise<string> {
  const key = join(cluster.root, `${name}.key`);
  const file = join(cluster.root, `${name}.csr`);
  await execOk('openssl', [
    'req',
    '-new',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    key,
    '-out',
    file,
    '-subj',
    subject,
  ]);
  const request = (await readFile(file)).toString('base64');
  await client.create(REQUESTS, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: { request, signerName: `kubernetes.io/${signer}`, usages, expirationSeconds: 86_400 },
  });
  return key;
}

const when = (name: string, what: string, check: (request: CertificateSigningRequest) => boolean) =>
  eventually(`${name} ${what}`, async () => {
    const request = await admin.get<CertificateSigningRequest>(`${REQUESTS}/${name}`);
    return check(request) ? request : undefined;
  });

it.each(programs)(
  'kubectl $version: an approved request becomes a certificate that works',
  async ({ command, version }) => {
    const home = join(cluster.root, `home-${version}`);
    await mkdir(home);
    const kubectl: Kubectl = kubectlFor(command, cluster.kubeconfig, home);
    const name = `jane-${version.replace('.', '-')}`;
    const key = await ask(admin, name, '/O=painters/O=sculptors/CN=jane', 'kube-apiserver-client', ['client auth']);
    await kubectl.ok('certificate', 'approve', name);
    const signed = await when(name, 'to be signed', ({ status }) => status?.certificate !== undefined);
    const pem = Buffer.from(signed.status?.certificate ?? '', 'base64').toString('utf8');
    const certificate = new X509Certificate(pem);
    const ca = new X509Certificate(await readFile(join(cluster.root, 'pki', 'ca.crt')));
    expect(certificate.verify(ca.publicKey)).toBe(true);
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    const days = (Date.parse(certificate.validTo) - Date.parse(certificate.validFrom)) / 86_400_000;
    expect(days).toBe(1);
    const file = `${key}.crt`;
    await writeFile(file, pem);
    const authority = `--certificate-authority=${join(cluster.root, 'pki', 'ca.crt')}`;
    const identity = ['--kubeconfig=/dev/null', `--client-certificate=${file}`, `--client-key=${key}`, authority];
    const { stderr } = await kubectl.run(['get', 'pods', `--server=${admin.access.server}`, ...identity]);
    expect(stderr).toContain('User "jane" cannot list resource "pods"');
    expect(await kubectl.ok('get', 'csr', name)).toContain('Approved,Issued');
  },
);

it('a request that its signer does not take fails, and says why', async () => {
  await ask(admin, 'wrong', '/CN=jane', 'kube-apiserver-client-kubelet', ['client auth', 'digital signature']);
  await admin.patch(
    `${REQUESTS}/wrong/approval`,
    { status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Test', message: 'm' }] } },
    'merge',
  );
  const { status } = await when('wrong', 'to fail', (request) => request.status?.conditions?.length === 2);
  expect(status?.conditions?.[1]).toMatchObject({
    type: 'Failed',
    reason: 'SignerValidationFailure',
    message: 'subject organization is not system:nodes',
  });
});

it('a node’s own client certificate is approved and signed without a person, where RBAC permits it', async () => {
  await admin.create(resourcePath('rbac.authorization.k8s.io/v1', 'clusterrolebindings'), {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'renewal' },
    roleRef: {
      apiGroup: 'rbac.authorization.k8s.io',
      kind: 'ClusterRole',
      name: 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
    },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:nodes' }],
  });
  const agent = await cluster.client('kubeconfigs/agent.kubeconfig');
  await ask(agent, 'renewal', `/O=system:nodes/CN=system:node:${NODE}`, 'kube-apiserver-client-kubelet', [
    'digital signature',
    'key encipherment',
    'client auth',
  ]);
  const { status } = await when('renewal', 'to be signed', (request) => request.status?.certificate !== undefined);
  expect(status?.conditions).toMatchObject([
    {
      type: 'Approved',
      reason: 'AutoApproved',
      message: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
    },
  ]);
});
