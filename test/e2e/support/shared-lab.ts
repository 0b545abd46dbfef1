// A lab that was there before a test file and outlives it: the file has a namespace of its own in it, and has to leave the
// lab, the node and the cluster as they were. For files that neither kill nor reconfigure their lab; others start one of
// their own (lab.ts).

import { readFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, inject } from 'vitest';
import { parse, stringify } from 'yaml';
import { parsePidFile } from '../../../cli/lab/child.ts';
import { LAB_PROCESSES, type LabPaths, type LabProcess, labPaths } from '../../../cli/lab/paths.ts';
import { nodeReady } from '../../../cli/lab/ready.ts';
import { readLabState } from '../../../cli/lab/state.ts';
import { ApiClient } from '../../../client/api.ts';
import { isNotFound } from '../../../client/errors.ts';
import { loadKubeconfig } from '../../../client/kubeconfig.ts';
import { resourcePath } from '../../../client/paths.ts';
import type { Node, Stored } from '../../../client/types.ts';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isErrno } from '../../../lib/errors.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { Tracer } from '../../../lib/trace.ts';
import { deletePods, eventually, nothingLeft, podResources } from '../agent/harness.ts';
import { kubectlOptions, type TestLab } from './lab.ts';
import { CLEAN, type Lease } from './lab-keeper.ts';
import { expectNoLostShims } from './shims.ts';

/** For giving up only. */
const READY_MS = 300_000;
/** For a namespace and what its objects hold on to. */
const LEFT_MS = 300_000;

