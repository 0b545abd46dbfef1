// Static pods: a manifest in the kubelet's directory, and the mirror pod that the API shows of it.

import { readdir, readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import type { Pod } from '../../../client/types.ts';
import { isErrno } from '../../../lib/errors.ts';
import { type Exercise, type Finding, finding, type Machine } from '../model.ts';
import { findPod, listPods, readyFinding } from '../pods.ts';

const MIRROR = 'kubernetes.io/config.mirror';

export interface Facts {
  readonly nodeName: string;
  readonly staticPodPath: string | undefined;
  /** Names in that directory. */
  readonly manifests: readonly string[];
  readonly pods: readonly Pod[];
  /** Of a container at the runtime that runs for the static pod. */
  readonly container: string | undefined;
}

/** Pure. */
export function evaluate({ nodeName, staticPodPath, manifests, pods, container }: Facts): readonly Finding[] {
  const name = `static-${nodeName}`;
  const mirror = findPod(pods, name);
  const isMirror = new Map(Object.entries(mirror?.metadata.annotations ?? {})).has(MIRROR);
  return [
    finding(
      'staticPodPath in the agent’s configuration',
      staticPodPath ?? 'not set',
      staticPodPath !== undefined,
      'a directory for manifests',
    ),
    finding('manifests there', manifests.join(', ') || 'none', manifests.length > 0, 'the manifest static.yaml'),
    finding(
      'container at the runtime',
      container ?? 'none runs',
      container !== undefined,
      'the kubelet is to run it: has it been restarted?',
    ),
    finding(
      `annotation ${MIRROR} of pod ${name}`,
      mirror === undefined ? 'there is no such pod' : isMirror ? 'there' : 'not there',
      isMirror,
      'the kubelet is to show the pod in the API by a mirror',
    ),
    readyFinding(pods, name),
  ];
}

async function namesIn(directory: string | undefined): Promise<readonly string[]> {
  try {
    return directory === undefined ? [] : await readdir(directory);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

async function collect(machine: Machine): Promise<Facts> {
  const config: { staticPodPath?: string } = parse(await readFile(machine.kubeletConfig, 'utf8'));
  const { containers } = await machine.cri.call('ListContainers', {
    filter: {
      state: { state: 'CONTAINER_RUNNING' },
      label_selector: { 'io.kubernetes.pod.namespace': machine.namespace },
    },
  });
  return {
    nodeName: machine.nodeName,
    staticPodPath: config.staticPodPath,
    manifests: await namesIn(config.staticPodPath),
    pods: await listPods(machine),
    container: containers[0]?.id,
  };
}

export const staticPod: Exercise = {
  name: 'static-pod',
  title: 'Static pods, and their mirrors in the API',
  lesson:
    'A static pod belongs to its file on the node; the API has only a mirror of it, and deleting that changes nothing.',
  minutes: 10,
  changesNode: true,
  hints: [
    'The field is `staticPodPath` in "$KUBELET_CONFIG". A kubelet reads that file only when it starts.',
    'After `restart-agent`, put static.yaml into the directory. The pod appears as "static-$NODE".',
    'The namespace in the manifest has to exist, or there is a container and no mirror.',
  ],
  check: async (machine) => evaluate(await collect(machine)),
};
