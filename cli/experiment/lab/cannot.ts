// What of an experiment a lab cannot do, by name, before anything is started: a step without effect would make the result
// wrong. Pure.

import { timedPullMs } from '../../../labs/registry/timed.ts';
import { POD_ADDRESSES } from '../../lab/load-balancers.ts';
import type { Manifest, ProcessName, WorldSpec } from '../model.ts';
import { processProblems } from '../processes.ts';
import type { WorldStep } from '../world.ts';
import { faultProblem } from './faults.ts';
import type { LabAgent } from './lab-agent.ts';
import { silentServers } from './silent-servers.ts';

/** Names of the images that a lab has (labs/images). */
const LAB_IMAGES: readonly string[] = ['nginx:stable', 'busybox:stable', 'busybox:latest', 'nginx:latest'];

const shortImage = (image: string): string => image.replace(/^docker\.io\/(library\/)?/, '');

function worldProblems(spec: WorldSpec): string[] {
  const problems: string[] = [];
  if ((spec.nodes ?? 1) !== 1)
    problems.push(`world.nodes: a lab has one node, not ${spec.nodes}; so has the simulated world`);
  for (const image of spec.images ?? []) {
    if (!LAB_IMAGES.includes(shortImage(image)))
      problems.push(`world.images: a lab has ${LAB_IMAGES.join(', ')}, not ${image}`);
  }
  if (spec.cni !== undefined)
    problems.push('world.cni: a lab keeps its own chain, whose bridge and addresses it can take away: use --on sim');
  const { cpu, memory, disk, addresses, imagefs } = spec.capacity ?? {};
  if (imagefs !== undefined)
    problems.push("world.capacity.imagefs: a lab's images are where this machine has them: use --on sim");
  if (addresses !== undefined && addresses > POD_ADDRESSES)
    problems.push(`world.capacity.addresses: a lab has ${POD_ADDRESSES} at most, not ${addresses}: use --on sim`);
  for (const [name, value] of [
    ['cpu', cpu],
    ['memory', memory],
    ['disk', disk],
  ] as const) {
    if (value !== undefined)
      problems.push(
        `world.capacity.${name}: a lab has this machine's; reserve some with kubelet.systemReserved, or use --on sim`,
      );
  }
  if (spec.kubelet?.['staticPodPath'] !== undefined)
    problems.push(
      'world.kubelet.staticPodPath: a lab has its own: give the pod the annotation kubernetes.io/config.source: file',
    );
  return problems;
}

/** Images that take a known time to be pulled are in a lab's registry too; "sim/pull-20s-one:1" without its tag is a repository. */
export function timedImages({ spec }: Manifest): readonly string[] {
  return simImages(spec).filter((image) => timedPullMs(image.replace(/:[^/]*$/, '')) !== undefined);
}

function simImages(spec: unknown): readonly string[] {
  return JSON.stringify(spec ?? {}).match(/(?<="image":")sim\/[^"]+/g) ?? [];
}

/** Images that the simulator makes up: their pull would fail for ever. Others may come from a registry. */
function imageProblems(manifest: Manifest): string[] {
  const { kind, metadata, spec } = manifest;
  const timed = timedImages(manifest);
  return simImages(spec)
    .filter((image) => !timed.includes(image))
    .map((image) => `${kind} ${metadata.name}: ${image} is an image of the simulator alone: use --on sim`);
}

function stepProblem(step: WorldStep, spec: WorldSpec, agent: LabAgent): readonly string[] {
  if ('clock' in step) return ["clock: a lab does not change this machine's clock: use --on sim"];
  if ('apply' in step) return step.apply.flatMap(imageProblems);
  if ('shutdown' in step) return ['shutdown: a lab does not shut this machine down: use --on sim'];
  if ('fault' in step) {
    const { on, rules } = step.fault;
    if (on === 'csi' && spec.csi !== true) return ['fault on csi: the world has no CSI driver: set world.csi'];
    if (on === 'cni' && agent.kind === 'foreign')
      return [
        'fault on cni: with another kubelet containerd runs the plugins, and no wrapper is between: --agent nodelet',
      ];
    return rules.flatMap((rule) => {
      const problem = faultProblem(on, rule);
      return problem === undefined ? [] : [`fault on ${on}: ${problem}`];
    });
  }
  if ('use' in step && step.use.pod === undefined)
    return ["use without pod: a lab does not fill this machine's memory or disk: name a pod, or use --on sim"];
  return processProblems(step, (name) => missingProcess(name, spec));
}

function missingProcess(name: ProcessName, spec: WorldSpec): string | undefined {
  if (name === 'scheduler' || name === 'controllers')
    return 'in a lab, scheduler and controllers are one process: use --on sim';
  if (name === 'csi-driver' && spec.csi !== true) return 'the world has no CSI driver: set world.csi';
  return undefined;
}

/** One line each; the same line once. */
export function labCannot(spec: WorldSpec, steps: readonly WorldStep[], agent: LabAgent): readonly string[] {
  const silent = spec.dns === true ? [] : silentServers(steps);
  const problems = [
    ...worldProblems(spec),
    ...silent.map((address) => `the name server ${address}: it is silent in a world with a name server: set world.dns`),
    ...steps.flatMap((step) => stepProblem(step, spec, agent)),
  ];
  return [...new Set(problems)];
}
