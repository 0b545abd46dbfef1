// Waits until the lab is ready, and until its pods are gone, at the API server. Only reads and deletes.

import type { ApiClient } from '../../client/api.ts';
import { isGone, isNotFound, isTransient } from '../../client/errors.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Node, Pod } from '../../client/types.ts';
import { type Clock, elapsedMs, plusMs } from '../../lib/clock.ts';
import { poll } from '../../lib/retry.ts';

const RETRY_MS = 30;

function readiness(node: Node | undefined): { readonly ready: boolean; readonly why: string } {
  if (node === undefined) return { ready: false, why: 'the agent has not registered its node' };
  const condition = node.status?.conditions?.find((each) => each.type === 'Ready');
  if (condition === undefined) return { ready: false, why: 'the node has no Ready condition' };
  return { ready: condition.status === 'True', why: `${condition.reason}: ${condition.message}` };
}

/** Resolves when the node is Ready. Rejects when `timeoutMs` passes, saying why it was not, or when `signal` aborts. */
export async function nodeReady(
  client: ApiClient,
  nodeName: string,
  options: { readonly clock: Clock; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const { clock, timeoutMs, signal } = options;
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  let why = 'the API server does not answer';
  const timer = clock.after(timeoutMs, () => over.abort(new Error(`not Ready after ${timeoutMs / 1000} s: ${why}`)));
  const path = resourcePath('v1', 'nodes');
  const query = { fieldSelector: `metadata.name=${nodeName}` };
  try {
    const look = async (): Promise<boolean> => {
      stop.throwIfAborted();
      try {
        const list = await client.list<Node>(path, query, { signal: stop });
        const first = readiness(list.items[0]);
        if (first.ready) return true;
        why = first.why;
        const from = list.metadata.resourceVersion;
        for await (const event of client.watch<Node>(path, { ...query, resourceVersion: from }, stop)) {
          if (event.type !== 'ADDED' && event.type !== 'MODIFIED') continue;
          const seen = readiness(event.object);
          if (seen.ready) return true;
          why = seen.why;
        }
      } catch (error) {
        stop.throwIfAborted();
        if (!isTransient(error) && !isGone(error)) throw error;
      }
      return false;
    };
    await poll(look, { clock, everyMs: RETRY_MS, signal: stop });
  } finally {
    timer.cancel();
    // Ends a watch that is still open.
    over.abort();
  }
}

export interface DeleteOptions {
  readonly clock: Clock;
  readonly graceSeconds: number;
  readonly timeoutMs: number;
  /** Only pods on these: the others' agents do not run. Default: all. */
  readonly nodes?: ReadonlySet<string>;
}

function isOn({ spec }: Pod, nodes: ReadonlySet<string> | undefined): boolean {
  return nodes === undefined || (spec.nodeName !== undefined && nodes.has(spec.nodeName));
}

/**
 * Deletes every pod, without waiting for finalizers and with at most `graceSeconds` for each to end by itself. Resolves with true when all are gone, with
 * false when some are not after `timeoutMs` or the API server stops answering: they are then taken down without it.
 */
export async function deletePods(client: ApiClient, options: DeleteOptions): Promise<boolean> {
  const { clock, graceSeconds, timeoutMs, nodes } = options;
  const deadline = plusMs(clock.monotonic(), timeoutMs);
  const path = resourcePath('v1', 'pods');
  try {
    const list = await client.list<Pod>(path, {}, { timeoutMs: 3_000 });
    const pods = list.items.filter((pod) => isOn(pod, nodes));
    await Promise.all(
      pods.map(async (pod) => {
        const own = pod.spec.terminationGracePeriodSeconds ?? 30;
        const at = resourcePath('v1', 'pods', { namespace: pod.metadata.namespace, name: pod.metadata.name });
        try {
          // A controller's finalizers: it does not run any more.
          if ((pod.metadata.finalizers ?? []).length > 0) {
            await client.patch(at, { metadata: { finalizers: null } }, 'merge', { timeoutMs: 3_000 });
          }
          await client.delete(at, { gracePeriodSeconds: Math.min(own, graceSeconds), timeoutMs: 3_000 });
        } catch (error) {
          if (!isNotFound(error)) throw error;
        }
      }),
    );
    return pods.length === 0 || (await podsGone(client, clock, elapsedMs(clock.monotonic(), deadline), nodes));
  } catch (error) {
    if (isTransient(error)) return false;
    throw error;
  }
}

async function podsGone(
  client: ApiClient,
  clock: Clock,
  timeoutMs: number,
  nodes: ReadonlySet<string> | undefined,
): Promise<boolean> {
  const stop = new AbortController();
  const timer = clock.after(timeoutMs, () => stop.abort());
  const path = resourcePath('v1', 'pods');
  try {
    const list = await client.list<Pod>(path, {}, { timeoutMs: 3_000 });
    const left = new Set(list.items.filter((pod) => isOn(pod, nodes)).map((pod) => pod.metadata.uid));
    if (left.size === 0) return true;
    const query = { resourceVersion: list.metadata.resourceVersion };
    for await (const event of client.watch<Pod>(path, query, stop.signal)) {
      if (event.type === 'DELETED') left.delete(event.object.metadata.uid);
      if (left.size === 0) return true;
    }
    return false;
  } finally {
    timer.cancel();
    stop.abort();
  }
}
