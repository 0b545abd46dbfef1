// Certificate requests: which are approved by themselves, which are signed and for how long, and when they go.

import { describe, expect, it } from 'vitest';
import { removableAt } from '../../../../controlplane/controllers/certificates/cleanup.ts';
import type { RequestFacts } from '../../../../controlplane/controllers/certificates/request.ts';
import {
  automaticApprovals,
  signerProblem,
  validity,
} from '../../../../controlplane/controllers/certificates/signers.ts';
import { isToBeSigned } from '../../../../controlplane/controllers/certificates/signing.ts';
import type { CertificateSigningRequest } from '../../../../controlplane/controllers/shared/objects.ts';
import { epochMs, plusMs } from '../../../../lib/clock.ts';
import { rfc3339 } from '../../../../lib/rfc3339.ts';
import { meta } from '../environment.ts';

const NOW = epochMs(1_800_000_000_000);
const HOUR = 3_600_000;
const KUBELET = 'kubernetes.io/kube-apiserver-client-kubelet';
const SERVING = 'kubernetes.io/kubelet-serving';
const CLIENT = 'kubernetes.io/kube-apiserver-client';
const CLIENT_USAGES = ['digital signature', 'key encipherment', 'client auth'];
const SERVER_USAGES = ['digital signature', 'key encipherment', 'server auth'];
const node = (extra: Partial<RequestFacts> = {}): RequestFacts => ({
  commonName: 'system:node:a',
  organizations: ['system:nodes'],
  dnsNames: [],
  addresses: [],
  emails: [],
  uris: [],
  ...extra,
});

describe('a signer', () => {
  it.each<[string, string, RequestFacts, readonly string[], string | undefined]>([
    ['signs a kubelet’s client certificate', KUBELET, node(), CLIENT_USAGES, undefined],
    ['and one without what RSA needs', KUBELET, node(), ['client auth', 'digital signature'], undefined],
    [
      'wants the nodes’ group',
      KUBELET,
      node({ organizations: ['a', 'system:nodes'] }),
      CLIENT_USAGES,
      'subject organization is not system:nodes',
    ],
    [
      'wants a node’s name',
      KUBELET,
      node({ commonName: 'a' }),
      CLIENT_USAGES,
      'subject common name does not begin with system:node:',
    ],
    [
      'takes no names of hosts',
      KUBELET,
      node({ dnsNames: ['a'] }),
      CLIENT_USAGES,
      'DNS subjectAltNames are not allowed',
    ],
    [
      'takes no addresses',
      KUBELET,
      node({ addresses: ['10.0.0.1'] }),
      CLIENT_USAGES,
      'IP subjectAltNames are not allowed',
    ],
    [
      'wants these usages',
      KUBELET,
      node(),
      SERVER_USAGES,
      'usages did not match [client auth digital signature key encipherment]',
    ],
    ['signs a kubelet’s serving certificate', SERVING, node({ addresses: ['10.0.0.1'] }), SERVER_USAGES, undefined],
    ['which has a name', SERVING, node(), SERVER_USAGES, 'DNS or IP subjectAltName is required'],
    [
      'and no addresses of mail',
      SERVING,
      node({ dnsNames: ['a'], emails: ['a@b'] }),
      SERVER_USAGES,
      'Email subjectAltNames are not allowed',
    ],
    [
      'and no URIs',
      SERVING,
      node({ dnsNames: ['a'], uris: ['a://b'] }),
      SERVER_USAGES,
      'URI subjectAltNames are not allowed',
    ],
    ['signs what a client needs', CLIENT, node({ commonName: 'jane' }), ['client auth'], undefined],
    [
      'wants a client’s usage',
      CLIENT,
      node(),
      ['digital signature'],
      'missing required usage for client certificate: client auth',
    ],
    [
      'refuses others',
      CLIENT,
      node(),
      ['client auth', 'server auth'],
      'invalid usage for client certificate: server auth',
    ],
    ['of old signs anything', 'kubernetes.io/legacy-unknown', node({ commonName: 'x' }), ['any'], undefined],
  ])('%s', (_, signer, facts, usages, problem) => {
    expect(signerProblem(signer, facts, usages)).toBe(problem);
  });

  it.each<[string, number | undefined, number, number]>([
    ['as long as it may, with the time before now', undefined, -300, 30 * 24 * 3600 - 300],
    ['as long as the request says', 24 * 3600, -300, 24 * 3600 - 300],
    ['not longer than it may', 90 * 24 * 3600, -300, 30 * 24 * 3600 - 300],
    ['ten minutes at least', 60, -300, 600],
    ['short ones for the whole time from now on', 3600, -300, 3600],
  ])('gives certificates that are valid %s', (_, seconds, from, to) => {
    const { notBefore, notAfter } = validity(seconds, 30 * 24 * HOUR, NOW);
    expect([(notBefore - NOW) / 1000, (notAfter - NOW) / 1000]).toEqual([from, to]);
  });
});

describe('without a person', () => {
  it.each<[string, string, RequestFacts, string, readonly string[]]>([
    ['a node may renew its own', KUBELET, node(), 'system:node:a', ['selfnodeclient', 'nodeclient']],
    ['a bootstrap token may have one for a node', KUBELET, node(), 'system:bootstrap:abcdef', ['nodeclient']],
    ['no other signer’s', CLIENT, node(), 'system:node:a', []],
    ['none that would not be signed', KUBELET, node({ dnsNames: ['a'] }), 'system:node:a', []],
  ])('%s', (_, signer, facts, username, subresources) => {
    const approvals = automaticApprovals(signer, facts, CLIENT_USAGES, username);
    expect(approvals.map(({ subresource }) => subresource)).toEqual(subresources);
  });
});

const ago = (ms: number): string => rfc3339(plusMs(NOW, -ms));
const request = (
  status?: CertificateSigningRequest['status'],
  age = 0,
  signerName = CLIENT,
): CertificateSigningRequest => ({
  metadata: { ...meta('r'), creationTimestamp: ago(age) },
  spec: { request: '', signerName, usages: CLIENT_USAGES },
  ...(status === undefined ? {} : { status }),
});
const condition = (type: string, age = 0) => ({ type, status: 'True', lastUpdateTime: ago(age) });

it.each<[string, CertificateSigningRequest, boolean]>([
  ['approved', request({ conditions: [condition('Approved')] }), true],
  ['undecided', request(), false],
  ['denied', request({ conditions: [condition('Denied')] }), false],
  ['failed', request({ conditions: [condition('Approved'), condition('Failed')] }), false],
  ['signed', request({ conditions: [condition('Approved')], certificate: 'x' }), false],
  ['of another signer', request({ conditions: [condition('Approved')] }, 0, 'example.com/x'), false],
])('what is %s is signed: %#', (_, object, expected) => {
  expect(isToBeSigned(object)).toBe(expected);
});

it.each<[string, CertificateSigningRequest, number | undefined, number]>([
  ['a day after it came, undecided', request(undefined, HOUR), undefined, 23 * HOUR],
  ['an hour after it was denied', request({ conditions: [condition('Denied', 600_000)] }), undefined, HOUR - 600_000],
  ['an hour after it was approved', request({ conditions: [condition('Approved', 0)] }, 30 * HOUR), undefined, HOUR],
  ['when its certificate ends', request({ conditions: [condition('Approved', 0)] }), 1000, 1000],
])('a request goes %s', (_, object, expiresIn, expected) => {
  const at = removableAt(object, expiresIn === undefined ? undefined : plusMs(NOW, expiresIn));
  expect((at ?? 0) - NOW).toBe(expected);
});
