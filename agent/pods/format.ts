// The texts that a kubelet user greps for: durations as Go prints them, pods as the kubelet names them, times as the
// API writes them, runtime errors as gRPC words them. Pure.

import type { Pod } from '../../client/types.ts';
import { errorMessage } from '../../lib/errors.ts';
import { RuntimeError } from '../ports/runtime.ts';

/** A duration in ms as Go's time.Duration prints it, to the millisecond: "850ms", "1.2s", "1m20s", "5m0s". */
export function goDuration(ms: number): string {
  const whole = Math.trunc(ms);
  if (whole === 0) return '0s';
  if (whole < 1000) return `${whole}ms`;
  const hours = Math.floor(whole / 3_600_000);
  const minutes = Math.floor(whole / 60_000) % 60;
  const seconds = `${(whole % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

/** "hello-pod_demo(5f0c…)" */
export function formatPod(pod: Pod): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})`;
}

/** RFC 3339 to the second, as every time in a status is written. */
export function rfc3339(epochMs: number): string {
  return `${new Date(Math.floor(epochMs / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}

/** A list as Go's %s prints a []string. */
export function goList(items: readonly string[]): string {
  return `[${items.join(' ')}]`;
}

/** A string as Go's %q prints it. */
export function goQuote(text: string): string {
  return JSON.stringify(text);
}

const GO_CODES: Readonly<Record<string, string>> = {
  CANCELLED: 'Canceled',
  UNKNOWN: 'Unknown',
  INVALID_ARGUMENT: 'InvalidArgument',
  DEADLINE_EXCEEDED: 'DeadlineExceeded',
  NOT_FOUND: 'NotFound',
  ALREADY_EXISTS: 'AlreadyExists',
  PERMISSION_DENIED: 'PermissionDenied',
  RESOURCE_EXHAUSTED: 'ResourceExhausted',
  FAILED_PRECONDITION: 'FailedPrecondition',
  ABORTED: 'Aborted',
  OUT_OF_RANGE: 'OutOfRange',
  UNIMPLEMENTED: 'Unimplemented',
  INTERNAL: 'Internal',
  UNAVAILABLE: 'Unavailable',
  DATA_LOSS: 'DataLoss',
  UNAUTHENTICATED: 'Unauthenticated',
};

/** An error as the kubelet's events and statuses carry it: a runtime's one as "rpc error: code = Unknown desc = …". */
export function rpcMessage(error: unknown): string {
  if (!(error instanceof RuntimeError)) return errorMessage(error);
  return `rpc error: code = ${GO_CODES[error.code] ?? error.code} desc = ${error.message}`;
}
