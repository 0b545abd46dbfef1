// One pod after another: the floor, a lab, and a lab whose agent runs without tricks, in turns.

import type { RunningLab } from '../../cli/lab/lab.ts';
import { execOk } from '../../lib/exec.ts';
import type { Floor } from './floor.ts';
import { bareTemplate, type FloorTemplate } from './floor-requests.ts';
import { runtimeIdle } from './lab.ts';
import type { BenchPods } from './pods.ts';
import { machineQuiet } from './quiet.ts';
import type { Row } from './report.ts';
import { anotherRound, Rounds, roundText, turnsOf } from './turns.ts';

export interface Sides {
  readonly floor: Floor;
  readonly template: FloorTemplate;
  readonly lab: RunningLab;
  readonly plainLab: RunningLab;
  readonly pods: BenchPods;
  /** Those of the agent without tricks. */
  readonly plainPods: BenchPods;
  readonly say: (line: string) => void;
}

export interface Limits {
  readonly least: number;
  readonly most: number;
  /** performance.now(). */
  readonly until: number;
}

/** The pid of a container's first process on this machine. */
async function pidOf(lab: RunningLab, containerId: string): Promise<number> {
  const list = await execOk('ctr', ['--address', lab.paths.containerd.socket, '-n', 'k8s.io', 'task', 'ls']);
  const line = list.split('\n').find((candidate) => candidate.startsWith(containerId));
  const pid = Number(line?.split(/\s+/)[1]);
  if (!Number.isInteger(pid)) throw new Error(`containerd has no task ${containerId}`);
  return pid;
}

type Name = 'bare' | 'floor' | 'floorRemove' | 'start' | 'exit' | 'restart' | 'remove' | 'plain';
type Turn = (round: number) => Promise<Partial<Record<Name, number>>>;

/** The goals compare the floor and the lab; what else there is to know takes part in every fourth round. */
const MORE_EVERY = 4;

export async function measureStarts(sides: Sides, limits: Limits): Promise<readonly Row[]> {
  const { floor, template, lab, plainLab, pods, plainPods, say } = sides;
  const bare = bareTemplate(template);
  const compared: readonly Turn[] = [
    async () => {
      const made = await floor.start(template);
      await machineQuiet();
      return { floor: made.durationMs, floorRemove: await floor.remove(made) };
    },
    async (round) => {
      const start = await pods.create(`run-${round}`);
      await machineQuiet();
      const remove = await pods.delete(`run-${round}`);
      await runtimeIdle(lab);
      return { start, remove };
    },
  ];
  const more: readonly Turn[] = [
    async () => {
      const made = await floor.start(bare);
      await floor.remove(made);
      return { bare: made.durationMs };
    },
    async (round) => {
      const name = `exit-${round}`;
      await pods.create(name);
      const pid = await pidOf(lab, await pods.containerId(name));
      await machineQuiet();
      const began = performance.now();
      const exit = await pods.exit(name, () => process.kill(pid, 'SIGKILL'));
      await pods.restarted(name);
      const restart = performance.now() - began;
      await pods.delete(name);
      await runtimeIdle(lab);
      return { exit, restart };
    },
    async (round) => {
      const plain = await plainPods.create(`run-${round}`);
      await plainPods.delete(`run-${round}`);
      await runtimeIdle(plainLab);
      return { plain };
    },
  ];
  const rounds = new Rounds<Name>();
  for (let round = 0; anotherRound(round, limits, performance.now()); round++) {
    let found: Partial<Record<Name, number>> = {};
    for (const turn of [...turnsOf(compared, round), ...(round % MORE_EVERY === 0 ? more : [])]) {
      await machineQuiet();
      found = { ...found, ...(await turn(round)) };
    }
    if (round > 0) rounds.add(found);
    say(`start ${round}: ${roundText(found)} ms`);
  }
  return [
    {
      name: 'the same three calls for a bare pod: no seccomp, DNS or mounts',
      ...rounds.pairs('bare', 'floor'),
    },
    { name: 'floor: RunPodSandbox + CreateContainer + StartContainer', samples: rounds.samples('floor') },
    { name: 'nodelet: pod created → Running seen', ...rounds.pairs('start', 'floor'), ratioLimit: 1.15 },
    { name: 'no tricks: pod created → Running seen', ...rounds.pairs('plain', 'floor') },
    { name: 'nodelet: container exit → status seen', samples: rounds.samples('exit'), limitMs: 20 },
    { name: 'nodelet: container exit → restarted container seen', samples: rounds.samples('restart') },
    { name: 'floor: StopContainer + StopPodSandbox + RemovePodSandbox', samples: rounds.samples('floorRemove') },
    { name: 'nodelet: delete → gone', ...rounds.pairs('remove', 'floorRemove'), ratioLimit: 1.15 },
  ];
}
