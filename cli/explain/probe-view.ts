// A probe in words: what it does, when, and what it was answered last. Pure.

import type { Probe } from 'kubernetes-types/core/v1';
import type { PodFacts } from './facts.ts';
import type { Cause } from './finding.ts';
import { endOf, lastEvent, timing } from './pod-view.ts';
import { plural } from './words.ts';

export type ProbeType = 'readiness' | 'liveness' | 'startup';

/** "HTTP GET http://POD:8080/ready", "exec sh -c …". */
export function probeText(probe: Probe | undefined): string {
  const { httpGet, tcpSocket, grpc, exec } = probe ?? {};
  if (httpGet !== undefined) {
    const { scheme = 'HTTP', host = 'POD', port, path = '/' } = httpGet;
    return `${scheme} GET ${host}:${port}${path}`;
  }
  if (tcpSocket !== undefined) return `a TCP connection to ${tcpSocket.host ?? 'POD'}:${tcpSocket.port}`;
  if (grpc !== undefined)
    return `gRPC health check on port ${grpc.port}${grpc.service ? `, service ${grpc.service}` : ''}`;
  return `the command ${(exec?.command ?? []).join(' ').slice(0, 80)}`;
}

/** Its timing, with the kubelet's defaults. */
export function probeTiming(probe: Probe | undefined): string {
  const {
    initialDelaySeconds = 0,
    periodSeconds = 10,
    timeoutSeconds = 1,
    failureThreshold = 3,
    successThreshold = 1,
  } = probe ?? {};
  const delay = initialDelaySeconds > 0 ? `, the first ${initialDelaySeconds} s after the container’s start` : '';
  const successes = successThreshold > 1 ? `, ${successThreshold} successes in a row make it good again` : '';
  return `it is tried every ${periodSeconds} s${delay}, has ${timeoutSeconds} s to answer, and fails after ${plural(failureThreshold, 'failure')} in a row${successes}`;
}

/** What the probe was answered last: from the trace, or from the event. */
export function probeAnswer(
  facts: PodFacts,
  type: ProbeType,
  container: string,
): { readonly text: string; readonly timing: Pick<Cause, 'since' | 'at' | 'count'> } {
  const word = `${type[0]?.toUpperCase()}${type.slice(1)}`;
  const event = lastEvent(
    facts,
    ['Unhealthy', 'ProbeWarning', 'ProbeError'],
    new RegExp(`^${word} probe (failed|errored)`),
  );
  const span = facts.spans.findLast(
    ({ kind, name, attributes }) =>
      kind === 'probe' && name === type && attributes['container'] === container && attributes['result'] !== 'success',
  );
  const fromEvent = (event?.message ?? '').replace(/^\w+ probe (failed|errored)[^:]*: /, '').trim();
  const output = String(span?.attributes['output'] ?? '').trim();
  const isNewer = span !== undefined && (event === undefined || endOf(span) >= event.last);
  const text = (isNewer ? output || fromEvent : fromEvent || output).replaceAll(/\s*\n\s*/g, ' ');
  return { text: text === '' ? 'it failed without a word' : text, timing: timing(event) };
}
