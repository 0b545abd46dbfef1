import { describe, expect, it } from 'vitest';
import { Store } from '../../../../../client/store.ts';
import type { Node } from '../../../../../client/types.ts';
import { CapacityPublisher } from '../../../../../controlplane/csi/provisioner/capacity.ts';
import { runController } from '../../../../../controlplane/runtime.ts';
import type { CsiStorageCapacity } from '../../../../../controlplane/storage/objects.ts';
import { FakeClient } from '../../../../support/fake-client.ts';
import { FakeDriver } from '../../../../support/fake-csi-driver.ts';
import { makeClass, makeVolume, storageStores } from '../../../../support/storage-objects.ts';
import { settle, VirtualClock } from '../../../../support/virtual-clock.ts';

const KEY = 'topology.test/host';
let version = 1;
const node = (labels: Record<string, string>): Node => ({
  metadata: { name: 'n', uid: 'n', resourceVersion: String(version++), labels },
});
const GiB = 1024 ** 3;

function start(...capabilities: readonly string[]) {
  const clock = new VirtualClock();
  const client = new FakeClient();
  const fake = new FakeDriver(...capabilities);
  const informers = { nodes: new Store<Node>(), ...storageStores() };
  const log = (): void => undefined;
  const context = { client, clock, log, recorder: { event: log } };
  // The cache shows what is written.
  client.onWrite = ({ verb, path, body }) => {
    if (verb === 'create') informers.csiStorageCapacities.upsert(body as CsiStorageCapacity);
    return body ?? path;
  };
  void runController(new CapacityPublisher(fake.driver, context, informers), log, new AbortController().signal);
  informers.storageClasses.replace([makeClass('late', { volumeBindingMode: 'WaitForFirstConsumer' })]);
  const drivers = [{ name: 'csi.test', nodeID: 'n', topologyKeys: [KEY] }];
  const csiNode = { metadata: { name: 'n', uid: 'n', resourceVersion: '1' }, spec: { drivers } };
  return { clock, client, fake, informers, csiNode };
}

describe('the room of a driver', () => {
  it('is published when the node’s label comes after its driver', async () => {
    const { client, fake, informers, csiNode } = start('GET_CAPACITY');
    informers.nodes.replace([node({})]);
    informers.csiNodes.replace([csiNode]);
    await settle();
    expect(fake.calls).toEqual([]);
    fake.answers.push(String(GiB));
    informers.nodes.upsert(node({ [KEY]: 'n' }));
    await settle();
    expect(fake.calls).toEqual([`GetCapacity {"${KEY}":"n"}`]);
    expect(client.writes).toMatchObject([
      {
        verb: 'create',
        path: '/apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities',
        body: { storageClassName: 'late', nodeTopology: { matchLabels: { [KEY]: 'n' } }, capacity: '1Gi' },
      },
    ]);
  });

  it('is asked for again when a volume was made, and once a minute, but not when a node only says that it lives', async () => {
    const { clock, client, fake, informers, csiNode } = start('GET_CAPACITY');
    informers.nodes.replace([node({ [KEY]: 'n' })]);
    informers.csiNodes.replace([csiNode]);
    await settle();
    const calls = fake.calls.length;
    informers.nodes.upsert(node({ [KEY]: 'n' }));
    await settle();
    expect(fake.calls).toHaveLength(calls);
    fake.answers.push(String(3 * GiB), String(2 * GiB));
    informers.persistentVolumes.upsert(makeVolume('pv'));
    await settle();
    await clock.advance(60_000);
    await settle();
    const patches = client.writes.filter(({ verb }) => verb === 'patch').map(({ body }) => body);
    expect(patches).toMatchObject([{ capacity: '3Gi' }, { capacity: '2Gi' }]);
  });

  it('is not published for a driver without GET_CAPACITY', async () => {
    const { client, informers, csiNode } = start();
    informers.nodes.replace([node({ [KEY]: 'n' })]);
    informers.csiNodes.replace([csiNode]);
    await settle();
    expect(client.writes).toEqual([]);
  });
});
