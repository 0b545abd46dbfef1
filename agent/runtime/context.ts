// What every part of the adapter works with, and the one way in which a call that changes a sandbox or a container is
// made: the cache learns that it begins, and what came of it.

import type { Clock } from '../../lib/clock.ts';
import type { BeganCall, DoneCall } from './cache/inputs.ts';
import type { RuntimeCache } from './cache/runtime-cache.ts';
import type { CriClient } from './cri-client.ts';
import type { ExitTracker } from './events/exit-tracker.ts';
import type { PodFiles } from './files.ts';
import type { NodeSettings } from './options.ts';
import type { StatusReader } from './status-reader.ts';

interface ContextParts {
  readonly client: CriClient;
  readonly cache: RuntimeCache;
  readonly statuses: StatusReader;
  readonly exits: ExitTracker;
  readonly files: PodFiles;
  readonly node: NodeSettings;
  readonly clock: Clock;
  /** Of ordinary calls, ms. */
  readonly deadlineMs: number;
}

export interface RuntimeContext extends ContextParts {
  /** Runs a call about `id` and passes its outcome to the cache. Rejects as the body does. */
  change<T>(call: DoneCall, id: string, body: () => Promise<T>): Promise<T>;
}

/** Calls whose event may come before the response. */
const BEGAN: ReadonlySet<DoneCall> = new Set<BeganCall>([
  'StartContainer',
  'StopContainer',
  'RemoveContainer',
  'StopPodSandbox',
  'RemovePodSandbox',
]);

function isBegan(call: DoneCall): call is BeganCall {
  return BEGAN.has(call);
}

export function runtimeContext(parts: ContextParts): RuntimeContext {
  const { cache } = parts;
  return {
    ...parts,
    async change(call, id, body) {
      const pod = cache.get(id)?.pod;
      if (isBegan(call)) cache.apply({ kind: 'callBegan', call, id });
      let result: Awaited<ReturnType<typeof body>>;
      try {
        result = await body();
      } catch (error) {
        if (pod !== undefined) cache.apply({ kind: 'callFailed', call, pod, id });
        throw error;
      }
      cache.apply({ kind: 'callDone', call, id });
      return result;
    },
  };
}
