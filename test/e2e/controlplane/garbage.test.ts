// The garbage collector over all kinds, custom ones too, with stock kubectl against an API server and the control plane.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../../../client/api.ts';
import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { ApiObject } from '../../../client/types.ts';
import { type Kubectl, kubectlFor } from '../kubectl/support.ts';
import { kubectls } from '../support/kubectls.ts';
import { Cluster, eventually } from './cluster.ts';

const [kubectlProgram] = (await kubectls()).filter(({ full }) => full).slice(-1);
const CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets', singular: 'widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

let cluster: Cluster;
let admin: ApiClient;
let kubectl: Kubectl;
const namespace = 'garbage';
const configMaps = resourcePath('v1', 'configmaps', { namespace });
const widgets = resourcePath('example.com/v1', 'widgets', { namespace });

beforeAll(async () => {
  cluster = await Cluster.start();
  admin = await cluster.client();
  await cluster.startControlPlane();
  const home = join(cluster.root, namespace);
  await mkdir(home);
  if (kubectlProgram === undefined) throw new Error('no kubectl');
  kubectl = kubectlFor(kubectlProgram.command, cluster.kubeconfig, home);
  await kubectl.ok('create', 'namespace', namespace);
  await kubectl.ok('config', 'set-context', '--current', `--namespace=${namespace}`);
  await admin.create(resourcePath('apiextensions.k8s.io/v1', 'customresourcedefinitions'), CRD);
  await kubectl.ok('wait', '--for=condition=Established', 'crd/widgets.example.com', '--timeout=240s');
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

/** Undefined once it is gone. */
async function read(path: string): Promise<ApiObject | undefined> {
  try {
    return await admin.get<ApiObject>(path);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
const isGone = (path: string) =>
  eventually(`${path} to go`, async () => ((await read(path)) === undefined ? true : undefined));

/** A widget that owns a ConfigMap, which owns a widget of its own: "<name>", "<name>-map", "<name>-leaf". */
async function tree(name: string): Promise<readonly string[]> {
  const widget = await admin.create<ApiObject>(widgets, widgetOf(name));
  const map = await admin.create<ApiObject>(configMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `${name}-map`, ownerReferences: [referenceTo(widget)] },
  });
  await admin.create(widgets, widgetOf(`${name}-leaf`, referenceTo(map)));
  return [`${widgets}/${name}`, `${configMaps}/${name}-map`, `${widgets}/${name}-leaf`];
}

function widgetOf(name: string, ...ownerReferences: object[]): object {
  return { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name, ownerReferences } };
}

function referenceTo({ apiVersion, kind, metadata: { name, uid } }: ApiObject): object {
  return { apiVersion, kind, name, uid, blockOwnerDeletion: true };
}

describe('objects of custom and other kinds', () => {
  it('go after their owner, whatever it is', async () => {
    const [, map = '', leaf = ''] = await tree('background');
    await kubectl.ok('delete', 'widget', 'background');
    await isGone(map);
    await isGone(leaf);
  });

  it('go before their owner in the foreground', async () => {
    const paths = await tree('foreground');
    const held = { metadata: { finalizers: ['example.com/hold'] } };
    const [owner = '', map = '', leaf = ''] = paths;
    await admin.patch(leaf, held, 'merge');
    await kubectl.ok('delete', 'widget', 'foreground', '--cascade=foreground', '--wait=false');
    await eventually('the leaf to be deleted', async () => (await read(leaf))?.metadata.deletionTimestamp);
    expect((await read(owner))?.metadata.finalizers).toEqual(['foregroundDeletion']);
    expect((await read(map))?.metadata.finalizers).toEqual(['foregroundDeletion']);
    await admin.patch(leaf, { metadata: { finalizers: null } }, 'merge');
    for (const path of paths) await isGone(path);
  });

  it('stay without their owner as orphans', async () => {
    const [owner = '', map = '', leaf = ''] = await tree('orphan');
    await kubectl.ok('delete', 'widget', 'orphan', '--cascade=orphan');
    await isGone(owner);
    expect((await read(map))?.metadata.ownerReferences ?? []).toEqual([]);
    expect((await read(leaf))?.metadata.ownerReferences).toHaveLength(1);
  });

  it('stay while one owner is there, and lose the one that is gone', async () => {
    const one = await admin.create<ApiObject>(widgets, widgetOf('one'));
    const two = await admin.create<ApiObject>(widgets, widgetOf('two'));
    await admin.create(widgets, widgetOf('both', referenceTo(one), referenceTo(two)));
    await kubectl.ok('delete', 'widget', 'one');
    const left = await eventually('one reference', async () => {
      const references = (await read(`${widgets}/both`))?.metadata.ownerReferences ?? [];
      return references.length === 1 ? references : undefined;
    });
    expect(left[0]?.uid).toBe(two.metadata.uid);
  });

  it('go when their owner never was', async () => {
    const reference = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      name: 'never',
      uid: '4f5f3c9e-0000-4000-8000-000000000000',
    };
    await admin.create(widgets, widgetOf('of-nothing', reference));
    await isGone(`${widgets}/of-nothing`);
  });

  it('stay when the owner is of a kind that the server does not have', async () => {
    const unknown = {
      apiVersion: 'example.org/v1',
      kind: 'Nothing',
      name: 'x',
      uid: '4f5f3c9e-0000-4000-8000-000000000001',
    };
    await admin.create(widgets, widgetOf('of-unknown', unknown));
    // Keys are worked off in order: once this object is gone, the collector has decided on the other one.
    const never = { apiVersion: 'v1', kind: 'Secret', name: 'never', uid: '4f5f3c9e-0000-4000-8000-000000000002' };
    await admin.create(widgets, widgetOf('after', never));
    await isGone(`${widgets}/after`);
    expect((await read(`${widgets}/of-unknown`))?.metadata.name).toBe('of-unknown');
  });
});
