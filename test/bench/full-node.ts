// The benchmark's figure for a node full of large ConfigMaps and Secrets: the agent's largest resident memory while so many
// pods start that each mount one, and again while an agent that was killed takes them up. From a lab of its own.

import { resourcePath } from '../../client/paths.ts';
import { startBenchLab } from './lab.ts';
import { BenchPods, type PodTemplate } from './pods.ts';
import { peakResidentMiB, residentMiB } from './processes.ts';

export interface FullNode {
  readonly pods: number;
  /** Megabytes (10^6 bytes) of all contents. */
  readonly megabytes: number;
  /** The larger of both agents' peaks. */
  readonly peakRssMiB: number;
  /** Of the second agent, a while after it has taken everything up. */
  readonly idleRssMiB: number;
}

export interface FullNodeOptions {
  readonly root: string;
  readonly pods: number;
  readonly template: PodTemplate;
  readonly say: (line: string) => void;
}

const NAMESPACE = 'full';
const OBJECT_BYTES = 1_000_000;
const AT_ONCE = 20;
const SETTLED_MS = 15_000;

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function measureFullNode({ root, pods: count, template, say }: FullNodeOptions): Promise<FullNode> {
  const lab = await startBenchLab({ root, say });
  const running = async (other?: number): Promise<number> => {
    for (;;) {
      const pid = lab.pid('agent');
      if (pid !== undefined && pid !== other) return pid;
      await wait(20);
    }
  };
  try {
    await lab.client.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE },
    });
    const pods = new BenchPods(lab.client, NAMESPACE, template);
    await pods.start();
    const first = await running();
    const left = Array.from({ length: count }, (_, index) => index);
    const worker = async (): Promise<void> => {
      for (let index = left.shift(); index !== undefined; index = left.shift()) {
        const [kind, plural] = index % 2 === 0 ? ['ConfigMap', 'configmaps'] : ['Secret', 'secrets'];
        const name = `full-${index}`;
        const content = `${index} `.padEnd(OBJECT_BYTES, 'x');
        await lab.client.create(resourcePath('v1', plural, { namespace: NAMESPACE }), {
          apiVersion: 'v1',
          kind,
          metadata: { name, namespace: NAMESPACE },
          ...(kind === 'Secret' ? { stringData: { content } } : { data: { content } }),
        });
        await pods.create(name, [
          { name: 'content', ...(kind === 'Secret' ? { secret: { secretName: name } } : { configMap: { name } }) },
        ]);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    await wait(SETTLED_MS);
    const before = peakResidentMiB(first);
    process.kill(first, 'SIGKILL');
    const second = await running(first);
    await wait(SETTLED_MS);
    await pods.stop();
    const after = peakResidentMiB(second);
    if (lab.pid('agent') !== second) throw new Error('the agent did not survive the pods of the agent before it');
    say(
      `${count} pods with large objects: peak RSS ${before.toFixed(0)} MiB, of the next agent ${after.toFixed(0)} MiB`,
    );
    return {
      pods: count,
      megabytes: (count * OBJECT_BYTES) / 1e6,
      peakRssMiB: Math.max(before, after),
      idleRssMiB: residentMiB(second),
    };
  } finally {
    for (const problem of await lab.stop()) say(problem);
  }
}
