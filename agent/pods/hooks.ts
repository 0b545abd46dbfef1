// Lifecycle hooks (postStart, preStop): exec, httpGet, sleep. Runs one hook to its end; what a failure means is the
// caller's decision.

import type { Container, Pod } from '../../client/types.ts';
import { abortable } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { cutBytes, cutWithMark, MAX_OUTPUT_BYTES } from '../../lib/cut.ts';
import { errorMessage } from '../../lib/errors.ts';
import { HttpGetError, type HttpGetRequest, httpGet } from '../../lib/http-get.ts';
import type { Tracer } from '../../lib/trace.ts';
import { httpGetRequest } from '../model/http-action.ts';
import type { EventRecorder } from '../ports/api.ts';
import type { ContainerId, ContainerRuntime } from '../ports/runtime.ts';
import { podReference } from './events.ts';
import { formatPod, goList, goQuote, rpcMessage } from './format.ts';

type Lifecycle = NonNullable<Container['lifecycle']>;
export type HookHandler = NonNullable<Lifecycle['preStop']>;

export interface HookTarget {
  readonly pod: Pod;
  readonly container: Pick<Container, 'name' | 'ports'>;
  readonly id: ContainerId;
  /** Where httpGet goes when it names no host. */
  readonly podIP: string | undefined;
}

/** Runs a hook; rejects when it fails, takes longer than `timeoutMs` (it is not ended then), or the signal aborts. */
export type RunHook = (
  kind: 'postStart' | 'preStop',
  handler: HookHandler,
  target: HookTarget,
  timeoutMs: number,
  signal: AbortSignal,
) => Promise<void>;

export interface HookRunnerOptions {
  readonly runtime: Pick<ContainerRuntime, 'execSync'>;
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly tracer: Tracer;
}

/** What a hook printed, as far as it is read: as much as of a probe. */
function outputOf(...streams: readonly Buffer[]): string {
  const heads = streams.map((stream) => stream.subarray(0, MAX_OUTPUT_BYTES + 1));
  return cutBytes(Buffer.concat(heads), MAX_OUTPUT_BYTES).toString('utf8');
}

/** A hook that failed, in the kubelet's words: they become the message of a waiting container. */
function hookError(kind: string, what: string, { pod, container }: HookTarget, error: unknown, output?: string): Error {
  const printed = output === undefined ? '' : `, message: ${goQuote(output)}`;
  const where = `for Container ${goQuote(container.name)} in Pod ${goQuote(formatPod(pod))}`;
  const message = `${kind} lifecycle hook (${what}) ${where} failed - error: ${rpcMessage(error)}${printed}`;
  // Quoting makes up to six characters of one that cannot be printed.
  return new Error(cutWithMark(message, 3 * MAX_OUTPUT_BYTES), { cause: error });
}

/** Without a limit, as the kubelet calls it: a preStop whose time is over runs on beside TERM, until its container ends. */
async function runExec(
  { runtime }: Pick<HookRunnerOptions, 'runtime'>,
  command: readonly string[],
  target: HookTarget,
): Promise<void> {
  const what = goList(command);
  const result = await runtime.execSync(target.id, command, 0).catch((error: unknown) => {
    throw hookError('Exec', what, target, error, '');
  });
  if (result.exitCode === 0) return;
  const words = command.join(' ');
  const error = new Error(`command '${words}' exited with ${result.exitCode}: ${outputOf(result.stderr)}`);
  throw hookError('Exec', what, target, error, outputOf(result.stdout, result.stderr));
}

async function runHttp(
  { clock, recorder }: Pick<HookRunnerOptions, 'clock' | 'recorder'>,
  action: NonNullable<HookHandler['httpGet']>,
  target: HookTarget,
  signal: AbortSignal,
): Promise<void> {
  /** Any response counts, whatever its status; its body is not read. */
  const send = (request: HttpGetRequest) => httpGet(request, { clock, maxBodyBytes: 0, signal });
  try {
    const request = httpGetRequest(action, target.container, target.podIP, 'lifecycle');
    try {
      await send(request);
    } catch (error) {
      if (!(error instanceof HttpGetError && error.plainAnswer)) throw error;
      // From before hooks could speak HTTPS, when the scheme in the manifest was ignored.
      const headers = new Map(request.headers);
      headers.delete('Authorization');
      await send({ ...request, scheme: 'http', headers });
      const message = `request to HTTPS lifecycle hook ${request.host}:${request.port} got HTTP response, retry with HTTP succeeded`;
      recorder.event(podReference(target.pod), 'Warning', 'LifecycleHTTPFallback', message);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw hookError('HTTP', action.path ?? '', target, error);
  }
}

async function runSleep(
  { clock }: Pick<HookRunnerOptions, 'clock'>,
  seconds: number,
  target: HookTarget,
  signal: AbortSignal,
): Promise<void> {
  try {
    await clock.sleep(seconds * 1000, signal);
  } catch (error) {
    const why = `container terminated before sleep hook finished: ${errorMessage(error)}`;
    throw hookError('Sleep', String(seconds), target, why);
  }
}

function runHandler(
  options: HookRunnerOptions,
  handler: HookHandler,
  target: HookTarget,
  signal: AbortSignal,
): Promise<void> {
  const { exec, httpGet: http, sleep } = handler;
  if (exec !== undefined) return runExec(options, exec.command ?? [], target);
  if (http !== undefined) return runHttp(options, http, target, signal);
  if (sleep !== undefined) return runSleep(options, sleep.seconds, target, signal);
  // tcpSocket is a handler that the API takes and no kubelet runs.
  throw new Error(`Cannot run handler: invalid handler: ${JSON.stringify(handler)}`);
}

export function createHookRunner(options: HookRunnerOptions): RunHook {
  const { clock, tracer } = options;
  return (kind, handler, target, timeoutMs, signal) => {
    const attributes = { container: target.container.name, containerId: target.id };
    return tracer.span('hook', kind, attributes, async () => {
      const limit = new AbortController();
      const all = AbortSignal.any([signal, limit.signal]);
      const timer = Number.isFinite(timeoutMs)
        ? clock.after(timeoutMs, () => limit.abort(new Error(`${kind} hook did not end within ${timeoutMs} ms`)))
        : undefined;
      try {
        await abortable(runHandler(options, handler, target, all), all);
      } finally {
        timer?.cancel();
      }
    });
  };
}
