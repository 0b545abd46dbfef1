// The same pod by the same calls on containerd and on Docker: cgroups, logs, network, and what a tap recorded of both.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type CriClient, isRuntimeError } from '../../../agent/runtime/cri-client.ts';
import { readFileIfExists } from '../../../lib/atomic.ts';
import { methodsOf, recordingFinding, removeSandboxes, type Sandbox, sandboxesOf, sandboxFinding } from '../by-hand.ts';
import { type Exercise, type Finding, finding, type Machine } from '../model.ts';
import { dockerCri, dockerOf, removeDocker, startDocker } from './docker.ts';

const TEXT = 'from the container';

/** Of one runtime. */
export interface Side {
  readonly sandboxes: readonly Sandbox[];
  /** Methods in its recording; undefined where there is none. */
  readonly recording: readonly string[] | undefined;
  /** The container's log as CRI has it. */
  readonly log: string | undefined;
}

export interface Facts {
  readonly containerd: Side;
  readonly docker: Side;
  /** The copy of the log that Docker keeps for itself. */
  readonly dockerLog: string | undefined;
  readonly difference: string | undefined;
}

function logFinding(subject: string, log: string | undefined): Finding {
  const line = log?.split('\n')[0] ?? '';
  return finding(
    subject,
    log === undefined ? 'there is none' : line === '' ? 'it is empty' : line,
    new RegExp(`^\\S+Z stdout F ${TEXT}$`).test(line),
    'it is to have the container’s line in the format of CRI',
  );
}

function sideFindings(name: 'containerd' | 'docker', { sandboxes, recording, log }: Side): readonly Finding[] {
  const own = sandboxes.find(({ kubelets }) => !kubelets);
  return [
    sandboxFinding(`sandbox at ${name}`, own),
    recordingFinding(`${name}.crirec`, recording),
    logFinding(`${name}-logs/main.log`, log),
  ];
}

/** Pure. */
export function evaluate({ containerd, docker, dockerLog, difference }: Facts): readonly Finding[] {
  const json = dockerLog?.split('\n')[0] ?? '';
  return [
    ...sideFindings('containerd', containerd),
    ...sideFindings('docker', docker),
    finding(
      'docker-own.log',
      dockerLog === undefined ? 'there is none' : json,
      json.startsWith('{"log":') && json.includes(TEXT),
      'copy Docker’s own log of the container there: its path is in docker inspect',
    ),
    finding(
      'difference.txt',
      difference === undefined ? 'there is none' : `${difference.split('\n').length} lines`,
      difference?.includes('ContainerStatus') === true,
      'compare the two recordings with nodelet tap diff',
    ),
  ];
}

/** A shim that has ended has no sandboxes. */
async function unlessAway<T>(work: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (isRuntimeError(error, 'UNAVAILABLE')) return otherwise;
    throw error;
  }
}

async function withDocker<T>(machine: Machine, work: (cri: CriClient) => Promise<T>): Promise<T> {
  const cri = dockerCri(machine);
  try {
    return await work(cri);
  } finally {
    cri.close();
  }
}

async function collect(machine: Machine): Promise<Facts> {
  const { namespace } = machine;
  const read = (name: string): Promise<string | undefined> => readFileIfExists(join(machine.directory, name));
  const side = async (name: string, sandboxes: readonly Sandbox[]): Promise<Side> => {
    const recording = await read(`${name}.crirec`);
    return {
      sandboxes,
      recording: recording === undefined ? undefined : methodsOf(recording),
      log: await read(`${name}-logs/main.log`),
    };
  };
  const onDocker = await withDocker(machine, (cri) => unlessAway(sandboxesOf(cri, namespace), []));
  return {
    containerd: await side('containerd', await sandboxesOf(machine.cri, namespace)),
    docker: await side('docker', onDocker),
    dockerLog: await read('docker-own.log'),
    difference: await read('difference.txt'),
  };
}

export const twoRuntimes: Exercise = {
  name: 'two-runtimes',
  title: 'One pod on containerd and on Docker',
  lesson:
    'CRI hides which runtime is behind it: pods, cgroups, logs and addresses come out alike, while each keeps images, logs and names in its own way.',
  minutes: 20,
  runtime: 'containerd',
  hints: [
    'Every step builds on the one before, in one shell: `run` and `pid` are functions of it.',
    '`docker/dockerd.log` and `docker/dockershim.log` say what Docker and the shim are doing, `containerd.tap.log` and `docker.tap.log` the taps.',
    'A second `runp` of the same pod is refused: its name is taken. `crictl -r "$DOCKERSHIM" rmp -f "$(cat docker.pod)"` takes it away.',
  ],
  variables: (ground) => {
    const docker = dockerOf(ground);
    return {
      EXERCISE: ground.directory,
      CONTAINERD: `unix://${ground.runtimeSocket}`,
      CONTAINERD_ADDRESS: ground.runtimeSocket,
      DOCKERSHIM: `unix://${docker.shimSocket}`,
      DOCKER_HOST: `unix://${docker.socket}`,
    };
  },
  cgroups: ['two-runtimes'],
  setUp: async (machine) => {
    // As the kubelet does: a runtime makes the file, not its directory.
    for (const name of ['containerd', 'docker']) await mkdir(join(machine.directory, `${name}-logs`));
    await startDocker(machine);
  },
  restore: async (machine) => {
    await removeSandboxes(machine.cri, machine.namespace);
    await withDocker(machine, (cri) => unlessAway(removeSandboxes(cri, machine.namespace), undefined));
  },
  remove: removeDocker,
  check: async (machine) => evaluate(await collect(machine)),
};
