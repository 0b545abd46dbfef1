// The HTTP request of an httpGet of a probe or hook: ports by name, headers, path. Follows the kubelet's
// NewRequestForHTTPGetAction. Pure; lib/http-get.ts sends it.

import type { Container } from '../../client/types.ts';
import type { HttpGetRequest } from '../../lib/http-get.ts';

type HttpGetAction = NonNullable<NonNullable<Container['livenessProbe']>['httpGet']>;

/** The release whose kubelet this is, in the User-Agent of probes. */
const USER_AGENT_VERSION = '1.34';

/** "kube-probe/1.34", "kube-lifecycle/1.34" */
export function userAgent(purpose: 'probe' | 'lifecycle'): string {
  return `kube-${purpose}/${USER_AGENT_VERSION}`;
}

/** The number of a port given by number or by the name of a container port. Throws with the kubelet's words. */
export function resolveContainerPort(port: number | string, container: Pick<Container, 'ports'>): number {
  let number = port;
  if (typeof number === 'string') {
    const named = (container.ports ?? []).find((candidate) => candidate.name === port);
    // A name that is a number after all.
    if (named !== undefined) number = named.containerPort;
    else if (/^[+-]?\d+$/.test(number)) number = Number(number);
    else throw new Error(`strconv.Atoi: parsing ${JSON.stringify(port)}: invalid syntax`);
  }
  if (Number.isInteger(number) && number > 0 && number < 65536) return number;
  throw new Error(`invalid port number: ${number}`);
}

function percent(text: string): string {
  return [...Buffer.from(text, 'utf8')].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}

/** What may stand in a path besides letters and digits. */
const NOT_IN_PATH = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]/gu;
const NOT_IN_QUERY = /[^\x21-\x7e]/gu;

/**
 * The request target for an httpGet path, as Go's net/url makes it: query kept, fragment dropped, what may not stand in
 * a path escaped. A path that does not parse is taken whole for a path, its question mark too.
 */
export function requestTarget(path: string): string {
  const beforeQuery = path.split('?', 1)[0] ?? '';
  const busted = /\p{Cc}|%(?![0-9A-Fa-f]{2})/u.test(beforeQuery);
  if (busted) {
    const escaped = path.replaceAll('%', '%25').replace(NOT_IN_PATH, percent);
    return escaped.startsWith('/') ? escaped : `/${escaped}`;
  }
  const withoutFragment = path.split('#', 1)[0] ?? '';
  const local = withoutFragment.replace(/^(?:[A-Za-z][A-Za-z0-9+.-]*:)?\/\/[^/?]*/, '');
  const question = local.indexOf('?');
  const pathPart = (question < 0 ? local : local.slice(0, question)).replace(NOT_IN_PATH, percent);
  const query = question < 0 ? '' : local.slice(question).replace(NOT_IN_QUERY, percent);
  return `${pathPart.startsWith('/') ? '' : '/'}${pathPart}${query}`;
}

/** Headers by their canonical name ("X-Forwarded-For"), repeats kept in order. */
function headersOf(action: HttpGetAction): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (const { name, value } of action.httpHeaders ?? []) {
    const canonical = name.toLowerCase().replace(/(^|-)[a-z]/g, (letters) => letters.toUpperCase());
    const values = headers.get(canonical);
    if (values === undefined) headers.set(canonical, [value]);
    else values.push(value);
  }
  return headers;
}

/** The request of an httpGet. Throws when its port cannot be resolved or there is no host. */
export function httpGetRequest(
  action: HttpGetAction,
  container: Pick<Container, 'ports'>,
  podIP: string | undefined,
  purpose: 'probe' | 'lifecycle',
): HttpGetRequest {
  const port = resolveContainerPort(action.port, container);
  const host = action.host !== undefined && action.host !== '' ? action.host : podIP;
  if (host === undefined) throw new Error('failed to find networking container: the pod has no address');
  const headers = headersOf(action);
  const hostHeader = headers.get('Host')?.[0];
  headers.delete('Host');
  if (!headers.has('User-Agent')) headers.set('User-Agent', [userAgent(purpose)]);
  if (!headers.has('Accept')) headers.set('Accept', ['*/*']);
  // A header that is given as empty is one that the request shall not have.
  for (const name of ['User-Agent', 'Accept']) if (headers.get(name)?.[0] === '') headers.delete(name);
  return {
    scheme: action.scheme?.toUpperCase() === 'HTTPS' ? 'https' : 'http',
    host,
    port,
    target: requestTarget(action.path ?? ''),
    headers,
    ...(hostHeader === undefined || hostHeader === '' ? {} : { hostHeader }),
  };
}
