// Where the Corefile comes from: a ConfigMap that is watched, or a file that is read again and again.

import { readFile } from 'node:fs/promises';
import type { ApiClient } from '../client/api.ts';
import { resourcePath } from '../client/paths.ts';
import { Reflector } from '../client/reflector.ts';
import type { ConfigMap } from '../client/types.ts';
import { sleepUnlessAborted } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { repeat } from '../lib/retry.ts';

const KEY = 'Corefile';
/** Of a server block without `reload`: CoreDNS's usual one, without effect but to look. ms */
const USUAL_MS = 30_000;

export interface ReloadTimes {
  readonly intervalMs: number;
  readonly jitterMs: number;
}

/** Calls `onText` with the Corefile, and again with each other one, until the signal aborts. */
export type CorefileSource = (onText: (text: string) => Promise<void>, signal: AbortSignal) => Promise<void>;

/** `reload`: of the Corefile that is at work. `random`: 0 ≤ x < 1. */
export function fileSource(
  path: string,
  {
    clock,
    random,
    reload,
    onFailure,
  }: {
    readonly clock: Clock;
    readonly random: () => number;
    readonly reload: () => ReloadTimes | undefined;
    readonly onFailure: (error: unknown) => void;
  },
): CorefileSource {
  return async (onText, signal) => {
    let last = await readFile(path, 'utf8');
    await onText(last);
    const look = async (): Promise<number> => {
      const { intervalMs = USUAL_MS, jitterMs = 0 } = reload() ?? {};
      await sleepUnlessAborted(clock, intervalMs + (2 * random() - 1) * jitterMs, signal);
      if (signal.aborted) return 0;
      try {
        const text = await readFile(path, 'utf8');
        if (text !== last) await onText(text);
        last = text;
      } catch (error) {
        onFailure(error);
      }
      return 0;
    };
    await repeat(look, { clock, everyMs: 0, signal });
  };
}

/** `onMissing`: there is no such ConfigMap, or none with a Corefile; the one before stays at work. */
export function configMapSource(
  client: ApiClient,
  {
    namespace,
    name,
    clock,
    onMissing,
    onFailure,
    onRecovery,
  }: {
    readonly namespace: string;
    readonly name: string;
    readonly clock: Clock;
    readonly onMissing: () => void;
    readonly onFailure: (error: unknown, retryMs: number) => void;
    readonly onRecovery: () => void;
  },
): CorefileSource {
  return async (onText, signal) => {
    const path = resourcePath('v1', 'configmaps', { namespace });
    const query = { fieldSelector: `metadata.name=${name}` };
    const reflector = new Reflector<ConfigMap>({ client, path, query, clock, onFailure, onRecovery });
    let last: string | undefined;
    let applied: Promise<void> = Promise.resolve();
    const take = (): void => {
      const text = reflector.store.get(`${namespace}/${name}`)?.data?.[KEY];
      if (text === undefined) onMissing();
      else if (text !== last) {
        last = text;
        applied = onText(text);
      }
    };
    reflector.store.onChange(take);
    await reflector.run(signal);
    await applied;
  };
}
