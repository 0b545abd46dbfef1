// Watches this node's own Node object: labels, taints and extended resources that other components set count in admission
// at once.

import { type ListWatcher, Reflector } from '../../client/reflector.ts';
import type { Node } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { PodSource } from '../ports/api.ts';

export interface NodeWatchOptions {
  readonly client: ListWatcher;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly onChange: () => void;
  /** Called once when the watch fails, and once when it works again (`undefined`). */
  readonly onError: (message: string | undefined) => void;
  /** 0 ≤ x < 1, spreads waits; Math.random by default. */
  readonly random?: () => number;
}

export interface NodeWatch {
  /** Undefined while there is none, or before the first list. */
  node(): Node | undefined;
  start(): void;
  stop(): void;
  /** A source that starts once the Node has been listed: pods are not admitted before. */
  startAfterSync(source: PodSource): PodSource;
}

/** The list of images is most of a Node, and the agent has it already. */
function withoutImages(node: Node): Node {
  delete node.metadata.managedFields;
  delete node.status?.images;
  return node;
}

export function createNodeWatch(options: NodeWatchOptions): NodeWatch {
  const { client, nodeName, clock, onChange, onError } = options;
  const stopped = new AbortController();
  let failing = false;
  const reflector = new Reflector<Node>({
    client,
    path: '/api/v1/nodes',
    query: { fieldSelector: `metadata.name=${nodeName}` },
    clock,
    ...(options.random === undefined ? {} : { random: options.random }),
    transform: withoutImages,
    onFailure: (error) => {
      if (!failing) onError(`Failed to watch Node ${nodeName}: ${errorMessage(error)}`);
      failing = true;
    },
    onRecovery: () => {
      failing = false;
      onError(undefined);
    },
  });
  reflector.store.onChange(onChange);
  return {
    node: () => reflector.store.get(nodeName),
    start: () => void reflector.run(stopped.signal),
    stop: () => stopped.abort(),
    startAfterSync: (source) => ({
      name: source.name,
      start: (listener) => {
        void reflector.store.whenSynced().then(() => {
          if (!stopped.signal.aborted) source.start(listener);
        });
      },
      stop: () => source.stop(),
    }),
  };
}
