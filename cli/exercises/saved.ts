// What all pods of a node share, as it was before an exercise that changes it: the CNI configuration, the agent's
// configuration, and of the Node labels, taints and whether it is cordoned. Saved in the exercise's directory; put back at
// its end.

import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { resourcePath } from '../../client/paths.ts';
import type { Node } from '../../client/types.ts';
import type { Machine } from '../../labs/exercises/model.ts';
import { readFileIfExists, writeFileAtomic } from '../../lib/atomic.ts';
import { systemClock } from '../../lib/clock.ts';
import { endProcess } from '../../lib/end-process.ts';
import { poll } from '../../lib/retry.ts';
import { sameJson } from '../../lib/same-json.ts';
import { readPidFile } from '../lab/child.ts';
import type { LabPaths } from '../lab/paths.ts';
import { nodeReady } from '../lab/ready.ts';

/** For giving up only. ms */
const AGENT_MS = 300_000;
/** An agent that does not end by itself (SIGSTOP) is killed. ms */
const STOP_MS = 10_000;
/** The node lifecycle controller's own taints come and go by themselves. */
const OWN_TAINTS = 'node.kubernetes.io/';

type Taints = NonNullable<NonNullable<Node['spec']>['taints']>;

export interface Saved {
  readonly kubeletConfig: string;
  /** Names and contents of the files in the agent's CNI directory. */
  readonly cni: readonly (readonly [string, string])[];
  readonly labels: readonly (readonly [string, string])[];
  readonly taints: Taints;
  readonly unschedulable: boolean;
}

function file(machine: Machine): string {
  return join(machine.directory, '.node-before.json');
}

const nodePath = (machine: Machine): string => resourcePath('v1', 'nodes', { name: machine.nodeName });

async function cniFiles(machine: Machine): Promise<Saved['cni']> {
  const names = (await readdir(machine.cniConfDir)).sort();
  return Promise.all(
    names.map(async (name) => [name, await readFile(join(machine.cniConfDir, name), 'utf8')] as const),
  );
}

export async function saveNode(machine: Machine): Promise<void> {
  const node = await machine.client.get<Node>(nodePath(machine));
  const saved: Saved = {
    kubeletConfig: await readFile(machine.kubeletConfig, 'utf8'),
    cni: await cniFiles(machine),
    labels: Object.entries(node.metadata.labels ?? {}),
    taints: foreignTaints(node),
    unschedulable: node.spec?.unschedulable === true,
  };
  await writeFileAtomic(file(machine), JSON.stringify(saved), 0o600);
}

function foreignTaints(node: Node): Taints {
  return (node.spec?.taints ?? []).filter(({ key }) => !key.startsWith(OWN_TAINTS));
}

/** A merge patch that makes the Node what it was, or undefined where it is. Labels that others have changed since go back, too. Pure. */
export function nodePatch(node: Node, saved: Pick<Saved, 'labels' | 'taints' | 'unschedulable'>): object | undefined {
  const before = new Map(saved.labels);
  const now = new Map(Object.entries(node.metadata.labels ?? {}));
  const labels = [...new Set([...before.keys(), ...now.keys()])]
    .filter((key) => before.get(key) !== now.get(key))
    .map((key) => [key, before.get(key) ?? null] as const);
  const own = (node.spec?.taints ?? []).filter(({ key }) => key.startsWith(OWN_TAINTS));
  const sameTaints = sameJson(foreignTaints(node), saved.taints);
  const sameCordon = (node.spec?.unschedulable === true) === saved.unschedulable;
  if (labels.length === 0 && sameTaints && sameCordon) return undefined;
  return {
    metadata: { labels: Object.fromEntries(labels) },
    spec: {
      ...(sameTaints ? {} : { taints: [...own, ...saved.taints] }),
      ...(sameCordon ? {} : { unschedulable: saved.unschedulable ? true : null }),
    },
  };
}

/** Ends the agent of the lab, whose supervisor starts it again, and resolves when another one runs. */
export async function restartAgent(paths: LabPaths): Promise<void> {
  const pidFile = paths.pidFile('agent');
  const old = await readPidFile(pidFile);
  if (old !== undefined) await endProcess(old, systemClock, STOP_MS);
  const started = async (): Promise<boolean> => {
    const now = await readPidFile(pidFile);
    return now !== undefined && (now.pid !== old?.pid || now.startTime !== old.startTime);
  };
  if (!(await poll(started, { clock: systemClock, everyMs: 50, limitMs: AGENT_MS })))
    throw new Error(`no agent has started again after ${AGENT_MS / 1000} s: is "nodelet up" still running?`);
}

/** Puts back what differs, and waits until the node is Ready. Nothing where nothing was saved. Idempotent. */
export async function restoreNode(machine: Machine, paths: LabPaths): Promise<void> {
  const text = await readFileIfExists(file(machine));
  if (text === undefined) return;
  const saved: Saved = JSON.parse(text);
  const now = new Map(await cniFiles(machine));
  for (const [name, content] of saved.cni) {
    if (now.get(name) !== content) await writeFileAtomic(join(machine.cniConfDir, name), content);
    now.delete(name);
  }
  for (const name of now.keys()) await rm(join(machine.cniConfDir, name));
  const patch = nodePatch(await machine.client.get<Node>(nodePath(machine)), saved);
  if (patch !== undefined) await machine.client.patch(nodePath(machine), patch, 'merge');
  if ((await readFile(machine.kubeletConfig, 'utf8')) !== saved.kubeletConfig) {
    await writeFileAtomic(machine.kubeletConfig, saved.kubeletConfig);
    await restartAgent(paths);
  }
  const signal = new AbortController().signal;
  await nodeReady(machine.client, machine.nodeName, { clock: systemClock, timeoutMs: AGENT_MS, signal });
}
