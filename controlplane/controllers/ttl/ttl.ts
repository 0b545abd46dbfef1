// The controller of node.alpha.kubernetes.io/ttl, the annotation of each node that says for how long its kubelet may use a Secret or
// ConfigMap that it has read: the longer, the more nodes there are.

import { isNotFound } from '../../../client/errors.ts';
import { resourcePath } from '../../../client/paths.ts';
import { WorkQueue } from '../../../client/workqueue.ts';
import type { Informers } from '../../informers.ts';
import type { Controller, ControllerContext } from '../../runtime.ts';

const ANNOTATION = 'node.alpha.kubernetes.io/ttl';

/** Nodes from and to which a step holds; they overlap, so that a node more or less does not change all annotations each time. */
const STEPS = [
  { min: 0, max: 100, seconds: 0 },
  { min: 90, max: 500, seconds: 15 },
  { min: 450, max: 1000, seconds: 30 },
  { min: 900, max: 2000, seconds: 60 },
  { min: 1800, max: Number.POSITIVE_INFINITY, seconds: 300 },
] as const;

/** The step for so many nodes, from the one before. */
export function ttlStep(before: number, nodes: number): number {
  let step = before;
  while (nodes > (STEPS[step]?.max ?? Number.POSITIVE_INFINITY)) step++;
  while (nodes < (STEPS[step]?.min ?? 0)) step--;
  return step;
}

export function ttlSeconds(step: number): number {
  return STEPS[step]?.seconds ?? 0;
}

type Needed = Pick<Informers, 'nodes'>;

/** Keys are those of nodes. */
export class TtlController implements Controller {
  readonly name = 'ttl';
  readonly workers = 5;
  readonly queue: WorkQueue;
  readonly #context: ControllerContext;
  readonly #nodes: Needed['nodes'];
  #step = 0;

  constructor(context: ControllerContext, { nodes }: Needed) {
    this.#context = context;
    this.#nodes = nodes;
    this.queue = new WorkQueue({ clock: context.clock });
    nodes.onChange((changes) => {
      const step = ttlStep(this.#step, nodes.size);
      const concerned = step === this.#step ? changes.map(({ object }) => object) : nodes.list();
      this.#step = step;
      for (const { metadata } of concerned) this.queue.add(metadata.name);
    });
  }

  async sync(name: string): Promise<void> {
    const node = this.#nodes.get(name);
    const ttl = String(ttlSeconds(this.#step));
    if (node === undefined || node.metadata.annotations?.[ANNOTATION] === ttl) return;
    const patch = { metadata: { annotations: { [ANNOTATION]: ttl } } };
    try {
      await this.#context.client.patch(resourcePath('v1', 'nodes', { name }), patch, 'strategic');
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
