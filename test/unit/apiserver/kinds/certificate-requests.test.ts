// CertificateSigningRequests over TLS: what is refused, who may approve and sign, and what each subresource changes.

import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateKeyPair, issueCertificate } from '../../../../apiserver/pki/keys.ts';
import { plusMs, systemClock } from '../../../../lib/clock.ts';
import { at, type Credentials, TestApiServer } from '../../../support/api-server.ts';

const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const MERGE = { 'content-type': 'application/merge-patch+json' };
let stand: TestApiServer;
let alice: Credentials;
let approver: Credentials;

/** A request made by openssl, in base64 as the API has it. */
function request(subject: string, ...key: string[]): string {
  const args = ['req', '-new', ...key, '-nodes', '-keyout', '/dev/null', '-subj', subject];
  const pem = execFileSync('openssl', args, { stdio: ['ignore', 'pipe', 'ignore'] });
  return pem.toString('base64');
}
const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
const GOOD = request('/O=devs/CN=jane', ...EC);
const SIGNER = 'example.com/signer';

function csr(name: string, spec: object = {}): object {
  const base = { request: GOOD, signerName: SIGNER, usages: ['client auth'] };
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: { ...base, ...spec },
  };
}
const create = (body: object, as: Credentials = stand.admin) => stand.call({ method: 'POST', path: CSRS, body, as });
const patch = (path: string, body: object, as: Credentials = stand.admin) =>
  stand.call({ method: 'PATCH', path: `${CSRS}/${path}`, body, as, headers: MERGE });
const approved = { type: 'Approved', status: 'True', reason: 'KubectlApprove' };

beforeAll(async () => {
  stand = await TestApiServer.start();
  alice = await stand.certificate('alice', 'devs');
  approver = await stand.certificate('approver', 'approvers');
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const api = { apiVersion: 'rbac.authorization.k8s.io/v1' };
  const group = ['certificates.k8s.io'];
  const rules = (verb: string, signer: string) => [
    { verbs: ['*'], apiGroups: group, resources: ['certificatesigningrequests', 'certificatesigningrequests/*'] },
    { verbs: ['*'], apiGroups: group, resources: ['*/approval', '*/status'] },
    { verbs: [verb], apiGroups: group, resources: ['signers'], resourceNames: [signer] },
  ];
  for (const [name, verb, signer] of [
    ['alice', 'nothing', 'none'],
    ['approver', 'approve', 'example.com/*'],
  ] as const) {
    const metadata = { name: `csr-${name}` };
    await stand.admit('POST', `${rbac}/clusterroles`, {
      ...api,
      kind: 'ClusterRole',
      metadata,
      rules: rules(verb, signer),
    });
    const roleRef = { kind: 'ClusterRole', name: metadata.name };
    const binding = { ...api, kind: 'ClusterRoleBinding', metadata, roleRef, subjects: [{ kind: 'User', name }] };
    await stand.admit('POST', `${rbac}/clusterrolebindings`, binding);
  }
});
afterAll(() => stand.stop());

describe('a request', () => {
  it('is from its creator, whatever it claims, and not approved', async () => {
    const claimed = { username: 'root', uid: '0', groups: ['system:masters'], extra: { a: ['b'] } };
    const made = await create({ ...csr('claimed', claimed), status: { conditions: [approved] } }, alice);
    expect(made.code).toBe(201);
    expect(at(made.json, 'spec')).toEqual({
      request: GOOD,
      signerName: SIGNER,
      usages: ['client auth'],
      username: 'alice',
      groups: ['devs', 'system:authenticated'],
    });
    expect(at(made.json, 'status')).toEqual({});
    const changed = await patch('claimed', { spec: { signerName: 'other.com/s' }, status: { certificate: 'x' } });
    expect(at(changed.json, 'spec', 'signerName')).toBe(SIGNER);
    expect(at(changed.json, 'status')).toEqual({});
  });

  it('with RSA keys is taken, too', async () => {
    const rsa = request('/CN=jane', '-newkey', 'rsa:2048');
    expect((await create(csr('rsa', { request: rsa }))).code).toBe(201);
  });

  const forged = Buffer.from(GOOD, 'base64').toString();
  const der = Buffer.from(forged.replace(/-----[^-]+-----|\n/g, ''), 'base64');
  // Another name in what is signed.
  const other = Buffer.from(der.toString('latin1').replace('jane', 'root'), 'latin1').toString('base64');
  const pem = (body: string, type = 'CERTIFICATE REQUEST') =>
    Buffer.from(`-----BEGIN ${type}-----\n${body}\n-----END ${type}-----\n`).toString('base64');
  const cases: readonly [string, object, string][] = [
    [
      'that is no PEM',
      { request: 'AAAA' },
      'spec.request: Invalid value: "AAAA": PEM block type must be CERTIFICATE REQUEST',
    ],
    ['of another type', { request: pem('AAAA', 'CERTIFICATE') }, 'PEM block type must be CERTIFICATE REQUEST'],
    ['that is no PKCS#10', { request: pem('AAAA') }, 'the request does not parse as PKCS#10'],
    ['whose signature is for another name', { request: pem(other) }, 'x509: ECDSA verification failure'],
    ['for no usage', { usages: [] }, 'spec.usages: Required value'],
    [
      'for an unknown usage',
      { usages: ['fun'] },
      'spec.usages[0]: Unsupported value: "fun": supported values: "any", "cert sign"',
    ],
    ['twice for a usage', { usages: ['any', 'any'] }, 'spec.usages[1]: Duplicate value: "any"'],
    ['for no signer', { signerName: '' }, 'spec.signerName: Required value'],
    [
      'for a signer without a domain',
      { signerName: 'signer' },
      "must be a fully qualified domain and path of the form 'example.com/signer-name'",
    ],
    [
      'for a signer of a short domain',
      { signerName: 'com/s' },
      'should be a domain with at least two segments separated by dots',
    ],
    ['for a signer that is no name', { signerName: 'a.com/S_' }, 'validating label "S_"'],
    [
      'for the old signer',
      { signerName: 'kubernetes.io/legacy-unknown' },
      'the legacy signerName is not allowed via this API version',
    ],
    [
      'for five minutes',
      { expirationSeconds: 300 },
      'spec.expirationSeconds: Invalid value: 300: may not specify a duration less than 600 seconds (10 minutes)',
    ],
  ];
  for (const [what, spec, message] of cases) {
    it(`${what} is refused`, async () => {
      const refused = await create(csr('bad', spec));
      expect(at(refused.json, 'message')).toContain(message);
      expect(refused.code).toBe(422);
    });
  }

  it('for the API’s own clients is not for system:masters', async () => {
    const masters = {
      request: request('/O=a/O=system:masters/CN=x', ...EC),
      signerName: 'kubernetes.io/kube-apiserver-client',
    };
    const refused = await create(csr('masters', masters));
    expect([refused.code, at(refused.json, 'message')]).toEqual([
      403,
      'certificatesigningrequests.certificates.k8s.io "masters" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
    ]);
  });
});

