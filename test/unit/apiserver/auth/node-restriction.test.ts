// The cases of kube-apiserver's NodeRestriction admission test but for pods, and what is stricter here. "n" is the node that writes.

import { describe, expect, it } from 'vitest';
import { isNodeSettable } from '../../../../apiserver/auth/node-labels.ts';
import type { NodeWrite } from '../../../../apiserver/auth/node-restriction.ts';
import type { KubeObject } from '../../../../apiserver/kinds/resource.ts';
import { type Case, lookup, mynode, OWNER, table, UNEXPECTED, verdict, write } from './node-restriction-cases.ts';
import { nodeUser, thing, user } from './support.ts';

describe('NodeRestriction of the Node', () => {
  const node = (labels: object = {}, spec: object = {}, more: object = {}): KubeObject =>
    thing('nodes', { name: 'mynode', uid: 'mynode-uid', labels: { ...labels }, ...more }, { spec });
  const create = (object: KubeObject): NodeWrite => write('create', 'nodes/mynode', { object });
  const update = (object: KubeObject, old: KubeObject, subresource = ''): NodeWrite =>
    write('update', `nodes/mynode/${subresource}`, { object, old });
  const valued = (keys: readonly string[], value: string): object =>
    Object.fromEntries(keys.map((key) => [key, value]));
  const free = [
    ...['foo', 'example.com/foo', 'kubernetes.io/hostname', 'kubernetes.io/os', 'kubernetes.io/arch'],
    ...['beta.kubernetes.io/os', 'beta.kubernetes.io/arch', 'beta.kubernetes.io/instance-type'],
    ...['failure-domain.beta.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/region'],
    ...['topology.kubernetes.io/zone', 'topology.kubernetes.io/region', 'node.kubernetes.io/instance-type'],
    ...[
      'kubelet.kubernetes.io/foo',
      'foo.kubelet.kubernetes.io/foo',
      'node.kubernetes.io/foo',
      'foo.node.kubernetes.io/foo',
    ],
    ...['mykubernetes.io/foo', 'k8s.io.example.com/foo', 'kubernetes.io'],
  ];
  const fixed = [
    ...['foo.node-restriction.kubernetes.io/foo', 'node-restriction.kubernetes.io/foo'],
    ...['other.k8s.io/foo', 'other.kubernetes.io/foo'],
  ];
  const others = [
    ...['node-role.kubernetes.io/control-plane', 'kubernetes.io/role', 'k8s.io/foo', 'kubernetes.io/foo'],
    ...[
      'topology.kubernetes.io/foo',
      'foo.topology.kubernetes.io/zone',
      'x.node-restriction.kubernetes.io/kubernetes.io/hostname',
    ],
  ];
  for (const label of free) it(`may set ${label}`, () => expect(isNodeSettable(label)).toBe(true));
  for (const label of [...fixed, ...others])
    it(`may not set ${label}`, () => expect(isNodeSettable(label)).toBe(false));

  const [freeA, freeB, fixedA, fixedB] = [valued(free, 'a'), valued(free, 'b'), valued(fixed, 'a'), valued(fixed, 'b')];
  const all = { ...freeA, ...fixedA };
  const configSource = (name: string) => ({ configSource: { configMap: { name, namespace: 'bar' } } });
  const taints = (value: string) => ({ taints: [{ key: 'mykey', value, effect: 'NoSchedule' }] });
  const named = fixed.join(', ');
  const owners = { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'y' }] };
  const CONFIG = 'is not allowed to update configSource to a new non-nil configSource';
  const TAINTS = 'node "mynode" is not allowed to modify taints';
  const OWNERS = 'node "mynode" is not allowed to modify ownerReferences';
  table([
    ['its creation', create(node()), undefined],
    ['its creation with taints', create(node({}, taints('A'))), undefined],
    ['its creation with labels', create(node(freeA)), undefined],
    [
      'its creation with labels of others',
      create(node(all)),
      `node "mynode" is not allowed to set the following labels: ${named}`,
    ],
    [
      'its creation with a configSource',
      create(node({}, configSource('foo'))),
      'is not allowed to create pods with a non-nil configSource',
    ],
    ['its creation with an owner', create(node({}, {}, owners)), OWNERS],
    ['an update', update(node(), node()), undefined],
    ['an update of its status', update(node(), node(), 'status'), undefined],
    ['its deletion', write('delete', 'nodes/mynode'), undefined],
    ['a first configSource', update(node({}, configSource('foo')), node()), CONFIG],
    ['another configSource', update(node({}, configSource('qux')), node({}, configSource('foo'))), CONFIG],
    ['the same configSource', update(node({}, configSource('foo')), node({}, configSource('foo'))), undefined],
    ['a configSource less', update(node(), node({}, configSource('foo'))), undefined],
    ['the same taints', update(node({}, taints('A')), node({}, taints('A'))), undefined],
    ['an empty list of taints for none', update(node({}, { taints: [] }), node()), undefined],
    ['a taint more', update(node({}, taints('A')), node()), TAINTS],
    ['a taint less', update(node(), node({}, taints('A'))), TAINTS],
    ['another taint', update(node({}, taints('A')), node({}, taints('B'))), TAINTS],
    ['another taint through its status', update(node({}, taints('A')), node({}, taints('B')), 'status'), TAINTS],
    ['a first owner', update(node({}, {}, owners), node()), OWNERS],
    ['an owner less', update(node(), node({}, {}, owners)), OWNERS],
    ['the same owner', update(node({}, {}, owners), node({}, {}, owners)), undefined],
    ['labels more', update(node(freeA), node()), undefined],
    ['labels less', update(node(), node(freeA)), undefined],
    ['other values of labels', update(node(freeB), node(freeA)), undefined],
    ['the same labels, whatever they are', update(node(all), node(all)), undefined],
    ['its labels beside those of others', update(node(all), node(fixedA)), undefined],
    ['its labels less beside those of others', update(node(fixedA), node(all)), undefined],
    ['labels of others more', update(node(fixedA), node()), `is not allowed to modify labels: ${named}`],
    ['labels of others less', update(node(), node(fixedA)), `is not allowed to modify labels: ${named}`],
    ['other values of them', update(node(fixedB), node(fixedA)), `is not allowed to modify labels: ${named}`],
    [
      'them through its status',
      update(node(fixedB), node(fixedA), 'status'),
      `is not allowed to modify labels: ${named}`,
    ],
    ...(['create', 'update', 'delete'] as const).map(
      (operation): Case => [
        `${operation} of another’s`,
        write(operation, 'nodes/othernode', { object: node() }),
        'node "mynode" is not allowed to modify node "othernode"',
      ],
    ),
    [
      'an update of another’s status',
      write('update', 'nodes/othernode/status', { object: node(), old: node() }),
      'is not allowed to modify node',
    ],
  ]);
});

