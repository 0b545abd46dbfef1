// /exec, /attach and /portForward: the selected container or sandbox, and the runtime's URL for it. The connection
// itself is tunnelled elsewhere.

import type { Pod } from '../../client/types.ts';
import { uidOf } from '../model/pod-uid.ts';
import type { ContainerId, ContainerRuntime, SandboxId } from '../ports/runtime.ts';
import { HttpError } from './http-answer.ts';
import type { ServedPods } from './options.ts';

export interface StreamTarget {
  readonly verb: 'exec' | 'attach' | 'portForward';
  readonly namespace: string;
  readonly pod: string;
  /** Undefined for portForward. */
  readonly container: string | undefined;
}

export interface StreamFlags {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** "1" and "true" are on, everything else is off; the names are those of the kubelet's own API. */
const isOn = (query: URLSearchParams, name: string): boolean => ['1', 'true'].includes(query.get(name) ?? '');

/** Pure. Throws HttpError 400 when no stream is requested. A terminal has no separate stderr. */
export function streamFlags(query: URLSearchParams): StreamFlags {
  const tty = isOn(query, 'tty');
  const flags = {
    stdin: isOn(query, 'input'),
    stdout: isOn(query, 'output'),
    stderr: isOn(query, 'error') && !tty,
    tty,
  };
  if (!flags.stdin && !flags.stdout && !flags.stderr) {
    throw new HttpError(400, 'you must specify at least 1 of stdin, stdout, stderr');
  }
  return flags;
}

/** Ports of a WebSocket port-forward; SPDY names them in its streams. Throws HttpError 400. */
export function forwardedPorts(query: URLSearchParams): readonly number[] {
  return [...query.getAll('ports'), ...query.getAll('port')]
    .flatMap((value) => value.split(','))
    .map((value) => {
      const port = Number(value);
      if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new HttpError(400, `invalid port: "${value}"`);
      return port;
    });
}

/** The streaming server's URL for a request. Rejects with HttpError, or with the runtime's error. */
export async function streamUrl(
  target: StreamTarget,
  query: URLSearchParams,
  pods: ServedPods,
  runtime: Pick<ContainerRuntime, 'execUrl' | 'attachUrl' | 'portForwardUrl'>,
): Promise<URL> {
  const pod = pods.getPod(target.namespace, target.pod);
  if (pod === undefined) throw new HttpError(404, 'pod does not exist');
  if (target.verb === 'portForward') {
    const ports = forwardedPorts(query);
    return new URL(await runtime.portForwardUrl(sandboxOf(pods, pod), ports));
  }
  const flags = streamFlags(query);
  const id = runningContainer(target, pods, pod);
  if (target.verb === 'attach') return new URL(await runtime.attachUrl(id, flags));
  const command = query.getAll('command');
  if (command.length === 0) throw new HttpError(400, 'you must specify a command');
  return new URL(await runtime.execUrl(id, { ...flags, command }));
}

/** One that has ended is none, as in the kubelet: its messages, not the runtime's. Throws HttpError 500. */
function runningContainer(target: StreamTarget, pods: ServedPods, pod: Pod): ContainerId {
  const { namespace, pod: name, container = '' } = target;
  const id = pods.containerIdFor(namespace, name, container);
  const state = pods.snapshotOf(uidOf(pod))?.containers.find((each) => each.id === id)?.state;
  if (id !== undefined && state !== 'exited') return id;
  const missing =
    target.verb === 'attach'
      ? `container ${container} not found in pod ${name}_${namespace}`
      : `container not found ("${container}")`;
  throw new HttpError(500, missing);
}

function sandboxOf(pods: ServedPods, pod: Pod): SandboxId {
  const ready = pods.snapshotOf(uidOf(pod))?.sandboxes.find(({ state }) => state === 'ready');
  if (ready === undefined) throw new HttpError(500, `failed to find sandbox for pod "${pod.metadata.name}"`);
  return ready.id;
}
