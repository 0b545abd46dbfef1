// The pod source that watches an API server for the pods bound to this node. It only passes on what the reflector has;
// pods without a uid or namespace (which no server sends) never get past its types.

import { type ListWatcher, Reflector } from '../../client/reflector.ts';
import type { Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { PodSource } from '../ports/api.ts';

export interface ApiPodSourceOptions {
  readonly client: ListWatcher;
  readonly nodeName: string;
  readonly clock: Clock;
  /** Called once when the watch fails, and once when it works again (`undefined`). */
  readonly onError?: (message: string | undefined) => void;
  /** 0 ≤ x < 1, spreads waits; Math.random by default. */
  readonly random?: () => number;
}

/** managedFields are a large part of an object and of no use on a node. */
function withoutManagedFields(pod: Pod): Pod {
  delete pod.metadata.managedFields;
  return pod;
}

export function createApiPodSource(options: ApiPodSourceOptions): PodSource {
  const stopped = new AbortController();
  let failing = false;
  return {
    name: 'api',
    start(listener) {
      const reflector = new Reflector<Pod>({
        client: options.client,
        path: '/api/v1/pods',
        query: { fieldSelector: `spec.nodeName=${options.nodeName}` },
        clock: options.clock,
        ...(options.random === undefined ? {} : { random: options.random }),
        transform: withoutManagedFields,
        onFailure: (error) => {
          if (!failing) options.onError?.(`Failed to watch Pods: ${errorMessage(error)}`);
          failing = true;
        },
        onRecovery: () => {
          failing = false;
          options.onError?.(undefined);
        },
      });
      reflector.store.onChange(() => {
        listener(new Map(reflector.store.list().map((pod) => [pod.metadata.uid, pod])));
      });
      void reflector.run(stopped.signal);
    },
    stop() {
      stopped.abort();
    },
  };
}