describe('NodeRestriction of tokens', () => {
  const token = (name: string, uid = 'pod-uid', audiences: string[] = ['foo'], more: object = {}): NodeWrite =>
    write('create', 'serviceaccounts/mysa/token', {
      object: { spec: { audiences, boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid, ...more } } },
    });
  const missing = (audience: string): string =>
    `serviceaccounts "mysa" is forbidden: audience "${audience}" not found in pod spec volume, system:node:mynode is not authorized to request tokens for this audience`;
  table([
    [
      'an unbound one',
      write('create', 'serviceaccounts/mysa/token', { object: { spec: { audiences: ['foo'] } } }),
      'not bound to a pod',
    ],
    ['one without a spec', write('create', 'serviceaccounts/mysa/token', { object: {} }), 'not bound to a pod'],
    ['one bound to a secret', token('mysapod', 'pod-uid', ['foo'], { kind: 'Secret' }), 'not bound to a pod'],
    ['one bound to the Node', token('mynode', 'mynode-uid', ['foo'], { kind: 'Node' }), 'not bound to a pod'],
    [
      'one bound to another API’s Pod',
      token('mysapod', 'pod-uid', ['foo'], { apiVersion: 'v2' }),
      'not bound to a pod',
    ],
    ['one bound to a pod without a name', token(''), 'not bound to a pod'],
    ['one bound to a pod that is not there', token('nopod', 'someuid'), 'pods "nopod" not found'],
    ['one bound to a pod without its uid', token('mysapod', ''), 'pod binding without a uid'],
    ['one bound to an earlier pod of that name', token('mysapod', 'earlier'), 'does not match the UID in record'],
    ['one bound to another node’s pod', token('otherpod'), 'pod scheduled on a different node'],
    ['one bound to a pod of no node', token('unboundpod'), 'pod scheduled on a different node'],
    ['the API server’s audience of a projected token', token('mydefaultpod', 'pod-uid', []), undefined],
    ['the audience of a projected token', token('mysapod'), undefined],
    ['two audiences', token('mysapod', 'pod-uid', ['foo', 'bar']), 'node may only request 0 or 1 audiences'],
    ['an audience that no volume asks for', token('mypod'), missing('foo')],
    ['the API server’s where no volume asks for it', token('mysapod', 'pod-uid', []), missing('')],
    ['the audience of an inline CSI volume', token('mycsipod'), undefined],
    ['another audience of it', token('mycsipod', 'pod-uid', ['bar']), missing('bar')],
    [
      'one of a driver that is not there',
      token('mylostcsipod'),
      'error validating audience "foo": csidrivers.storage.k8s.io "lost" not found',
    ],
    ['the audience of a claim’s driver', token('mypvcpod'), undefined],
    ['another audience of it', token('mypvcpod', 'pod-uid', ['bar']), missing('bar')],
    [
      'one of a claim that is not there',
      token('mylostpvcpod'),
      'error validating audience "foo": persistentvolumeclaims "lost" not found',
    ],
    [
      'one of a volume that is not there',
      token('mylostpvpod'),
      'error validating audience "foo": persistentvolumes "lost" not found',
    ],
    ['one of a claim that is not bound', token('myunboundpvcpod'), missing('foo')],
    ['the audience of an ephemeral claim’s driver', token('myephemeralpod'), undefined],
    ['another audience of it', token('myephemeralpod', 'pod-uid', ['bar']), missing('bar')],
    ['one that one volume asks for and another cannot tell', token('mypvcandcsipod'), undefined],
    ['a service account itself', write('create', 'serviceaccounts/mysa'), undefined],
  ]);
  it('allows an audience that the server grants to nodes', () => {
    expect(verdict(token('mypod'), lookup, mynode, ['foo'])).toBeUndefined();
    expect(verdict(token('mypod'), lookup, mynode, ['bar'])).toContain('not found in pod spec volume');
  });
});

