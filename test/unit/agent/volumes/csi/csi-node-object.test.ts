import { describe, expect, test } from 'vitest';
import {
  CsiNodeObject,
  driverEntry,
  nodePatch,
  nodePatchWithout,
  withDriver,
  withoutDriver,
} from '../../../../../agent/volumes/csi/csi-node-object.ts';
import type { Node } from '../../../../../client/types.ts';
import { apiError, FakeClient } from '../../../../support/fake-client.ts';
import { settle, VirtualClock } from '../../../../support/virtual-clock.ts';

const info = { driver: 'd.csi', nodeId: 'i-1', maxVolumes: 0, topology: { 't/zone': 'z' } };
const node = (labels: Record<string, string> = {}, annotations: Record<string, string> = {}): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n1', uid: 'node-uid', resourceVersion: '1', labels, annotations },
});
const ID = 'csi.volume.kubernetes.io/nodeid';

describe('a driver’s entry in CSINode', () => {
  test('has the node’s id and the keys of the topology, and no count where there is no limit', () => {
    expect(driverEntry(info)).toEqual({ name: 'd.csi', nodeID: 'i-1', topologyKeys: ['t/zone'] });
  });
  test('has the count where there is one, at most what the field holds', () => {
    expect(driverEntry({ ...info, maxVolumes: 9 }).allocatable).toEqual({ count: 9 });
    expect(driverEntry({ ...info, maxVolumes: 2 ** 40 }).allocatable).toEqual({ count: 2 ** 31 - 1 });
  });
  test('takes the place of the driver’s old one, leaves others alone, and is written only when it is new', () => {
    const other = { name: 'o', nodeID: 'x', topologyKeys: [] };
    const entry = driverEntry(info);
    expect(withDriver([other], entry)).toEqual([other, entry]);
    expect(withDriver([entry, other], { ...entry, nodeID: 'i-2' })).toEqual([{ ...entry, nodeID: 'i-2' }, other]);
    expect(withDriver([other, entry], { ...entry })).toBeUndefined();
    expect(withoutDriver([other, entry], 'd.csi')).toEqual([other]);
    expect(withoutDriver([other], 'd.csi')).toBeUndefined();
  });
});

describe('the Node', () => {
  test('gets the id beside those of other drivers, and the topology’s labels', () => {
    expect(nodePatch(node({}, { [ID]: '{"o":"x"}' }), info)).toEqual({
      metadata: { labels: { 't/zone': 'z' }, annotations: { [ID]: '{"o":"x","d.csi":"i-1"}' } },
    });
  });
  test('is left alone when it says so already', () => {
    expect(nodePatch(node({ 't/zone': 'z' }, { [ID]: '{"d.csi":"i-1"}' }), info)).toBeUndefined();
  });
  test('that is labelled to be elsewhere refuses the driver', () => {
    expect(() => nodePatch(node({ 't/zone': 'y' }), info)).toThrow(
      'detected topology value collision: driver reported "t/zone":"z" but existing label is "t/zone":"y"',
    );
  });
  test('with an invalid annotation gets a good one', () => {
    expect(nodePatch(node({ 't/zone': 'z' }, { [ID]: '{broken' }), info)).toEqual({
      metadata: { annotations: { [ID]: '{"d.csi":"i-1"}' } },
    });
  });
  test('loses the id, not the labels, with the driver; and the annotation with the last one', () => {
    expect(nodePatchWithout(node({}, { [ID]: '{"o":"x","d.csi":"i-1"}' }), 'd.csi')).toEqual({
      metadata: { annotations: { [ID]: '{"o":"x"}' } },
    });
    expect(nodePatchWithout(node({}, { [ID]: '{"d.csi":"i-1"}' }), 'd.csi')).toEqual({
      metadata: { annotations: { [ID]: null } },
    });
    expect(nodePatchWithout(node(), 'd.csi')).toBeUndefined();
  });
});

describe('CSINode is updated', () => {
  const NODE = '/api/v1/nodes/n1';
  const CSINODE = '/apis/storage.k8s.io/v1/csinodes/n1';
  function setUp() {
    const client = new FakeClient();
    const clock = new VirtualClock();
    return { client, clock, object: new CsiNodeObject({ nodeName: 'n1', client, clock }) };
  }

  test('no longer once the agent stops, whatever the API server did not answer', async () => {
    const client = new FakeClient();
    const clock = new VirtualClock();
    const stopping = new AbortController();
    const object = new CsiNodeObject({ nodeName: 'n1', client, clock, signal: stopping.signal });
    const trying = object.ensure();
    trying.catch(() => undefined);
    await settle();
    stopping.abort(new Error('the agent stops'));
    await expect(trying).rejects.toThrow('the agent stops');
  });

  test('by a CSINode that goes with its Node', async () => {
    const { client, object } = setUp();
    client.objects.set(NODE, node());
    await object.announce(info);
    expect(client.writes.map(({ verb, path }) => `${verb} ${path}`)).toEqual([
      `patch ${NODE}`,
      'create /apis/storage.k8s.io/v1/csinodes',
    ]);
    expect(client.writes[1]?.body).toMatchObject({
      metadata: { name: 'n1', ownerReferences: [{ kind: 'Node', name: 'n1', uid: 'node-uid' }] },
      spec: { drivers: [{ name: 'd.csi', nodeID: 'i-1' }] },
    });
  });

  test('again when the object has changed meanwhile, or the Node is not registered yet', async () => {
    const { client, clock, object } = setUp();
    client.objects.set(CSINODE, { metadata: { name: 'n1', resourceVersion: '1' }, spec: { drivers: [] } });
    const notified = object.announce(info);
    await clock.advance(200);
    expect(client.writes).toEqual([]);
    client.objects.set(NODE, node({ 't/zone': 'z' }, { [ID]: '{"d.csi":"i-1"}' }));
    const conflicts = [apiError(409, 'Conflict')];
    client.onWrite = (write) => {
      const conflict = conflicts.shift();
      if (conflict !== undefined) throw conflict;
      return write.body;
    };
    await clock.advance(10_000);
    await notified;
    expect(client.writes.map(({ verb, path }) => `${verb} ${path}`)).toEqual([
      `replace ${CSINODE}`,
      `replace ${CSINODE}`,
    ]);
  });

  test('nothing, and the driver is refused, when that cannot help', async () => {
    const { client, object } = setUp();
    client.objects.set(NODE, node({ 't/zone': 'elsewhere' }));
    await expect(object.announce(info)).rejects.toThrow('detected topology value collision');
    client.objects.set(NODE, node());
    client.failures.push(undefined, apiError(403, 'Forbidden'));
    await expect(object.announce(info)).rejects.toThrow('Forbidden');
  });

  test('when the driver has gone', async () => {
    const { client, object } = setUp();
    client.objects.set(NODE, node({}, { [ID]: '{"d.csi":"i-1"}' }));
    client.objects.set(CSINODE, { metadata: { name: 'n1' }, spec: { drivers: [driverEntry(info)] } });
    await object.withdraw('d.csi');
    expect(client.writes).toMatchObject([
      { verb: 'replace', path: CSINODE, body: { spec: { drivers: [] } } },
      { verb: 'patch', path: NODE, body: { metadata: { annotations: { [ID]: null } } } },
    ]);
  });
});
