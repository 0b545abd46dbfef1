// A lab of the benchmark's, which is taken down also when the benchmark is killed: what a killed one left (mounts, shims,
// bridges) would slow down every measurement after it. And when it has nothing left to do.

import { mkdir } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { type LabOptions, type RunningLab, startLab } from '../../cli/lab/lab.ts';
import { Tracer } from '../../lib/trace.ts';
import { unaryCaller } from '../../proto/unary.ts';
import { guardLab } from '../e2e/support/guardian.ts';
import { connectRuntime } from './floor.ts';

export async function startBenchLab(options: LabOptions & { readonly root: string }): Promise<RunningLab> {
  await mkdir(options.root, { recursive: true });
  const guardian = await guardLab(options.root);
  const lab = await startLab({ images: 'build', ...options }).catch(async (error: unknown) => {
    await guardian.dismiss();
    throw error;
  });
  return {
    paths: lab.paths,
    state: lab.state,
    client: lab.client,
    pid: (name) => lab.pid(name),
    halt: (name) => lab.halt(name),
    resume: (name) => lab.resume(name),
    stop: async () => {
      const problems = await lab.stop();
      await guardian.dismiss();
      return problems;
    },
  };
}

const LOOK_MS = 20;

/**
 * Waits until the lab's runtime has no sandbox. A pod's object goes before its sandboxes do: the next to be measured would
 * have their removal beside it.
 */
export async function runtimeIdle(lab: RunningLab): Promise<void> {
  const client = connectRuntime(lab.paths.containerd.socket);
  const call = unaryCaller(new Tracer(), 'cri');
  try {
    while ((await call(client, 'ListPodSandbox', {})).items.length > 0) await setTimeout(LOOK_MS);
  } finally {
    client.close();
  }
}
