// CRI for one command: finds the endpoint, calls with deadlines, explains each call when asked to, and words failures as
// gRPC's Go client does ("rpc error: code = NotFound desc = …"). Retries nothing.

import { connect } from 'node:net';
import {
  type ChannelOptions,
  type Client,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { type CriMethod, type CriRequest, type CriResponse, IMAGE_METHODS } from '../../agent/runtime/cri-client.ts';
import { UserError } from '../../lib/errors.ts';
import { goRpcError } from '../../lib/go-words.ts';
import { Tracer } from '../../lib/trace.ts';
import { loadProto } from '../../proto/load.ts';
import { codeName, GrpcError, untypedUnaryCaller } from '../../proto/unary.ts';
import type { Console } from './console.ts';
import { deadlineOf } from './deadlines.ts';
import { type ExplainedMethod, KUBELET_STEPS } from './explain.ts';
import { DEFAULT_ENDPOINTS, type Settings } from './settings.ts';

/** A call that failed, in gRPC's words. */
export class RpcError extends UserError {
  override name = 'RpcError';
  /** "NOT_FOUND" */
  readonly code: string;
  constructor(code: string, description: string, options?: ErrorOptions) {
    super(goRpcError(code, description), options);
    this.code = code;
  }
}

export interface CallLimits {
  /** Seconds that the call itself may take at the runtime: a grace period, a command. */
  readonly graceSeconds?: number;
  /** Instead of --timeout. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface Cri {
  /** Rejects with RpcError. */
  call<M extends CriMethod>(method: M, request: CriRequest<M>, limits?: CallLimits): Promise<CriResponse<M>>;
  /** Messages of GetContainerEvents until `signal` aborts or the runtime ends the stream. Rejects with RpcError. */
  events(onEvent: (event: unknown) => void, signal: AbortSignal): Promise<void>;
  close(): void;
}

const CHANNEL_OPTIONS: ChannelOptions = {
  'grpc.max_receive_message_length': 16 * 1024 * 1024,
  'grpc.max_send_message_length': 16 * 1024 * 1024,
  'grpc.enable_retries': 0,
};

/** The path of a unix socket. Throws UserError for any other endpoint. */
export function socketPath(endpoint: string): string {
  const path = endpoint.startsWith('unix://') ? endpoint.slice('unix://'.length) : endpoint;
  if (!path.startsWith('/')) {
    throw new UserError(`the endpoint "${endpoint}" is not supported: give unix:///path of a socket`);
  }
  return path;
}

const DIAL_WORDS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'no such file or directory'],
  ['ECONNREFUSED', 'connection refused'],
  ['EACCES', 'permission denied'],
]);

/** The failure of a call in Go's words; `endpoint` was called. Pure. */
export function rpcError(error: GrpcError, endpoint: string): RpcError {
  const { code, message } = error;
  if (code === 'DEADLINE_EXCEEDED' && message.startsWith('Deadline exceeded')) {
    return new RpcError(code, 'context deadline exceeded', { cause: error });
  }
  const errno = /connect (E[A-Z]+)/.exec(message)?.[1];
  if (code !== 'UNAVAILABLE' || errno === undefined) return new RpcError(code, message, { cause: error });
  const words = `dial unix ${socketPath(endpoint)}: connect: ${DIAL_WORDS.get(errno) ?? errno}`;
  return new RpcError(code, `connection error: desc = "transport: Error while dialing: ${words}"`, { cause: error });
}

function answers(endpoint: string, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath(endpoint));
    const done = (value: boolean): void => {
      socket.destroy();
      resolve(value);
    };
    socket.setTimeout(timeoutMs, () => done(false));
    socket.once('connect', () => done(true));
    // No runtime listens there: the next endpoint is tried; the error of the last attempt names all of them.
    socket.once('error', () => done(false));
  });
}

async function findEndpoint(settings: Settings, console: Console): Promise<string> {
  console.log(
    'WARN',
    `no runtime endpoint is set: using the first that answers of ${DEFAULT_ENDPOINTS.join(', ')}; ` +
      'set --runtime-endpoint, or --lab for the lab of nodelet up',
  );
  for (const endpoint of DEFAULT_ENDPOINTS) if (await answers(endpoint, settings.timeoutMs)) return endpoint;
  throw new UserError(
    `no CRI runtime answers on ${DEFAULT_ENDPOINTS.join(', ')}: set --runtime-endpoint, or --lab for the lab of nodelet up`,
  );
}

/** Connects with the first call. Aborting `interrupted` cancels the calls that are under way. */
export async function openCri(settings: Settings, console: Console, interrupted: AbortSignal): Promise<Cri> {
  const endpoint = settings.runtimeEndpoint ?? (await findEndpoint(settings, console));
  const imageEndpoint = settings.imageEndpoint ?? endpoint;
  const target = (of: string): string => `unix:${socketPath(of)}`;
  const { RuntimeService, ImageService } = loadProto('cri').runtime.v1;
  const plain = credentials.createInsecure();
  const runtime = new RuntimeService(target(endpoint), plain, CHANNEL_OPTIONS);
  let images: Client | undefined;
  const unary = untypedUnaryCaller(new Tracer(), 'cri');
  const announce = (method: ExplainedMethod): void => {
    if (settings.explain) console.terminal.stderr.write(`explain: ${method}: ${KUBELET_STEPS[method]}\n`);
  };
  const failure = (error: unknown, of: string): unknown => (error instanceof GrpcError ? rpcError(error, of) : error);

  const call = async (method: CriMethod, request: object, limits: CallLimits = {}): Promise<unknown> => {
    const isImage = IMAGE_METHODS.has(method);
    if (isImage) images ??= new ImageService(target(imageEndpoint), plain, CHANNEL_OPTIONS);
    announce(method);
    if (settings.debug) console.log('DEBU', `${method}Request: ${JSON.stringify(request)}`);
    const deadlineMs = deadlineOf(method, limits.timeoutMs ?? settings.timeoutMs, limits.graceSeconds);
    const { signal = interrupted } = limits;
    try {
      const answer = await unary(isImage && images !== undefined ? images : runtime, method, request, {
        ...(deadlineMs !== undefined && { deadlineMs }),
        signal,
      });
      if (settings.debug) console.log('DEBU', `${method}Response: ${JSON.stringify(answer)}`);
      return answer;
    } catch (error) {
      throw failure(error, isImage ? imageEndpoint : endpoint);
    }
  };
  return {
    // The two services are the ones that CriMethod names; this is the one place that says so.
    call: call as Cri['call'],
    events: (onEvent, signal) => {
      announce('GetContainerEvents');
      return readEvents(runtime.GetContainerEvents({}, new Metadata()), onEvent, signal).catch((error: unknown) => {
        throw failure(error, endpoint);
      });
    },
    close() {
      runtime.close();
      images?.close();
    },
  };
}

function readEvents(
  stream: ClientReadableStream<unknown>,
  onEvent: (event: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => stream.cancel();
    signal.addEventListener('abort', stop, { once: true });
    stream.on('data', onEvent);
    stream.on('end', () => {
      signal.removeEventListener('abort', stop);
      resolve();
    });
    stream.on('error', (error: ServiceError) => {
      if (signal.aborted) resolve();
      else reject(new GrpcError('GetContainerEvents', codeName(error.code), error.details, { cause: error }));
    });
  });
}
