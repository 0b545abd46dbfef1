// One pod after another: the floor, a lab, and a lab whose agent runs without tricks, in turns.

import type { RunningLab } from '../../cli/lab/lab.ts';
import { execOk } from '../../lib/exec.ts';
import type { Floor } from './floor.ts';
import { bareTemplate, type FloorTemplate } from './floor-requests.ts';
import { runtimeIdle } from './lab.ts';
import type { BenchPods } from './pods.ts';
import type { Row } from './report.ts';
import { anotherRound, turnsOf } from './turns.ts';

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

export async function measureStarts(sides: Sides, limits: Limits): Promise<readonly Row[]> {
  const { floor, template, lab, plainLab, pods, plainPods, say } = sides;
  const bare = bareTemplate(template);
  const times: Record<'bare' | 'floor' | 'floorRemove' | 'start' | 'exit' | 'restart' | 'remove' | 'plain', number[]> =
    { bare: [], floor: [], floorRemove: [], start: [], exit: [], restart: [], remove: [], plain: [] };
  const turns = [
    async () => {
      const least = await floor.start(bare);
      await floor.remove(least);
      const same = await floor.start(template);
      return { bare: least.durationMs, floor: same.durationMs, floorRemove: await floor.remove(same) };
    },
    async (name: string) => {
      const start = await pods.create(name);
      const pid = await pidOf(lab, await pods.containerId(name));
      const began = performance.now();
      const exit = await pods.exit(name, () => process.kill(pid, 'SIGKILL'));
      await pods.restarted(name);
      const restart = performance.now() - began;
      const remove = await pods.delete(name);
      await runtimeIdle(lab);
      return { start, exit, restart, remove };
    },
    async (name: string) => {
      const plain = await plainPods.create(name);
      await plainPods.delete(name);
      await runtimeIdle(plainLab);
      return { plain };
    },
  ];
  for (let round = 0; anotherRound(round, limits, performance.now()); round++) {
    let found: Partial<Record<keyof typeof times, number>> = {};
    for (const turn of turnsOf(turns, round)) found = { ...found, ...(await turn(`run-${round}`)) };
    if (round === 0) continue;
    for (const [key, samples] of Object.entries(times)) samples.push(Reflect.get(found, key));
    say(
      `start ${round}: ${Object.entries(found)
        .map(([key, ms]) => `${key} ${ms.toFixed(0)}`)
        .join(', ')} ms`,
    );
  }
  return [
    { name: 'the same three calls for a bare pod: no seccomp, DNS or mounts', samples: times.bare, floor: times.floor },
    { name: 'floor: RunPodSandbox + CreateContainer + StartContainer', samples: times.floor },
    { name: 'nodelet: pod created → Running seen', samples: times.start, floor: times.floor, ratioLimit: 1.15 },
    { name: 'no tricks: pod created → Running seen', samples: times.plain, floor: times.floor },
    { name: 'nodelet: container exit → status seen', samples: times.exit, limitMs: 20 },
    { name: 'nodelet: container exit → restarted container seen', samples: times.restart },
    { name: 'floor: StopContainer + StopPodSandbox + RemovePodSandbox', samples: times.floorRemove },
    { name: 'nodelet: delete → gone', samples: times.remove, floor: times.floorRemove, ratioLimit: 1.15 },
  ];
}
