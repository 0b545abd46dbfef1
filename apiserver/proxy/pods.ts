// Which kubelet path a pod's log, exec, attach or port-forward request becomes: the container is chosen or checked, the
// options are carried over. Pure; kubelet.ts connects.

import { getOwn } from '../../lib/own-property.ts';
import { badRequest } from '../errors.ts';
import { flag, integer } from '../http/request.ts';
import type { KubeObject } from '../kinds/resource.ts';
import { isObject, type JsonObject } from '../patch/json-value.ts';

export type StreamKind = 'log' | 'exec' | 'attach' | 'portforward';

function specOf(pod: KubeObject): JsonObject {
  return isObject(pod['spec']) ? pod['spec'] : {};
}

function namesIn(pod: KubeObject, field: string): string[] {
  const list = getOwn(specOf(pod), field);
  if (!Array.isArray(list)) return [];
  return list.filter(isObject).map((container) => String(container['name']));
}

/** The node a pod is on; '' while it is on none. */
export function nodeOf(pod: KubeObject): string {
  const node = specOf(pod)['nodeName'];
  return typeof node === 'string' ? node : '';
}

/** The requested container: the one named, or the only one. Throws 400. */
export function chooseContainer(pod: KubeObject, requested: string): string {
  const name = pod.metadata.name ?? '';
  const containers = namesIn(pod, 'containers');
  const init = namesIn(pod, 'initContainers');
  const ephemeral = namesIn(pod, 'ephemeralContainers');
  if (requested !== '') {
    if ([...containers, ...init, ...ephemeral].includes(requested)) return requested;
    throw badRequest(`container ${requested} is not valid for pod ${name}`);
  }
  const [only, ...others] = containers;
  if (only !== undefined && others.length === 0) return only;
  let message = `a container name must be specified for pod ${name}, choose one of: [${containers.join(' ')}]`;
  if (init.length > 0) message += ` or one of the init containers: [${init.join(' ')}]`;
  if (ephemeral.length > 0) message += ` or one of the ephemeral containers: [${ephemeral.join(' ')}]`;
  throw badRequest(message);
}

const LOG_FLAGS = ['follow', 'previous', 'timestamps'];
const LOG_NUMBERS = ['sinceSeconds', 'tailLines', 'limitBytes'];

/** PodLogOptions as the kubelet takes them. Throws 400 for numbers that are none. */
function logQuery(query: URLSearchParams): URLSearchParams {
  const result = new URLSearchParams();
  for (const key of LOG_FLAGS) if (flag(query, key)) result.set(key, 'true');
  for (const key of LOG_NUMBERS) {
    const value = integer(query, key);
    if (value === undefined) continue;
    if (value < (key === 'tailLines' ? 0 : 1))
      throw badRequest(`${key}: Invalid value: ${value}: must be greater than 0`);
    result.set(key, String(value));
  }
  for (const key of ['sinceTime', 'stream']) {
    const value = query.get(key);
    if (value !== null && value !== '') result.set(key, value);
  }
  if (result.has('sinceTime') && result.has('sinceSeconds')) {
    throw badRequest('at most one of `sinceTime` or `sinceSeconds` may be specified');
  }
  return result;
}

/** The kubelet's names of the streams. */
function streamQuery(query: URLSearchParams, kind: 'exec' | 'attach'): URLSearchParams {
  const result = new URLSearchParams();
  const tty = flag(query, 'tty');
  if (flag(query, 'stdin')) result.set('input', '1');
  // The API's default for exec and attach is stdout and stderr on, when the query has none of them.
  const wants = (key: string): boolean => (query.has(key) ? flag(query, key) : true);
  if (wants('stdout')) result.set('output', '1');
  if (wants('stderr') && !tty) result.set('error', '1');
  if (tty) result.set('tty', '1');
  if (kind === 'exec') for (const word of query.getAll('command')) result.append('command', word);
  if (['input', 'output', 'error'].every((key) => !result.has(key))) {
    throw badRequest('you must specify at least one of stdin, stdout, stderr');
  }
  return result;
}

/** The path and query on the kubelet. Throws 400. */
export function kubeletPath(pod: KubeObject, kind: StreamKind, query: URLSearchParams): string {
  const { namespace = '', name = '' } = pod.metadata;
  const base = `${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const withQuery = (path: string, parameters: URLSearchParams): string =>
    parameters.size === 0 ? path : `${path}?${parameters}`;
  if (kind === 'portforward') {
    const parameters = new URLSearchParams();
    for (const port of query.getAll('ports')) parameters.append('port', port);
    return withQuery(`/portForward/${base}`, parameters);
  }
  const container = encodeURIComponent(chooseContainer(pod, query.get('container') ?? ''));
  if (kind === 'log') return withQuery(`/containerLogs/${base}/${container}`, logQuery(query));
  if (kind === 'exec' && query.getAll('command').length === 0) {
    throw badRequest('you must specify at least 1 command for the container');
  }
  return withQuery(`/${kind}/${base}/${container}`, streamQuery(query, kind));
}
