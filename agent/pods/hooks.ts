// Lifecycle hooks (postStart, preStop): exec, httpGet, sleep. Runs one hook to its end; what a failure means is the
// caller's decision.

import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Container, Pod } from '../../client/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Tracer } from '../../lib/trace.ts';
import type { ContainerId, ContainerRuntime } from '../ports/runtime.ts';

type Lifecycle = NonNullable<Container['lifecycle']>;
export type HookHandler = NonNullable<Lifecycle['preStop']>;

export interface HookTarget {
  readonly pod: Pod;
  readonly container: Pick<Container, 'name' | 'ports'>;
  readonly id: ContainerId;
  /** Where httpGet goes when it names no host. */
  readonly podIP: string | undefined;
}

/** Runs a hook; rejects when it fails, takes longer than `timeoutMs`, or the signal aborts. */
export type RunHook = (
  kind: 'postStart' | 'preStop',
  handler: HookHandler,
  target: HookTarget,
  timeoutMs: number,
  signal: AbortSignal,
) => Promise<void>;

function portNumber(port: string | number, container: Pick<Container, 'ports'>): number {
  const direct = Number(port);
  if (Number.isInteger(direct)) return direct;
  const named = (container.ports ?? []).find((candidate) => candidate.name === port);
  if (named === undefined) throw new Error(`couldn't find port: ${port}`);
  return named.containerPort;
}

function httpGet(handler: NonNullable<HookHandler['httpGet']>, target: HookTarget, signal: AbortSignal): Promise<void> {
  const host = handler.host ?? target.podIP;
  if (host === undefined) return Promise.reject(new Error('failed to find networking container: no pod address'));
  const https = handler.scheme === 'HTTPS';
  const headers: Record<string, string> = { 'User-Agent': 'kube-lifecycle/nodelet', Accept: '*/*' };
  for (const { name, value } of handler.httpHeaders ?? []) headers[name] = value;
  return new Promise((resolve, reject) => {
    const options = {
      host,
      port: portNumber(handler.port, target.container),
      path: handler.path ?? '/',
      headers,
      signal,
      // The kubelet does not verify either: a hook talks to a pod, whose certificate nobody vouches for.
      ...(https ? { rejectUnauthorized: false } : {}),
    };
    const request = (https ? httpsRequest : httpRequest)(options, (response) => {
      response.resume();
      const status = response.statusCode ?? 0;
      if (status < 400) resolve();
      else reject(new Error(`HTTP hook answered with status ${status}`));
    });
    request.on('error', reject);
    request.end();
  });
}

/** Makes the function that runs hooks. */
export function createHookRunner(runtime: Pick<ContainerRuntime, 'execSync'>, clock: Clock, tracer: Tracer): RunHook {
  const run = async (
    handler: HookHandler,
    target: HookTarget,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<void> => {
    const { exec, sleep } = handler;
    if (exec !== undefined) {
      const result = await runtime.execSync(target.id, exec.command ?? [], timeoutMs);
      if (result.timedOut) throw new Error(`command ${JSON.stringify(exec.command)} timed out`);
      if (result.exitCode === 0) return;
      const said = Buffer.concat([result.stdout, result.stderr]).toString('utf8').trim();
      throw new Error(`command '${(exec.command ?? []).join(' ')}' exited with ${result.exitCode}: ${said}`);
    }
    if (handler.httpGet !== undefined) return httpGet(handler.httpGet, target, signal);
    if (sleep !== undefined) return clock.sleep(sleep.seconds * 1000, signal);
    throw new Error('invalid handler: no exec, httpGet or sleep');
  };
  return (kind, handler, target, timeoutMs, signal) => {
    const attributes = { container: target.container.name, containerId: target.id };
    return tracer.span('hook', kind, attributes, async () => {
      const limit = new AbortController();
      const all = AbortSignal.any([signal, limit.signal]);
      const timer = Number.isFinite(timeoutMs)
        ? clock.after(timeoutMs, () => limit.abort(new Error(`${kind} hook did not end within ${timeoutMs} ms`)))
        : undefined;
      try {
        await abortable(run(handler, target, Number.isFinite(timeoutMs) ? timeoutMs : 0, all), all);
      } finally {
        timer?.cancel();
      }
    });
  };
}

/** The promise, or the signal's reason as soon as it aborts; what the promise then does is no longer waited for. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    // Its outcome has no taker, and it must not count as unhandled.
    promise.catch(() => undefined);
    return Promise.reject(signal.reason);
  }
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