describe('NodeRestriction of claims', () => {
  const claim = (status: object, more: object = {}, spec: object = {}): KubeObject =>
    thing(
      'persistentvolumeclaims',
      { name: 'c', namespace: 'ns', ...more },
      { spec: { volumeName: 'volume1', ...spec }, status: { phase: 'Bound', ...status } },
    );
  const update = (
    object: KubeObject,
    old = claim({ capacity: { storage: '10G' } }),
    subresource = 'status',
  ): NodeWrite => write('update', `persistentvolumeclaims/c/${subresource}`, { object, old });
  const OTHER = 'is not allowed to update fields other than status.quantity and status.conditions';
  table([
    ['an update of the claim', update(claim({}), claim({}), ''), 'may only update PVC status'],
    ['its creation', write('create', 'persistentvolumeclaims/c', { object: claim({}) }), 'may only update PVC status'],
    ['its deletion', write('delete', 'persistentvolumeclaims/c'), 'may only update PVC status'],
    [
      'the creation of its status',
      write('create', 'persistentvolumeclaims/c/status', { object: claim({}) }),
      UNEXPECTED,
    ],
    ['another capacity', update(claim({ capacity: { storage: '20G' } })), undefined],
    [
      'other conditions',
      update(claim({ conditions: [{ type: 'FileSystemResizePending', status: 'True' }] })),
      undefined,
    ],
    ['other allocated resources', update(claim({ allocatedResources: { storage: '15G' } })), undefined],
    [
      'another state of resizing',
      update(claim({ allocatedResourceStatuses: { storage: 'NodeResizeInfeasible' } })),
      undefined,
    ],
    ['another or no resourceVersion', update(claim({}, { resourceVersion: '7' })), undefined],
    ['another phase', update(claim({ phase: 'Lost' })), OTHER],
    ['a label', update(claim({}, { labels: { a: 'b' } })), OTHER],
    ['a finalizer', update(claim({}, { finalizers: ['a/b'] })), OTHER],
    ['an owner', update(claim({}, { ownerReferences: [OWNER] })), OTHER],
    ['another volume', update(claim({}, {}, { volumeName: 'other' })), OTHER],
  ]);
});

