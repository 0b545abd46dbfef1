// A selector that matches 5,000 pods: what each controller that selects pods writes of them, what one change among them costs, and that
// the time grows as their number does.

import { expect, it } from 'vitest';
import type { EndpointSlice, Endpoints, Pod } from '../../../../client/types.ts';
import { DisruptionController } from '../../../../controlplane/controllers/disruption/disruption.ts';
import { EndpointsController } from '../../../../controlplane/controllers/endpoints/endpoints.ts';
import { EndpointSliceController } from '../../../../controlplane/controllers/endpointslice/endpointslice.ts';
import { ReplicaSetController } from '../../../../controlplane/controllers/replicaset/replicaset.ts';
import type { PodDisruptionBudget, ReplicaSet } from '../../../../controlplane/controllers/shared/objects.ts';
import { policyTable } from '../../../../netpol/table.ts';
import { settle } from '../../../support/virtual-clock.ts';
import { makeCluster, makePod, makePolicy } from '../../netpol/cases.ts';
import { environment, meta } from '../environment.ts';
import { makeService, webPod, zoneNode } from './endpoints-cases.ts';

const MANY = 5000;
const SET = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'uid-web', controller: true };
const address = (index: number): string => `10.1.${index >> 8}.${index & 255}`;

const pluralOf = (path: string): string | undefined => /\/demo\/(\w+)/.exec(path)?.[1];

function ownedPod(index: number, ready = true): Pod {
  const pod = webPod(index, { ready, ips: [address(index)] });
  return { ...pod, metadata: { ...pod.metadata, ownerReferences: [SET] } };
}

/** A Service, a ReplicaSet and a budget that select all of `count` pods, with a server that stores what is written. */
async function selecting(count: number) {
  const env = environment();
  const { client, informers } = env;
  client.onWrite = ({ verb, path, body }) => {
    if (verb === 'delete') return body;
    const object = body as EndpointSlice & Endpoints;
    const plural = pluralOf(path);
    const name = object.metadata.name ?? `slice-${client.writes.length}`;
    const made = { ...object, metadata: { ...object.metadata, ...meta(name), namespace: 'demo' } };
    if (plural === 'endpointslices') informers.endpointSlices.upsert(made);
    if (plural === 'endpoints') informers.endpoints.upsert(made);
    return made;
  };
  const set: ReplicaSet = {
    metadata: { ...meta('web'), namespace: 'demo', generation: 1 },
    spec: { replicas: count, selector: { matchLabels: { app: 'web' } } },
  };
  const budget: PodDisruptionBudget = {
    metadata: { ...meta('guard'), namespace: 'demo', generation: 1 },
    spec: { selector: { matchLabels: { app: 'web' } }, maxUnavailable: '1%' },
  };
  client.objects.set('/apis/apps/v1/namespaces/demo/replicasets/web', set);
  env.run(new EndpointSliceController(env.context, informers));
  env.run(new EndpointsController(env.context, informers));
  env.run(new ReplicaSetController(env.context, informers));
  env.run(new DisruptionController(env.context, informers));
  informers.nodes.replace([zoneNode('n1')]);
  informers.replicaSets.replace([set]);
  informers.endpoints.replace([]);
  informers.endpointSlices.replace([]);
  informers.pods.replace(Array.from({ length: count }, (_, index) => ownedPod(index)));
  informers.podDisruptionBudgets.replace([budget]);
  informers.services.upsert(makeService());
  const written = (plural: string) => client.writes.filter(({ path }) => pluralOf(path) === plural);
  await settle();
  await env.clock.advance(2_000);
  return { ...env, written };
}

it('makes 50 slices, Endpoints that are cut short, and counts of all; a change of one is one slice', async () => {
  const { client, clock, events, informers, written } = await selecting(MANY);
  const slices = written('endpointslices').map(({ body }) => (body as EndpointSlice).endpoints?.length);
  expect(slices).toEqual(Array.from({ length: MANY / 100 }, () => 100));
  const [endpoints, ...more] = written('endpoints');
  expect(more).toEqual([]);
  if (endpoints === undefined) throw new Error('no Endpoints were written');
  const { metadata, subsets } = endpoints.body as Endpoints;
  expect(metadata.annotations).toMatchObject({ 'endpoints.kubernetes.io/over-capacity': 'truncated' });
  expect(subsets?.map(({ addresses }) => addresses?.length)).toEqual([1000]);
  const counts = { replicas: MANY, fullyLabeledReplicas: MANY, readyReplicas: MANY, availableReplicas: MANY };
  expect(written('replicasets').at(-1)?.body).toMatchObject({ status: counts });
  expect(written('poddisruptionbudgets').at(-1)?.body).toMatchObject({
    status: { expectedPods: MANY, currentHealthy: MANY, desiredHealthy: 4950, disruptionsAllowed: 50 },
  });
  expect(written('pods')).toEqual([]);
  expect(events).toEqual([]);
  client.writes.length = 0;
  informers.pods.upsert(ownedPod(4321, false));
  await clock.advance(2_000);
  expect(written('endpointslices')).toHaveLength(1);
  expect(written('poddisruptionbudgets').at(-1)?.body).toMatchObject({ status: { currentHealthy: MANY - 1 } });
  expect(written('replicasets').at(-1)?.body).toMatchObject({ status: { readyReplicas: MANY - 1 } });
});

it('takes processor time that grows as the number of pods does', async () => {
  const spent = async (work: () => unknown): Promise<number> => {
    // Of this thread alone: the others collect the garbage of tests before.
    const before = process.threadCpuUsage();
    await work();
    const { user, system } = process.threadCpuUsage(before);
    return user + system;
  };
  const policies = [makePolicy({ ingress: [{ from: [{ podSelector: { matchLabels: { pod: 'a' } } }] }] })];
  const clusterOf = (count: number) =>
    makeCluster(policies, {
      pods: Array.from({ length: count }, (_, index) => makePod('x', 'a', { ip: address(index) })),
    });
  const works: readonly (readonly [string, number, (count: number) => unknown])[] = [
    ['controllers', 2000, selecting],
    ['network policy', MANY, (count) => policyTable('here', clusterOf(count))],
  ];
  for (const [what, many, work] of works) {
    await work(many);
    let few = 0;
    for (let times = 0; times < 8; times++) few += await spent(() => work(many / 8));
    // Where it grew as the square of the number, it would be 8 times as long.
    expect((await spent(() => work(many))) / few, what).toBeLessThan(4);
  }
});
