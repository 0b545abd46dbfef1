// Makes what is missing of a lab's certificates and keys, renews what is about to run out, and reads back the rest.
// Running it again changes nothing. Never overwrites a CA or a token key that is still good: everything hangs on them.

import { X509Certificate } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { certificateTime } from '../../lib/certificate-time.ts';
import { type EpochMs, elapsedMs, plusMs } from '../../lib/clock.ts';
import { narrowMode } from '../../lib/file-mode.ts';
import { generateKeyPair, issueCertificate, publicKeyOf } from './keys.ts';
import type { ClientName, Credential, Pki, PkiOptions } from './types.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const CA_LIFE_MS = 3650 * DAY_MS;
const LEAF_LIFE_MS = 365 * DAY_MS;
/** How far certificates are backdated, for machines whose clocks differ. ms. */
const BACKDATE_MS = 5 * 60 * 1000;
/** Renewed when less than this share of the life is left. */
const RENEW_SHARE = 0.2;
/** First address of the service network: the `kubernetes` service. */
const SERVICE_IP = '10.96.0.1';

interface LeafSpec {
  readonly file: string;
  readonly commonName: string;
  readonly organization?: string;
  readonly usage: 'server' | 'client';
  readonly hosts?: readonly string[];
}

function clientSpecs(nodeName: string): Record<ClientName, LeafSpec> {
  const client = (file: string, commonName: string, organization?: string): LeafSpec => ({
    file,
    commonName,
    usage: 'client',
    ...(organization === undefined ? {} : { organization }),
  });
  return {
    admin: client('admin', 'kubernetes-admin', 'system:masters'),
    agent: client('agent', `system:node:${nodeName}`, 'system:nodes'),
    scheduler: client('scheduler', 'system:kube-scheduler'),
    'controller-manager': client('controller-manager', 'system:kube-controller-manager'),
    proxy: client('proxy', 'system:kube-proxy'),
    dns: client('dns', 'system:serviceaccount:kube-system:coredns'),
    netpol: client('netpol', 'system:serviceaccount:kube-system:nodelet-netpol'),
    'kubelet-client': client('apiserver-kubelet-client', 'kube-apiserver-kubelet-client', 'system:masters'),
  };
}

/** Every name the API server may be called by. */
export function servingHosts(extra: readonly string[]): string[] {
  const service = [
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
  ];
  return [...new Set(['localhost', hostname(), ...service, '127.0.0.1', '::1', SERVICE_IP, ...extra])].filter(
    (host) => host !== '',
  );
}

/** "DNS:a, IP Address:1.2.3.4" → the bare names; IPv6 addresses as node:crypto writes them. */
function alternativeNames(certificate: X509Certificate): Set<string> {
  const names = (certificate.subjectAltName ?? '').split(', ').filter((part) => part !== '');
  return new Set(names.map((part) => part.slice(part.indexOf(':') + 1).toLowerCase()));
}

function covers(certificate: X509Certificate, host: string): boolean {
  if (alternativeNames(certificate).has(host.toLowerCase())) return true;
  return host.includes(':') && certificate.checkIP(host) !== undefined;
}

/** Why a certificate must be made anew, or undefined when it is still good. Pure. */
export function renewalReason(
  certificate: X509Certificate,
  expected: { readonly commonName: string; readonly organization?: string; readonly hosts?: readonly string[] },
  now: EpochMs,
): string | undefined {
  const [from, until] = [certificateTime(certificate.validFrom), certificateTime(certificate.validTo)];
  if (now < from) return 'not yet valid';
  if (elapsedMs(now, until) < elapsedMs(from, until) * RENEW_SHARE) return 'near its end';
  const subject = certificate.subject.split('\n');
  if (!subject.includes(`CN=${expected.commonName}`)) return 'another name';
  if (expected.organization !== undefined && !subject.includes(`O=${expected.organization}`)) return 'another group';
  const missing = (expected.hosts ?? []).find((host) => !covers(certificate, host));
  return missing === undefined ? undefined : `does not name ${missing}`;
}

async function readPair(dir: string, file: string): Promise<Credential | undefined> {
  const certPath = join(dir, `${file}.crt`);
  const keyPath = join(dir, `${file}.key`);
  await narrowMode(keyPath);
  const [cert, key] = await Promise.all([readFileIfExists(certPath), readFileIfExists(keyPath)]);
  return cert === undefined || key === undefined ? undefined : { certPath, keyPath, cert, key };
}