describe('NodeRestriction of leases, CSINodes and resource slices', () => {
  const lease = { namespace: 'kube-node-lease' };
  const everything = ['create', 'update', 'delete'] as const;
  const SAME = 'with the same name as the requesting node';
  table(
    everything.flatMap((operation): Case[] => [
      [`${operation} of its lease`, write(operation, 'leases.coordination.k8s.io/mynode', lease), undefined],
      [`${operation} of another’s lease`, write(operation, 'leases.coordination.k8s.io/foo', lease), SAME],
      [
        `${operation} of a lease elsewhere`,
        write(operation, 'leases.coordination.k8s.io/mynode'),
        'can only access leases in the "kube-node-lease" system namespace',
      ],
      [`${operation} of its CSINode`, write(operation, 'csinodes.storage.k8s.io/mynode'), undefined],
      [`${operation} of another’s CSINode`, write(operation, 'csinodes.storage.k8s.io/foo'), SAME],
    ]),
  );
  const slice = (nodeName?: string) => ({ object: { spec: nodeName === undefined ? {} : { nodeName } } });
  const CREATE = 'can only create ResourceSlice with the same NodeName as the requesting node';
  const DELETE = 'can only delete ResourceSlice with the same NodeName as the requesting node';
  const SLICES = 'resourceslices.resource.k8s.io';
  table([
    ['the creation of its slice', write('create', `${SLICES}/mine`, slice('mynode')), undefined],
    ['the creation of another’s slice', write('create', `${SLICES}/mine`, slice('othernode')), CREATE],
    ['the creation of nobody’s slice', write('create', `${SLICES}/mine`, slice()), CREATE],
    ['an update of a slice', write('update', `${SLICES}/mine`, slice('othernode')), undefined],
    ['the deletion of its slice', write('delete', `${SLICES}/mine`), undefined],
    ['the deletion of another’s slice', write('delete', `${SLICES}/theirs`), DELETE],
  ]);
});

describe('NodeRestriction', () => {
  table(
    (['create', 'update', 'delete'] as const).map((operation) => [
      `${operation} of what it has no rule for`,
      write(operation, 'configmaps/mycm', { object: {} }),
      undefined,
    ]),
  );
  it('lets everybody else through', () => {
    const bob = user('bob');
    for (const operation of ['create', 'update', 'delete'] as const) {
      expect(verdict(write(operation, 'pods/unboundpod', { object: {} }), lookup, bob)).toBeUndefined();
      expect(verdict(write(operation, 'nodes/mynode', { object: {} }), lookup, bob)).toBeUndefined();
    }
  });
  it('lets nothing through from a node without a name', () => {
    expect(verdict(write('create', 'events/e', { object: {} }), lookup, nodeUser(''))).toContain(
      'could not determine node from user "system:node:"',
    );
  });
});
