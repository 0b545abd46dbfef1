// An audit event as kube-apiserver writes it: one line of JSON (audit.k8s.io/v1 Event), its fields in upstream's order, and
// the parts of it that come from the head of a request. Pure.

import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import type { Status } from '../../client/types.ts';
import type { EpochMs } from '../../lib/clock.ts';
import { rfc3339Micro } from '../../lib/rfc3339.ts';
import type { Caller } from '../auth/attributes.ts';
import type { Level, Stage } from './policy.ts';

export interface ObjectReference {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly group: string;
  readonly version: string;
  readonly resourceVersion: string;
  readonly subresource: string;
}

export type ResponseStatus = {
  readonly [field in 'status' | 'message' | 'reason' | 'details' | 'code']?: Status[field] | undefined;
};

export interface AuditEvent {
  readonly level: Level;
  readonly auditId: string;
  readonly stage: Stage;
  readonly requestUri: string;
  readonly verb: string;
  readonly user: Caller | undefined;
  readonly impersonatedUser: Caller | undefined;
  readonly sourceIps: readonly string[];
  readonly userAgent: string;
  readonly objectRef: ObjectReference | undefined;
  readonly responseStatus: ResponseStatus | undefined;
  /** JSON on one line. */
  readonly requestObject: string | undefined;
  readonly responseObject: string | undefined;
  readonly received: EpochMs;
  readonly at: EpochMs;
  readonly annotations: ReadonlyMap<string, string>;
}

const MAX_USER_AGENT = 1024;

/** Upstream's cut. */
export function userAgentOf(headers: IncomingHttpHeaders): string {
  const agent = headers['user-agent'] ?? '';
  return agent.length > MAX_USER_AGENT ? `${agent.slice(0, MAX_USER_AGENT)}...TRUNCATED` : agent;
}

function address(text: string | undefined): string[] {
  const bare = (text ?? '').trim().replace(/^::ffff:(?=\d+\.)/i, '');
  return isIP(bare) === 0 ? [] : [bare];
}

/** What X-Forwarded-For and X-Real-Ip name, then the peer of the connection; only the last is certain. */
export function sourceIps(headers: IncomingHttpHeaders, remote: string | undefined): string[] {
  const forwarded = headers['x-forwarded-for'];
  const list = Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '');
  const all = list.split(',').flatMap(address);
  const real = headers['x-real-ip'];
  for (const ip of address(Array.isArray(real) ? real[0] : real)) if (!all.includes(ip)) all.push(ip);
  for (const ip of address(remote)) if (all.at(-1) !== ip) all.push(ip);
  return all;
}

function shownUser(caller: Caller | undefined): object {
  if (caller === undefined) return {};
  const { name, uid, groups, extra } = caller;
  return { username: name, ...(uid === undefined ? {} : { uid }), groups, ...(extra === undefined ? {} : { extra }) };
}

/** Without what is ''. */
function filled(fields: Readonly<Record<string, string>>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}

function shownReference(reference: ObjectReference): object {
  const { resource, namespace, name, uid, group, version, resourceVersion, subresource } = reference;
  return filled({ resource, namespace, name, uid, apiGroup: group, apiVersion: version, resourceVersion, subresource });
}

function shownStatus({ status, message, reason, details, code }: ResponseStatus): object {
  return { metadata: {}, status, message, reason: reason === '' ? undefined : reason, details, code };
}

/** With the line feed at its end. The objects are JSON already: they may be large, and are not parsed again. */
export function eventLine(event: AuditEvent): string {
  const head = {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: event.level,
    auditID: event.auditId,
    stage: event.stage,
    requestURI: event.requestUri,
    verb: event.verb,
    user: shownUser(event.user),
    impersonatedUser: event.impersonatedUser === undefined ? undefined : shownUser(event.impersonatedUser),
    sourceIPs: event.sourceIps.length === 0 ? undefined : event.sourceIps,
    userAgent: event.userAgent === '' ? undefined : event.userAgent,
    objectRef: event.objectRef === undefined ? undefined : shownReference(event.objectRef),
    responseStatus: event.responseStatus === undefined ? undefined : shownStatus(event.responseStatus),
  };
  const tail = {
    requestReceivedTimestamp: rfc3339Micro(event.received),
    stageTimestamp: rfc3339Micro(event.at),
    annotations:
      event.annotations.size === 0
        ? undefined
        : Object.fromEntries([...event.annotations].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
  const objects = [
    ...(event.requestObject === undefined ? [] : [`"requestObject":${event.requestObject}`]),
    ...(event.responseObject === undefined ? [] : [`"responseObject":${event.responseObject}`]),
  ];
  return `${[JSON.stringify(head).slice(0, -1), ...objects, JSON.stringify(tail).slice(1)].join(',')}\n`;
}

/** Takes managedFields from an object, the items of a list and the rows of a table. Changes `value`. */
export function dropManagedFields(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  dropOwn(value);
  if ('items' in value && Array.isArray(value.items)) value.items.forEach(dropOwn);
  if ('rows' in value && Array.isArray(value.rows)) {
    for (const row of value.rows) if (typeof row === 'object' && row !== null && 'object' in row) dropOwn(row.object);
  }
}

function dropOwn(value: unknown): void {
  if (typeof value !== 'object' || value === null || !('metadata' in value)) return;
  const { metadata } = value;
  if (typeof metadata === 'object' && metadata !== null) Reflect.deleteProperty(metadata, 'managedFields');
}