describe('approval', () => {
  it('is for those who may approve for the signer, and changes nothing else', async () => {
    await create(csr('approve'));
    const refused = await patch('approve/approval', { status: { conditions: [approved] } }, alice);
    expect([refused.code, at(refused.json, 'message')]).toEqual([
      403,
      'certificatesigningrequests.certificates.k8s.io "approve" is forbidden: user not permitted to approve requests with signerName "example.com/signer"',
    ]);
    const body = { spec: { signerName: 'other.com/s' }, status: { certificate: 'AAAA', conditions: [approved] } };
    const done = await patch('approve/approval', body, approver);
    expect(done.code).toBe(200);
    expect(at(done.json, 'spec', 'signerName')).toBe(SIGNER);
    expect(at(done.json, 'status', 'certificate')).toBeUndefined();
    const condition = at(done.json, 'status', 'conditions', 0);
    expect(condition).toMatchObject(approved);
    expect(at(condition, 'lastUpdateTime')).toMatch(/^20/);
    expect(at(condition, 'lastTransitionTime')).toMatch(/^20/);
    for (const [conditions, message] of [
      [[], 'updates may not remove a condition of type "Approved"'],
      [[approved, { type: 'Denied', status: 'True' }], 'Approved and Denied conditions are mutually exclusive'],
      [
        [{ ...approved, status: 'False' }],
        'status.conditions[0].status: Unsupported value: "False": supported values: "True"',
      ],
    ] as const) {
      const wrong = await patch('approve/approval', { status: { conditions } }, approver);
      expect([wrong.code, at(wrong.json, 'message')]).toEqual([422, expect.stringContaining(message)]);
    }
  });
});

describe('the certificate', () => {
  it('is for those who may sign for the signer, once, and no way to approve', async () => {
    await create(csr('sign'));
    const now = systemClock.now();
    const certificate = async (): Promise<string> => {
      const life = { notBefore: now, notAfter: plusMs(now, 1e6) };
      return Buffer.from(
        await issueCertificate({ commonName: 'x', usage: 'client', ...life }, generateKeyPair()),
      ).toString('base64');
    };
    const first = await certificate();
    const status = (body: object, as?: Credentials) => patch('sign/status', { status: body }, as);
    const messages: readonly [object, Credentials, string][] = [
      [{ certificate: first }, approver, 'user not permitted to sign requests with signerName "example.com/signer"'],
      [
        { certificate: 'AAAA' },
        stand.admin,
        'status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block',
      ],
      [{ conditions: [approved] }, stand.admin, 'updates may not add a condition of type "Approved"'],
    ];
    for (const [body, as, message] of messages) expect(at((await status(body, as)).json, 'message')).toContain(message);
    const signed = await status({ certificate: first });
    expect([signed.code, at(signed.json, 'status', 'certificate')]).toEqual([200, first]);
    expect(at((await status({ certificate: await certificate() })).json, 'message')).toContain(
      'updates may not modify existing certificate content',
    );
    const table = await stand.call({
      path: `${CSRS}/sign`,
      as: stand.admin,
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    });
    const cells = at(table.json, 'rows', 0, 'cells');
    expect(cells).toEqual(['sign', expect.any(String), SIGNER, 'kubernetes-admin', '<none>', 'Pending,Issued']);
  });
});
