// The signers of kubernetes.io: what each of them signs, whose requests are approved by themselves, and for how long a certificate
// is valid. Pure.

import { type EpochMs, plusMs } from '../../../lib/clock.ts';
import type { RequestFacts } from './request.ts';

const KUBELET_CLIENT = 'kubernetes.io/kube-apiserver-client-kubelet';
const KUBELET_SERVING = 'kubernetes.io/kubelet-serving';
const CLIENT = 'kubernetes.io/kube-apiserver-client';
const LEGACY = 'kubernetes.io/legacy-unknown';

const NODES_GROUP = 'system:nodes';
const NODE_PREFIX = 'system:node:';

const sameSet = (a: readonly string[], b: readonly string[]): boolean =>
  new Set(a).size === b.length && b.every((each) => a.includes(each));

/** Undefined where the usages are these, with or without what only RSA keys need. */
function usageProblem(usages: readonly string[], auth: string): string | undefined {
  const all = ['digital signature', 'key encipherment', auth].sort();
  if (sameSet(usages, all) || sameSet(usages, ['digital signature', auth])) return undefined;
  return `usages did not match [${all.join(' ')}]`;
}

function nodeProblem({ organizations, commonName }: RequestFacts): string | undefined {
  if (!(organizations.length === 1 && organizations[0] === NODES_GROUP)) {
    return 'subject organization is not system:nodes';
  }
  return commonName.startsWith(NODE_PREFIX) ? undefined : 'subject common name does not begin with system:node:';
}

function nameProblem(facts: RequestFacts, isServing: boolean): string | undefined {
  const { dnsNames, addresses, emails, uris } = facts;
  if (isServing && dnsNames.length + addresses.length === 0) return 'DNS or IP subjectAltName is required';
  if (!isServing && dnsNames.length > 0) return 'DNS subjectAltNames are not allowed';
  if (emails.length > 0) return 'Email subjectAltNames are not allowed';
  if (!isServing && addresses.length > 0) return 'IP subjectAltNames are not allowed';
  return uris.length > 0 ? 'URI subjectAltNames are not allowed' : undefined;
}

function kubeletProblem(facts: RequestFacts, usages: readonly string[], isServing: boolean): string | undefined {
  return (
    nodeProblem(facts) ??
    nameProblem(facts, isServing) ??
    usageProblem(usages, isServing ? 'server auth' : 'client auth')
  );
}

function clientProblem(usages: readonly string[]): string | undefined {
  const other = usages.find((usage) => !['digital signature', 'key encipherment', 'client auth'].includes(usage));
  if (other !== undefined) return `invalid usage for client certificate: ${other}`;
  return usages.includes('client auth') ? undefined : 'missing required usage for client certificate: client auth';
}

/** Whether there is such a signer here. */
export function isSigner(name: string): boolean {
  return [KUBELET_CLIENT, KUBELET_SERVING, CLIENT, LEGACY].includes(name);
}

/** Why the signer does not sign the request; undefined where it does. */
export function signerProblem(signer: string, facts: RequestFacts, usages: readonly string[]): string | undefined {
  if (signer === KUBELET_CLIENT) return kubeletProblem(facts, usages, false);
  if (signer === KUBELET_SERVING) return kubeletProblem(facts, usages, true);
  return signer === CLIENT ? clientProblem(usages) : undefined;
}

/** Who may have it approved without a person: the subresource that the creator needs `create` on, and the reason. */
export interface AutomaticApproval {
  readonly subresource: 'selfnodeclient' | 'nodeclient';
  readonly message: string;
}

/** A kubelet's client certificate, its own or one for another node's name; the first that is permitted counts. */
export function automaticApprovals(
  signer: string,
  facts: RequestFacts,
  usages: readonly string[],
  username: string,
): readonly AutomaticApproval[] {
  if (signer !== KUBELET_CLIENT || kubeletProblem(facts, usages, false) !== undefined) return [];
  const other: AutomaticApproval = {
    subresource: 'nodeclient',
    message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
  };
  if (facts.commonName !== username) return [other];
  const own: AutomaticApproval = {
    subresource: 'selfnodeclient',
    message: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
  };
  return [own, other];
}

/** Certificates are backdated, for machines whose clocks differ. ms. */
const BACKDATE_MS = 5 * 60_000;
/** Of a certificate that is valid for at least this long, the backdating is part of the time. ms. */
const SHORT_MS = 8 * 3_600_000;
const MIN_MS = 600_000;

/** `seconds`: spec.expirationSeconds. */
export function validity(
  seconds: number | undefined,
  longestMs: number,
  now: EpochMs,
): { readonly notBefore: EpochMs; readonly notAfter: EpochMs } {
  const wanted = seconds === undefined ? longestMs : Math.min(Math.max(seconds * 1000, MIN_MS), longestMs);
  const forMs = wanted < SHORT_MS ? wanted : wanted - BACKDATE_MS;
  return { notBefore: plusMs(now, -BACKDATE_MS), notAfter: plusMs(now, forMs) };
}
