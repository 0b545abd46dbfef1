// Serves /containerLogs: finds the log of the requested container instance and streams it.

import { access } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { EpochMs } from '../../lib/clock.ts';
import { errnoOf, errorMessage, isErrno } from '../../lib/errors.ts';
import { uidOf } from '../model/pod-uid.ts';
import { HttpError } from './http-answer.ts';
import { logContainerId, parseLogRequest } from './log-request.ts';
import type { KubeletServerOptions } from './options.ts';

export interface LogsRoute {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** Rejects with HttpError before anything is sent; a failure later breaks the connection, so that a partial log is not taken for the whole. */
export async function serveContainerLogs(
  route: LogsRoute,
  query: URLSearchParams,
  response: ServerResponse,
  { pods, logs, runtime }: Pick<KubeletServerOptions, 'pods' | 'logs' | 'runtime'>,
  now: EpochMs,
): Promise<void> {
  const { options, previous } = parseLogRequest(query, now);
  const pod = pods.getPod(route.namespace, route.pod);
  if (pod === undefined) throw new HttpError(404, `pod "${route.pod}" does not exist\n`);
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  if (![...containers, ...initContainers, ...ephemeralContainers].some(({ name }) => name === route.container)) {
    throw new HttpError(404, `container "${route.container}" not found in pod "${route.pod}"\n`);
  }
  const uid = uidOf(pod);
  const id = logContainerId(pods.statusOf(uid) ?? pod.status, route.pod, route.container, previous);
  const instance = () => pods.snapshotOf(uid)?.containers.find((container) => container.id === id);
  const path = instance()?.logPath;
  if (path === undefined || path === '') {
    throw new HttpError(400, `container "${route.container}" in pod "${route.pod}" is not available`);
  }
  try {
    await access(path);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
    throw new HttpError(400, `failed to read the log of container "${id}": ${errorMessage(error)}`, { cause: error });
  }

  const gone = new AbortController();
  response.on('close', () => gone.abort());
  response.writeHead(200, { 'content-type': 'text/plain' });
  // Who follows a silent container learns at once that there is a log.
  if (options.follow) response.flushHeaders();
  const isRunning = async (): Promise<boolean> => {
    const found = instance();
    if (found?.state === 'running' || found?.state === 'created') return true;
    if (found !== undefined) await runtime.logWritten(found.id);
    return false;
  };
  // Read once, it is read up to where it ends then.
  if (!options.follow) await isRunning();
  const lines = Readable.from(logs.readLogs(path, options, isRunning, gone.signal));
  try {
    await pipeline(lines, response);
  } catch (error) {
    // The reader has disconnected: the usual end of a follow.
    if (gone.signal.aborted || errnoOf(error) === 'ERR_STREAM_PREMATURE_CLOSE') return;
    response.destroy();
    throw error;
  }
}
