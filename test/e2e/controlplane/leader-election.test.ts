// Two control planes on one API server: one of them works, and the other takes over.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ApiClient } from '../../../client/api.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Lease, Pod } from '../../../client/types.ts';
import { sameJson } from '../../../lib/same-json.ts';
import { Cluster, eventually } from './cluster.ts';

/**
 * No lease is lost here because the machine is slow: the leader that is stopped gives its lease up, and the other one
 * takes it at its next try.
 */
const FIGURES = { leaseDurationMs: 100_000, renewDeadlineMs: 80_000, retryPeriodMs: 1000 };
const namespace = 'default';

let cluster: Cluster;
let admin: ApiClient;
beforeAll(async () => {
  cluster = await Cluster.start();
  admin = await cluster.client();
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

const leaders = async (): Promise<Readonly<Record<string, string | undefined>>> => {
  const { items } = await admin.list<Lease>(
    resourcePath('coordination.k8s.io/v1', 'leases', { namespace: 'kube-system' }),
  );
  return Object.fromEntries(items.map(({ metadata, spec }) => [metadata.name, spec?.holderIdentity]));
};
const leadersBecome = (identity: string) =>
  eventually(
    `${identity} to lead`,
    async () => {
      const found = await leaders();
      const both = ['kube-controller-manager', 'kube-scheduler'].every((lease) => found[lease] === identity);
      return both ? true : undefined;
    },
    // A lease that could not be given up in time is taken when it has ended.
    3 * FIGURES.leaseDurationMs,
  );

/** How many pods the set has after it has as many as it should; two that work at once make more. */
async function replicaSet(name: string): Promise<readonly Pod[]> {
  const labels = { app: name };
  await admin.create(resourcePath('apps/v1', 'replicasets', { namespace }), {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name },
    spec: {
      replicas: 5,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  });
  return await eventually(`${name}'s status`, async () => {
    const set = await admin.get<{ status?: { replicas?: number; observedGeneration?: number } }>(
      resourcePath('apps/v1', 'replicasets', { namespace, name }),
    );
    const { items } = await admin.list<Pod>(resourcePath('v1', 'pods', { namespace }), {
      labelSelector: `app=${name}`,
    });
    return set.status?.replicas === items.length && items.length >= 5 ? items : undefined;
  });
}

/** Events are sent a moment later than what they report, and not after their process has ended. */
async function leadersReported(...messages: readonly string[]): Promise<void> {
  await eventually(`events: ${messages.join(', ')}`, async () => {
    const { items } = await admin.list<{ reason?: string; message?: string }>(
      resourcePath('v1', 'events', { namespace: 'kube-system' }),
    );
    const found = new Set(items.flatMap(({ reason, message }) => (reason === 'LeaderElection' ? [message] : [])));
    return messages.every((message) => found.has(message)) ? true : undefined;
  });
}

/** A quota with a wrong count, which the server itself leaves as it was written. */
async function miscountedQuota(): Promise<string> {
  const name = 'few';
  const spec = { hard: { pods: '50', secrets: '4' } };
  await admin.create(resourcePath('v1', 'resourcequotas', { namespace }), {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name },
    spec,
  });
  await countsBecome(name, { pods: '0', secrets: '0' });
  const path = resourcePath('v1', 'resourcequotas', { namespace, name, subresource: 'status' });
  await admin.patch(path, { status: { ...spec, used: { pods: '7', secrets: '3' } } }, 'merge');
  await countsBecome(name, { pods: '7', secrets: '3' });
  return name;
}
const countsBecome = (name: string, used: Readonly<Record<string, string>>) =>
  eventually(`the quota to count ${JSON.stringify(used)}`, async () => {
    const quota = await admin.get<{ status?: { used?: Readonly<Record<string, string>> } }>(
      resourcePath('v1', 'resourcequotas', { namespace, name }),
    );
    return sameJson(quota.status?.used, used) ? true : undefined;
  });

it('one control plane works, and the other one takes over when it ends', async () => {
  const quota = await miscountedQuota();
  const stopFirst = await cluster.startControlPlane([], { ...FIGURES, identity: 'first' });
  await leadersBecome('first');
  await countsBecome(quota, { pods: '0', secrets: '0' });
  await cluster.startControlPlane([], { ...FIGURES, identity: 'second' });
  expect(await replicaSet('one')).toHaveLength(5);
  expect(await leaders()).toMatchObject({ 'kube-scheduler': 'first' });
  await leadersReported('first became leader');
  await stopFirst();
  await leadersBecome('second');
  expect(await replicaSet('two')).toHaveLength(5);
  await leadersReported('first became leader', 'second became leader');
});
