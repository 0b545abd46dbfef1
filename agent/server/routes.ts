// The paths of the kubelet API, read into what they mean. Pure.

import { getOwn } from '../../lib/own-property.ts';
import type { StreamTarget } from './streams.ts';

export type Route =
  | { readonly kind: 'healthz' | 'ping' | 'syncloop' | 'pods' | 'runningPods' | 'configz' | 'summary' }
  | { readonly kind: 'metrics'; readonly page: 'agent' | 'resource' | 'cadvisor' | 'probes' | 'slis' }
  | { readonly kind: 'containerLogs'; readonly namespace: string; readonly pod: string; readonly container: string }
  /** `path` below the node's log directory, decoded; undefined for "/logs" itself. */
  | { readonly kind: 'nodeLogs'; readonly path: string | undefined }
  | { readonly kind: 'stream'; readonly target: StreamTarget };

const STREAMS: ReadonlySet<string> = new Set(['exec', 'attach', 'portForward']);

function isStream(verb: string): verb is StreamTarget['verb'] {
  return STREAMS.has(verb);
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

/** Paths with no parameters; the kubelet serves the same with a slash at the end. */
const FIXED: Readonly<Record<string, Route>> = {
  '/healthz': { kind: 'healthz' },
  '/metrics': { kind: 'metrics', page: 'agent' },
  '/metrics/resource': { kind: 'metrics', page: 'resource' },
  '/metrics/cadvisor': { kind: 'metrics', page: 'cadvisor' },
  '/metrics/probes': { kind: 'metrics', page: 'probes' },
  '/metrics/slis': { kind: 'metrics', page: 'slis' },
  '/healthz/ping': { kind: 'ping' },
  '/healthz/log': { kind: 'ping' },
  '/healthz/syncloop': { kind: 'syncloop' },
  '/pods': { kind: 'pods' },
  '/runningpods': { kind: 'runningPods' },
  '/configz': { kind: 'configz' },
  '/stats/summary': { kind: 'summary' },
};

/** Undefined for a path that nothing is served at. */
export function parseRoute(path: string): Route | undefined {
  const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
  const fixed = getOwn(FIXED, trimmed);
  if (fixed !== undefined) return fixed;
  const [verb = '', ...rest] = path.slice(1).split('/');
  const parts = rest.map(decode);
  if (verb === 'logs') return nodeLogsRoute(parts);
  if (parts.some((part) => part === undefined || part === '')) return undefined;
  // With four parts the third is the pod's uid.
  const [namespace = '', pod = '', third, fourth] = parts;
  if (verb === 'containerLogs') {
    return parts.length === 3 ? { kind: 'containerLogs', namespace, pod, container: third ?? '' } : undefined;
  }
  if (!isStream(verb)) return undefined;
  if (verb === 'portForward') {
    return parts.length === 2 || parts.length === 3
      ? { kind: 'stream', target: { verb, namespace, pod, container: undefined } }
      : undefined;
  }
  return parts.length === 3 || parts.length === 4
    ? { kind: 'stream', target: { verb, namespace, pod, container: fourth ?? third } }
    : undefined;
}

function nodeLogsRoute(parts: readonly (string | undefined)[]): Route | undefined {
  if (parts.length === 0) return { kind: 'nodeLogs', path: undefined };
  // A slash that was encoded belongs to a name, and no name has one; nothing leads upwards.
  if (parts.some((part) => part === undefined || part === '..' || part.includes('/'))) return undefined;
  return { kind: 'nodeLogs', path: parts.join('/') };
}

const DEBUGGING: readonly Route['kind'][] = ['containerLogs', 'stream', 'runningPods', 'nodeLogs'];

/** Routes that show or touch what is inside pods or on the node: off with enableDebuggingHandlers. */
export function isDebugging(route: Route): boolean {
  return DEBUGGING.includes(route.kind);
}