/** "test/e2e/agent/life.test.ts" → "agent-life". */
function namespaceOf(testPath: string): string {
  return testPath
    .replace(/^.*\/e2e\//, '')
    .replace(/\.test\.ts$/, '')
    .replaceAll('/', '-');
}

interface Leased {
  readonly root: string;
  /** Hands the lab on to the next file; one that is not clean is stopped. */
  release(clean: boolean): Promise<void>;
}

async function takeLab(keeper: string): Promise<Leased> {
  const socket = connect(keeper);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const answer = await new Promise<string>((resolve, reject) => {
    socket.once('error', reject);
    createInterface({ input: socket }).once('line', resolve);
  });
  const lease: Lease = JSON.parse(answer);
  if ('error' in lease) throw new Error(`no lab could be started: ${lease.error}`);
  return {
    root: lease.root,
    release: async (clean) => {
      socket.end(clean ? `${CLEAN}\n` : '');
      await closed;
    },
  };
}

/** Everything of the cluster that belongs to no namespace, one line each, with what a test may change at the Node. */
async function clusterObjects(client: ApiClient, nodeName: string): Promise<readonly string[]> {
  const kinds: readonly (readonly [string, string])[] = [
    ['v1', 'namespaces'],
    ['v1', 'persistentvolumes'],
    ['storage.k8s.io/v1', 'storageclasses'],
    ['storage.k8s.io/v1', 'csidrivers'],
    ['storage.k8s.io/v1', 'volumeattachments'],
    ['node.k8s.io/v1', 'runtimeclasses'],
    ['scheduling.k8s.io/v1', 'priorityclasses'],
    ['certificates.k8s.io/v1beta1', 'clustertrustbundles'],
  ];
  const lists = kinds.map(async ([apiVersion, plural]) => {
    const { items } = await client.list<Stored<object>>(resourcePath(apiVersion, plural));
    return items.map(({ metadata }) => `${plural}/${metadata.name}`);
  });
  const node = await client.get<Node>(resourcePath('v1', 'nodes', { name: nodeName }));
  const { labels = {} } = node.metadata;
  return [
    ...(await Promise.all(lists)).flat(),
    `labels ${JSON.stringify(labels)}`,
    `spec ${JSON.stringify(node.spec)}`,
  ];
}

/** The lab's own kubeconfig, with another namespace as the default one. */
async function writeKubeconfigFor(paths: LabPaths, namespace: string): Promise<string> {
  const config: { contexts: { context: object }[] } = parse(await readFile(paths.kubeconfig, 'utf8'));
  const contexts = config.contexts.map((each) => ({ ...each, context: { ...each.context, namespace } }));
  const path = join(paths.root, `kubeconfig-${namespace}`);
  await writeFileAtomic(path, stringify({ ...config, contexts }), 0o600);
  return path;
}

/** With what its controllers put into it: until then its pods are refused, or wait for the CA with an event. */
export async function makeNamespace(client: ApiClient, namespace: string): Promise<void> {
  await client.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const found = async (plural: string, name: string): Promise<true | undefined> => {
    try {
      await client.get(resourcePath('v1', plural, { namespace, name }));
      return true;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };
  await eventually(`the service account of ${namespace}`, () => found('serviceaccounts', 'default'));
  await eventually(`the CA of ${namespace}`, () => found('configmaps', 'kube-root-ca.crt'));
}

/** Undefined while it is between two starts. */
function pidOf(paths: LabPaths, name: LabProcess): number | undefined {
  try {
    return parsePidFile(readFileSync(paths.pidFile(name), 'utf8'))?.pid;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function pids(paths: LabPaths): readonly string[] {
  return LAB_PROCESSES.map((name) => `${name} ${pidOf(paths, name)}`);
}

/** A lab with a namespace of this file's own. `stop()` rejects when anything of the file is left in it. */
export async function shareLab(): Promise<TestLab> {
  const namespace = namespaceOf(expect.getState().testPath ?? '');
  const leased = await takeLab(inject('labKeeper'));
  const paths = labPaths(leased.root);
  const state = await readLabState(paths);
  if (state === undefined) throw new Error(`the lab under ${leased.root} has no state`);
  const { nodeName } = state;
  const access = await loadKubeconfig(paths.kubeconfig);
  const client = new ApiClient(access, { tracer: new Tracer(), clock: systemClock, userAgent: 'nodelet-test' });
  await nodeReady(client, nodeName, {
    clock: systemClock,
    timeoutMs: READY_MS,
    signal: new AbortController().signal,
  });
  // The node lifecycle controller removes the taint of its start a moment after it is Ready.
  await eventually('the node to be without taints', async () => {
    const { spec } = await client.get<Node>(resourcePath('v1', 'nodes', { name: nodeName }));
    return (spec?.taints ?? []).length === 0 ? true : undefined;
  });
  const clusterBefore = await clusterObjects(client, nodeName);
  await makeNamespace(client, namespace);
  const kubeconfig = await writeKubeconfigFor(paths, namespace);
  const withConfig = (args: readonly string[]): readonly string[] => ['--kubeconfig', kubeconfig, ...args];
  const kubectl = (...args: string[]): Promise<string> => execOk('kubectl', withConfig(args), kubectlOptions());

  const leave = async (): Promise<void> => {
    const { items: pods } = await client.list<Stored<object>>(resourcePath('v1', 'pods', { namespace }));
    for (const { metadata } of pods) {
      await deletePods({ client, namespace }, [metadata.name], { graceSeconds: 1, wait: false }).catch((error) => {
        // It ended by itself.
        if (!isNotFound(error)) throw error;
      });
    }
    await client.delete(resourcePath('v1', 'namespaces', { name: namespace }));
    let left: readonly string[] = [];
    await eventually(
      'the cluster to be as it was',
      async () => {
        const now = await clusterObjects(client, nodeName);
        left = [
          ...now.filter((thing) => !clusterBefore.includes(thing)).map((thing) => `left behind: ${thing}`),
          ...clusterBefore.filter((thing) => !now.includes(thing)).map((thing) => `gone: ${thing}`),
        ];
        return left.length === 0 ? true : undefined;
      },
      LEFT_MS,
    ).catch(() => {
      throw new Error(`the cluster is not as it was before ${namespace}:\n${left.join('\n')}`);
    });
    await nothingLeft(lab, thingsBefore);
    await expectNoLostShims(paths.containerd.socket);
    // Nothing here ends them: one that has another pid has died by itself.
    expect(pids(paths), 'the processes of the lab').toEqual(pidsBefore);
    await rm(kubeconfig);
  };
  const stop = async (): Promise<void> => {
    let clean = false;
    try {
      await leave();
      clean = true;
    } finally {
      client.close();
      await leased.release(clean);
    }
  };
  let stopped: Promise<void> | undefined;
  const stopOnce = (): Promise<void> => {
    stopped ??= stop();
    return stopped;
  };
  const lab: TestLab = {
    root: leased.root,
    namespace,
    kubeconfig,
    paths,
    nodeName,
    client,
    lab: { paths, state, client, pid: (name) => pidOf(paths, name) },
    kubectl,
    tryKubectl: (args, more) => exec('kubectl', withConfig(args), { ...kubectlOptions(), ...more }),
    stop: stopOnce,
  };
  const thingsBefore = await podResources(lab);
  const pidsBefore = pids(paths);
  return lab;
}
