// The server's own Lease: its name, its renewal, and that of a server that is no more.

import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { identityOf, isExpired } from '../../../apiserver/identity-lease.ts';
import type { KubeObject } from '../../../apiserver/kinds/resource.ts';
import { epochMs } from '../../../lib/clock.ts';
import { rfc3339Micro } from '../../../lib/rfc3339.ts';
import { at, TestApiServer } from '../../support/api-server.ts';

it.each([
  // SHA-256 of the two names, each behind its length: what kube-apiserver makes of these hosts.
  ['kind-control-plane', 'apiserver-c7uylvfxlbqccnk6myfkwetzze'],
  ['node-1', 'apiserver-lgabes5ywnaqeagh5dny4zlzs4'],
])('the identity of %s', (host, identity) => expect(identityOf(host)).toBe(identity));

describe('a lease', () => {
  const lease = (spec: Record<string, unknown>): KubeObject => ({
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    metadata: { name: 'a' },
    spec,
  });
  const renewTime = rfc3339Micro(epochMs(1_000_000));
  it.each<[string, Record<string, unknown>, boolean]>([
    ['within its duration', { renewTime, leaseDurationSeconds: 9 }, false],
    ['at its end', { renewTime, leaseDurationSeconds: 10 }, false],
    ['after its end', { renewTime, leaseDurationSeconds: 8 }, true],
    ['without a time', { leaseDurationSeconds: 3600 }, true],
    ['without a duration', { renewTime }, true],
  ])('%s', (what, spec, expired) => {
    const now = epochMs(what === 'after its end' ? 1_008_001 : what === 'at its end' ? 1_010_000 : 1_005_000);
    expect(isExpired(lease(spec), now)).toBe(expired);
  });
});

describe('of a server', () => {
  let stand: TestApiServer;
  beforeAll(async () => {
    stand = await TestApiServer.start();
  });
  afterAll(() => stand.stop());
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';
  const own = `${leases}/${identityOf(hostname())}`;
  const read = async (path: string): Promise<unknown> => (await stand.call({ path, as: stand.admin })).json;

  it('is there when it serves, and renewed every ten seconds with its labels', async () => {
    const first = await read(own);
    expect(at(first, 'metadata', 'labels')).toEqual({
      'apiserver.kubernetes.io/identity': 'kube-apiserver',
      'kubernetes.io/hostname': hostname(),
    });
    expect(at(first, 'metadata', 'managedFields', 0, 'manager')).toBe('kube-apiserver');
    expect(at(first, 'spec', 'leaseDurationSeconds')).toBe(3600);
    const holder = at(first, 'spec', 'holderIdentity');
    expect(holder).toMatch(new RegExp(`^${identityOf(hostname())}_[0-9a-f]{8}-[0-9a-f-]{27}$`));

    const patch = { metadata: { labels: { own: 'stays', 'kubernetes.io/hostname': null } } };
    await stand.admit('PATCH', own, patch, { 'content-type': 'application/merge-patch+json' });
    stand.clock.shift = 60_000;
    stand.clock.elapse(10_000);
    await vi.waitFor(async () =>
      expect(at(await read(own), 'spec', 'renewTime')).not.toBe(at(first, 'spec', 'renewTime')),
    );
    const renewed = await read(own);
    expect(at(renewed, 'spec', 'holderIdentity')).toBe(holder);
    expect(at(renewed, 'metadata', 'labels')).toEqual({
      ...{ own: 'stays', 'apiserver.kubernetes.io/identity': 'kube-apiserver' },
      'kubernetes.io/hostname': hostname(),
    });
  });

  it('goes an hour after its last renewal, by another server; a lease of others stays', async () => {
    const lease = async (name: string, component: string, ageMs: number): Promise<void> => {
      await stand.admit('POST', leases, {
        kind: 'Lease',
        apiVersion: 'coordination.k8s.io/v1',
        metadata: { name, labels: { 'apiserver.kubernetes.io/identity': component } },
        spec: { leaseDurationSeconds: 3600, renewTime: rfc3339Micro(epochMs(stand.clock.now() - ageMs)) },
      });
    };
    await lease('apiserver-gone', 'kube-apiserver', 3_600_001);
    await lease('apiserver-alive', 'kube-apiserver', 3_000_000);
    await lease('other-gone', 'other', 3_600_001);
    stand.clock.elapse(3_600_000);
    await vi.waitFor(async () => expect(at(await read(`${leases}/apiserver-gone`), 'code')).toBe(404));
    expect(at(await read(leases), 'items')).toMatchObject(
      [
        { metadata: { name: 'apiserver-alive' } },
        { metadata: { name: identityOf(hostname()) } },
        { metadata: { name: 'other-gone' } },
      ].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)),
    );
  });
});