/** The key goes first: a crash between the two leaves a pair that does not match, which is detected and made again. */
async function writePair(dir: string, file: string, cert: string, key: string): Promise<Credential> {
  const pair = { certPath: join(dir, `${file}.crt`), keyPath: join(dir, `${file}.key`), cert, key };
  await writeFileAtomic(pair.keyPath, key, 0o600);
  await writeFileAtomic(pair.certPath, cert, 0o644);
  return pair;
}

function parse(pair: Credential): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(pair.cert);
    return publicKeyOf(pair.key) === certificate.publicKey.export({ type: 'spki', format: 'pem' }).toString()
      ? certificate
      : undefined;
  } catch (error) {
    // Half a file, or someone's edit: as good as missing, and made anew.
    if (error instanceof Error) return undefined;
    throw error;
  }
}

async function ensureCa(dir: string, file: string, commonName: string, now: EpochMs): Promise<Credential> {
  const existing = await readPair(dir, file);
  const certificate = existing === undefined ? undefined : parse(existing);
  if (existing !== undefined && certificate?.ca === true) {
    if (renewalReason(certificate, { commonName }, now) === undefined) return existing;
  }
  const keys = generateKeyPair();
  const cert = await issueCertificate(
    { commonName, usage: 'ca', notBefore: plusMs(now, -BACKDATE_MS), notAfter: plusMs(now, CA_LIFE_MS) },
    keys,
  );
  return writePair(dir, file, cert, keys.privateKey);
}

async function ensureLeaf(dir: string, ca: Credential, spec: LeafSpec, now: EpochMs): Promise<Credential> {
  const issuer = new X509Certificate(ca.cert);
  const existing = await readPair(dir, spec.file);
  const certificate = existing === undefined ? undefined : parse(existing);
  if (existing !== undefined && certificate?.verify(issuer.publicKey) === true) {
    if (renewalReason(certificate, spec, now) === undefined) return existing;
  }
  const keys = generateKeyPair();
  const life = { notBefore: plusMs(now, -BACKDATE_MS), notAfter: plusMs(now, LEAF_LIFE_MS) };
  return writePair(dir, spec.file, await issueCertificate({ ...spec, ...life }, keys, ca), keys.privateKey);
}

/** The identity of one more node's agent, signed by the CA of `dir`; as lasting as the others. */
export function ensureNodeClient(dir: string, ca: Credential, nodeName: string, now: EpochMs): Promise<Credential> {
  return ensureLeaf(dir, ca, { ...clientSpecs(nodeName).agent, file: `agent-${nodeName}` }, now);
}

async function ensureServiceAccountKey(dir: string): Promise<Pki['serviceAccount']> {
  const keyPath = join(dir, 'sa.key');
  const publicKeyPath = join(dir, 'sa.pub');
  await narrowMode(keyPath);
  const existing = await readFileIfExists(keyPath);
  const key = existing ?? generateKeyPair().privateKey;
  const publicKey = publicKeyOf(key);
  if (existing === undefined) await writeFileAtomic(keyPath, key, 0o600);
  if ((await readFileIfExists(publicKeyPath)) !== publicKey) await writeFileAtomic(publicKeyPath, publicKey, 0o644);
  return { keyPath, publicKeyPath, key, publicKey };
}

/**
 * Every certificate and key of the lab under `dir`, made or renewed where needed. Key files are mode 0600.
 * Rejects when the directory cannot be written, or when sa.key is there and is no private key.
 */
export async function ensurePki(dir: string, options: PkiOptions): Promise<Pki> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await narrowMode(dir);
  const ca = await ensureCa(dir, 'ca', 'nodelet-ca', options.now);
  const proxyCa = await ensureCa(dir, 'front-proxy-ca', 'front-proxy-ca', options.now);
  const leaf = (spec: LeafSpec): Promise<Credential> => ensureLeaf(dir, ca, spec, options.now);
  const proxyClient: LeafSpec = { file: 'front-proxy-client', commonName: 'front-proxy-client', usage: 'client' };
  const specs = clientSpecs(options.nodeName);
  const hosts = servingHosts(options.hosts);
  return {
    dir,
    ca,
    serving: await leaf({ file: 'apiserver', commonName: 'kube-apiserver', usage: 'server', hosts }),
    clients: {
      admin: await leaf(specs.admin),
      agent: await leaf(specs.agent),
      scheduler: await leaf(specs.scheduler),
      'controller-manager': await leaf(specs['controller-manager']),
      proxy: await leaf(specs.proxy),
      dns: await leaf(specs.dns),
      netpol: await leaf(specs.netpol),
      'kubelet-client': await leaf(specs['kubelet-client']),
    },
    frontProxy: { ca: proxyCa, client: await ensureLeaf(dir, proxyCa, proxyClient, options.now) },
    serviceAccount: await ensureServiceAccountKey(dir),
  };
}
