// Evidence from a running agent: the newest spans of its trace socket, and the pod's object from the API server. With `follow`,
// from now until the pod is Ready. Reads only.

import { isPodReady } from '../../agent/model/pod-ready.ts';
import { ApiClient } from '../../client/api.ts';
import { isNotFound } from '../../client/errors.ts';
import { loadKubeconfig } from '../../client/kubeconfig.ts';
import { resourcePath } from '../../client/paths.ts';
import type { Pod } from '../../client/types.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { poll } from '../../lib/retry.ts';
import { type Span, Tracer } from '../../lib/trace.ts';
import { noTrace, readTraceHistory } from '../demo/spans.ts';
import type { ObjectName } from '../object-name.ts';
import type { Evidence, ObjectVersion } from './model.ts';
import { EvidenceReader } from './recording.ts';

/** Between two looks for the span of the write that made the pod Ready, ms, and how long it may take. */
const SPAN_POLL_MS = 20;
const SPAN_LIMIT_MS = 5000;

/** The spans that an agent keeps. Rejects with UserError. */
export async function readHistory(socketPath: string): Promise<Evidence> {
  const text = await readTraceHistory(socketPath).catch((error: unknown) => {
    throw new UserError(noTrace(socketPath, error));
  });
  const reader = new EvidenceReader();
  for (const line of text.split('\n')) reader.push(line);
  return reader.finish('nodelet');
}

async function connectApi(kubeconfig: string, clock: Clock): Promise<ApiClient> {
  const access = await loadKubeconfig(kubeconfig);
  return new ApiClient(access, { tracer: new Tracer(), clock, userAgent: 'nodelet-timeline' });
}

/** The object as it is now; a note where it cannot be read: the spans alone are a timeline, too. */
export async function readObject(
  kubeconfig: string,
  { namespace, name }: ObjectName,
): Promise<{ readonly objects: readonly ObjectVersion[]; readonly problems: readonly string[] }> {
  const none = (why: string): { objects: []; problems: string[] } => ({
    objects: [],
    problems: [`without the pod's object: ${why}`],
  });
  let client: ApiClient;
  try {
    client = await connectApi(kubeconfig, systemClock);
  } catch (error) {
    return none(errorMessage(error));
  }
  try {
    const object = await client.get<Pod>(resourcePath('v1', 'pods', { namespace, name }));
    return { objects: [{ at: undefined, object }], problems: [] };
  } catch (error) {
    return none(isNotFound(error) ? 'it is not there any more' : errorMessage(error));
  } finally {
    client.close();
  }
}

/** The node that the pod is bound to; undefined where it is on none, or cannot be read. */
export async function nodeOf(kubeconfig: string, name: ObjectName): Promise<string | undefined> {
  const [version] = (await readObject(kubeconfig, name)).objects;
  return version?.object.spec.nodeName;
}

/** Watches the pod, which need not exist yet, until it is Ready or `signal` aborts; every version with its time. */
async function watchUntilReady(
  client: ApiClient,
  pod: ObjectName,
  onWatching: () => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<ObjectVersion[]> {
  const path = resourcePath('v1', 'pods', { namespace: pod.namespace });
  const query = { fieldSelector: `metadata.name=${pod.name}` };
  const list = await client.list<Pod>(path, query, { signal });
  const versions: ObjectVersion[] = list.items.map((object) => ({ at: undefined, object }));
  const over = new AbortController();
  const from = { ...query, resourceVersion: list.metadata.resourceVersion ?? '' };
  if (versions.some(({ object }) => isPodReady(object))) return versions;
  onWatching();
  for await (const event of client.watch<Pod>(path, from, AbortSignal.any([signal, over.signal]))) {
    if (event.type === 'ERROR')
      throw new UserError(`the watch of the pod ended: ${event.object.message ?? 'no reason'}`);
    if (event.type === 'BOOKMARK') continue;
    versions.push({ at: clock.now(), object: event.object });
    if (event.type !== 'DELETED' && isPodReady(event.object)) break;
  }
  over.abort();
  return versions;
}

/** The write that made `object` what it is. */
const isWriteOf = ({ kind, name, attributes }: Span, object: Pod): boolean =>
  kind === 'api' && name.startsWith('PATCH') && attributes['resourceVersion'] === object.metadata.resourceVersion;

/**
 * Records from now until the pod is Ready or `signal` aborts. `onWatching` is called once no version of it can be missed. Rejects with UserError when it cannot be watched.
 */
export async function followUntilReady(
  socketPath: string,
  kubeconfig: string,
  pod: ObjectName,
  onWatching: () => void,
  signal: AbortSignal,
): Promise<Evidence> {
  // An agent that is not there is found before the wait.
  await readHistory(socketPath);
  const clock = systemClock;
  const client = await connectApi(kubeconfig, clock);
  try {
    const objects = await watchUntilReady(client, pod, onWatching, clock, signal);
    const last = objects.at(-1);
    let history = await readHistory(socketPath);
    // Our watch may deliver the write before its response has reached the agent.
    const complete = async (): Promise<boolean> => {
      if (last === undefined || history.spans.some((span) => isWriteOf(span, last.object))) return true;
      history = await readHistory(socketPath);
      return false;
    };
    await poll(complete, { clock, everyMs: SPAN_POLL_MS, limitMs: SPAN_LIMIT_MS });
    return { ...history, objects };
  } finally {
    client.close();
  }
}
