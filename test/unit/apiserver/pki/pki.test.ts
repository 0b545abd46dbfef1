import { X509Certificate } from 'node:crypto';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ensurePki } from '../../../../apiserver/pki/ensure.ts';
import { renderKubeconfig, writeKubeconfig } from '../../../../apiserver/pki/kubeconfig.ts';
import type { Pki } from '../../../../apiserver/pki/types.ts';
import { epochMs } from '../../../../lib/clock.ts';

const DAY = 24 * 60 * 60 * 1000;
const NOW = epochMs(Date.parse('2026-01-01T00:00:00Z'));
const directories: string[] = [];
function directory(): string {
  const made = mkdtempSync(join(tmpdir(), 'nodelet-pki-'));
  directories.push(made);
  return join(made, 'pki');
}
afterEach(() => {
  for (const one of directories.splice(0)) rmSync(one, { recursive: true });
});
const ensure = (dir: string, more: object = {}): Promise<Pki> =>
  ensurePki(dir, { hosts: ['10.0.0.5', 'api.example'], nodeName: 'n1', now: NOW, ...more });

describe('ensurePki', () => {
  it('makes certificates that the CA signed, for the names and groups of each client', async () => {
    const pki = await ensure(directory());
    const ca = new X509Certificate(pki.ca.cert);
    const subjects = Object.fromEntries(
      Object.entries(pki.clients).map(([name, { cert }]) => [name, new X509Certificate(cert).subject.split('\n')]),
    );
    expect(subjects).toEqual({
      admin: ['O=system:masters', 'CN=kubernetes-admin'],
      agent: ['O=system:nodes', 'CN=system:node:n1'],
      scheduler: ['CN=system:kube-scheduler'],
      'controller-manager': ['CN=system:kube-controller-manager'],
      proxy: ['CN=system:kube-proxy'],
      dns: ['CN=system:serviceaccount:kube-system:coredns'],
      netpol: ['CN=system:serviceaccount:kube-system:nodelet-netpol'],
      'kubelet-client': ['O=system:masters', 'CN=kube-apiserver-kubelet-client'],
    });
    for (const { cert } of [pki.serving, ...Object.values(pki.clients)]) {
      expect(new X509Certificate(cert).verify(ca.publicKey)).toBe(true);
    }
    const serving = new X509Certificate(pki.serving.cert);
    for (const host of ['localhost', 'api.example', 'kubernetes.default.svc'])
      expect(serving.checkHost(host)).toBe(host);
    for (const ip of ['127.0.0.1', '::1', '10.96.0.1', '10.0.0.5']) expect(serving.checkIP(ip)).toBe(ip);
  });

  it('keeps keys to their owner', async () => {
    const dir = directory();
    await ensure(dir);
    const keys = readdirSync(dir).filter((name) => name.endsWith('.key'));
    expect(keys.length).toBe(13);
    expect(keys.map((name) => (statSync(join(dir, name)).mode & 0o777).toString(8))).toEqual(keys.map(() => '600'));
  });

  it('takes others’ access to keys and their directory away that something else gave them', async () => {
    const dir = directory();
    await ensure(dir);
    const keys = readdirSync(dir).filter((name) => name.endsWith('.key'));
    for (const name of keys) chmodSync(join(dir, name), 0o644);
    chmodSync(dir, 0o755);
    await ensure(dir);
    expect([dir, ...keys.map((name) => join(dir, name))].map((path) => statSync(path).mode & 0o077)).toEqual(
      [dir, ...keys].map(() => 0),
    );
  });

  it('changes nothing the second time', async () => {
    const dir = directory();
    expect(await ensure(dir)).toEqual(await ensure(dir));
  });

  it('renews leaves near their end and keeps CA and token key', async () => {
    const dir = directory();
    const before = await ensure(dir);
    const later = await ensure(dir, { now: NOW + 300 * DAY });
    expect(later.ca).toEqual(before.ca);
    expect(later.serviceAccount).toEqual(before.serviceAccount);
    expect(later.clients.admin.cert).not.toBe(before.clients.admin.cert);
    expect(await ensure(dir, { now: NOW + 301 * DAY })).toEqual(later);
  });

  it('makes anew only what another name, node or broken file calls for', async () => {
    const dir = directory();
    const before = await ensure(dir);
    writeFileSync(before.clients.scheduler.certPath, 'half a fi');
    const after = await ensure(dir, { nodeName: 'n2', hosts: ['other.example'] });
    expect(after.clients.admin).toEqual(before.clients.admin);
    expect(new X509Certificate(after.clients.agent.cert).subject).toContain('CN=system:node:n2');
    expect(new X509Certificate(after.serving.cert).checkHost('other.example')).toBe('other.example');
    expect(new X509Certificate(after.clients.scheduler.cert).subject).toBe('CN=system:kube-scheduler');
  });

  it('remakes every certificate when the CA is another one', async () => {
    const dir = directory();
    const before = await ensure(dir);
    rmSync(before.ca.certPath);
    const after = await ensure(dir);
    const ca = new X509Certificate(after.ca.cert);
    expect(new X509Certificate(after.clients.admin.cert).verify(ca.publicKey)).toBe(true);
    expect(after.clients.admin.cert).not.toBe(before.clients.admin.cert);
  });
});

describe('a kubeconfig', () => {
  it('is not written again when it says the same, so that a server starts on a full disk; its mode is narrowed', async () => {
    const dir = directory();
    const { ca, clients } = await ensure(dir);
    const path = join(dir, 'kubeconfig');
    const options = { server: 'https://127.0.0.1:6443', ca: ca.cert, user: 'admin', client: clients.admin };
    await writeKubeconfig(path, options);
    const { ino } = statSync(path);
    chmodSync(path, 0o644);
    await writeKubeconfig(path, options);
    expect([statSync(path).ino, (statSync(path).mode & 0o777).toString(8)]).toEqual([ino, '600']);
    await writeKubeconfig(path, { ...options, server: 'https://127.0.0.1:6444' });
    expect(readFileSync(path, 'utf8')).toContain(':6444');
  });

  it('holds everything inside and points at one context', () => {
    const text = renderKubeconfig({
      server: 'https://127.0.0.1:6443',
      ca: 'CA',
      user: 'admin',
      client: { cert: 'CERT', key: 'KEY' },
      namespace: 'demo',
    });
    const base64 = (value: string) => Buffer.from(value).toString('base64');
    expect(parse(text)).toMatchObject({
      'current-context': 'nodelet',
      clusters: [
        { name: 'nodelet', cluster: { server: 'https://127.0.0.1:6443', 'certificate-authority-data': base64('CA') } },
      ],
      users: [{ name: 'admin', user: { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') } }],
      contexts: [{ name: 'nodelet', context: { cluster: 'nodelet', user: 'admin', namespace: 'demo' } }],
    });
  });
});
