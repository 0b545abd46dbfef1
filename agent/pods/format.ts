// The texts that a kubelet user greps for: pods as the kubelet names them, times as the API writes them, runtime errors
// as gRPC words them. Pure.

import type { Pod } from '../../client/types.ts';
import { errorMessage } from '../../lib/errors.ts';
import { goRpcError } from '../../lib/go-words.ts';
import { RuntimeError } from '../ports/runtime.ts';

export { goDuration } from '../../lib/go-duration.ts';
export { goQuote } from '../../lib/go-words.ts';

/** "hello-pod_demo(5f0c…)" */
export function formatPod(pod: Pod): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})`;
}

/** A list as Go's %s prints a []string. */
export function goList(items: readonly string[]): string {
  return `[${items.join(' ')}]`;
}

/** An error as the kubelet's events and statuses carry it: a runtime's one as "rpc error: code = Unknown desc = …". */
export function rpcMessage(error: unknown): string {
  const fromRuntime = error instanceof RuntimeError && error.code !== RuntimeError.NOT_CALLED;
  return fromRuntime ? goRpcError(error.code, error.message) : errorMessage(error);
}
