// What happens to processes and machines: containers end, sandboxes die, probes flip, clocks jump, the runtime and the
// agent itself are restarted.

import type { Chooser, Happening } from './chooser.ts';

export function machineEvents(choose: Chooser) {
  const { world, dice } = choose;
  const { runtime, timing } = world;
  const end = (exitCode: number, reason: string): string | undefined => {
    const instance = choose.runningInstance();
    if (instance === undefined) return undefined;
    runtime.end(instance, exitCode, reason);
    return instance.id;
  };
  return {
    exit: () => (dice.chance(0.4) ? end(0, 'Completed') : end(1, 'Error')),
    oom: () => end(137, 'OOMKilled'),
    memoryRunsOut: () => {
      const instance = choose.runningInstance();
      if (instance === undefined) return undefined;
      world.memory.hogs(instance);
      timing.memoryTaken();
      return instance.id;
    },
    sandboxDies: () => {
      const sandbox = choose.liveSandbox();
      if (sandbox === undefined) return undefined;
      runtime.killSandbox(sandbox);
      return sandbox.id;
    },
    probeFlips: () => {
      const instance = choose.runningInstance();
      if (instance?.process === undefined) return undefined;
      const kind = dice.pick(['startup', 'liveness', 'readiness', 'readiness'] as const);
      instance.process.flip(kind);
      if (kind === 'liveness' && !instance.process.well.liveness) timing.mustBeKilled(instance, instance.process);
      return `${instance.id} ${kind} ${instance.process.well[kind]}`;
    },
    nodeEndsPod: () => {
      const pod = choose.livePod();
      const { agent } = world;
      if (pod === undefined || agent === undefined) return undefined;
      const { uid, name } = pod.metadata;
      const end = { reason: 'Evicted', message: 'The node was low on resource: memory. ' };
      timing.podHurried(uid);
      void agent.pods.endPod(uid, dice.chance(0.5) ? { ...end, graceSeconds: 1 } : end);
      return name;
    },
    clockJumps: () => {
      const ms = dice.pick([-3_600_000, -40_000, -900, 1_100, 60_000, 3_600_000]);
      world.clock.jump(ms);
      timing.clockJumped();
      return String(ms);
    },
    imageGoes: () => {
      const name = dice.pick([...runtime.images.held.keys()]);
      if (name === undefined) return undefined;
      runtime.removeUnusedImage(name);
      return name;
    },
    runtimeRestarts: () => {
      const downMs = dice.pick([5, 800, 20_000, 65_000]);
      runtime.restart(downMs);
      return String(downMs);
    },
    agentRestarts: () => {
      if (world.agent === undefined) return undefined;
      const downMs = dice.pick([0, 500, 30_000]);
      world.killAgent(downMs);
      world.clock.after(downMs, () => world.startAgent());
      return String(downMs);
    },
  } satisfies Record<string, Happening>;
}
