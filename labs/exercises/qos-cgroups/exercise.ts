// The cgroups of the three QoS classes, and the kernel's order of victims.

import { cgroupPath, podName } from '../../../agent/model/cgroup-names.ts';
import type { QOSClass } from '../../../agent/model/pod-resources.ts';
import { formatBytes } from '../../../lib/quantity.ts';
import { cgroupOf, memoryLimitOf } from '../cgroups.ts';
import { type Exercise, type Finding, finding, type Machine } from '../model.ts';
import { findPod, listPods, mainPid, readOfProcess } from '../pods.ts';

const PODS: readonly (readonly [string, QOSClass])[] = [
  ['gold', 'Guaranteed'],
  ['silver', 'Burstable'],
  ['bronze', 'BestEffort'],
];

export interface PodFacts {
  readonly name: string;
  /** Where a pod of the class that it is to have would be, for this pod's uid. */
  readonly expected: string;
  /** Of the container's process, below the hierarchy of the memory controller. */
  readonly cgroup: string | undefined;
  readonly oomScoreAdj: number | undefined;
  readonly memoryLimit: number | 'none' | undefined;
}

function cgroupFinding({ name, cgroup, expected }: PodFacts, qos: QOSClass): Finding {
  return finding(
    `cgroup of ${name}’s process`,
    cgroup ?? 'no process runs',
    cgroup?.includes(`${expected}/`) === true,
    `a ${qos} pod: below ${expected}`,
  );
}

/** `facts`: gold, silver, bronze. Pure. */
export function evaluate(facts: readonly PodFacts[]): readonly Finding[] {
  const scores = facts.map(({ oomScoreAdj }) => oomScoreAdj);
  const [gold = Number.NaN, silver = Number.NaN, bronze = Number.NaN] = scores;
  const limit = facts[0]?.memoryLimit;
  return [
    ...facts.flatMap((each, index) => {
      const qos = PODS[index]?.[1];
      return qos === undefined ? [] : [cgroupFinding(each, qos)];
    }),
    finding(
      'memory limit in the cgroup of gold',
      limit === undefined ? 'no process runs' : limit === 'none' ? 'none' : formatBytes(limit),
      typeof limit === 'number',
      'Guaranteed means limits: the kernel is to have one',
    ),
    finding(
      'oom_score_adj of gold, silver, bronze',
      scores.map((score) => score ?? 'no process').join(', '),
      gold < silver && silver < bronze,
      'the kernel is to choose bronze first, and gold last',
    ),
  ];
}

async function collect(machine: Machine): Promise<readonly PodFacts[]> {
  const pods = await listPods(machine);
  const layout = { root: machine.cgroupRoot, driver: machine.cgroupDriver };
  return Promise.all(
    PODS.map(async ([name, qos]) => {
      const pod = findPod(pods, name);
      const pid = await mainPid(machine, pod);
      const [cgroup, score] = await Promise.all([readOfProcess(pid, 'cgroup'), readOfProcess(pid, 'oom_score_adj')]);
      return {
        name,
        expected: cgroupPath(layout, podName(layout, pod?.metadata.uid ?? '<uid>', qos)),
        cgroup: cgroup === undefined ? undefined : cgroupOf(cgroup, 'memory'),
        oomScoreAdj: score === undefined ? undefined : Number(score),
        memoryLimit: await memoryLimitOf(pid),
      };
    }),
  );
}

export const qosCgroups: Exercise = {
  name: 'qos-cgroups',
  title: 'Three QoS classes and their cgroups',
  lesson:
    'The QoS class follows from requests and limits; it places the pod in the cgroup tree and in the kernel’s order of victims.',
  minutes: 10,
  hints: [
    '`resources: {}` is BestEffort. What has to stand there for the other two classes?',
    'For Guaranteed, limits for CPU and memory are enough: requests are taken from them.',
    'gold: `resources: {limits: {cpu: 100m, memory: 32Mi}}`, silver: `resources: {requests: {memory: 16Mi}}`.',
  ],
  check: async (machine) => evaluate(await collect(machine)),
};
