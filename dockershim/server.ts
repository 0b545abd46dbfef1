// The gRPC side: CRI's two services on a unix socket, each call with a signal that aborts when its client has gone, each
// failure as a status. Methods without a handler are answered with UNIMPLEMENTED by name.

import {
  type handleServerStreamingCall,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { Clock } from '../lib/clock.ts';
import { UserError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import { getOwn, setOwn } from '../lib/own-property.ts';
import type { Tracer } from '../lib/trace.ts';
import { removeStaleSocket } from '../lib/unix-socket.ts';
import type { ContainerEventResponse } from '../proto/gen/runtime/v1/ContainerEventResponse.ts';
import { loadProto } from '../proto/load.ts';
import type { Handlers } from './cri-types.ts';
import { type CriError, toCriError } from './errors.ts';

const STOP_GRACE_MS = 3_000;
const MAX_MESSAGE = 16 * 1024 * 1024;

export interface EventSubscriber {
  readonly send: (event: ContainerEventResponse) => void;
  /** The stream is over: Docker's own has broken. */
  readonly end: (error: CriError) => void;
}

export interface ServerParts {
  readonly handlers: Handlers;
  /** Returns the function that ends the subscription. */
  readonly subscribe: (subscriber: EventSubscriber) => () => void;
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly log: Log;
}

type AnyHandler = (request: object, signal: AbortSignal) => Promise<object>;

function unary(name: string, handler: AnyHandler, { tracer, log }: ServerParts): handleUnaryCall<object, object> {
  return (call, reply) => {
    const gone = new AbortController();
    call.on('cancelled', () => gone.abort(new Error('the client has gone')));
    void tracer
      .span('cri', name, {}, () => handler(call.request, gone.signal))
      .then(
        (response) => reply(null, response),
        (error: unknown) => {
          const failure = toCriError(error);
          const level = failure.code === 'NOT_FOUND' || gone.signal.aborted ? 'debug' : 'warn';
          log(level, `${name} failed`, { code: failure.code, error: failure.message });
          reply({ code: status[failure.code], details: failure.message });
        },
      );
  };
}

function unimplemented(name: string): handleUnaryCall<object, object> {
  return (_call, reply) =>
    reply({
      code: status.UNIMPLEMENTED,
      details: `${name}: Docker has no means for it, or the shim does not use them`,
    });
}

function events({ subscribe }: ServerParts): handleServerStreamingCall<object, ContainerEventResponse> {
  return (call) => {
    const stop = subscribe({
      send: (event) => call.write(event),
      end: (error) => call.emit('error', { code: status[error.code], details: error.message }),
    });
    call.on('cancelled', stop);
    call.on('close', stop);
  };
}

function methodsOf(definition: ServiceDefinition, parts: ServerParts): UntypedServiceImplementation {
  const methods: UntypedServiceImplementation = {};
  // Each handler is of the type of its method: Handlers is made from the same definition.
  const handlers = parts.handlers as Readonly<Record<string, AnyHandler>>;
  for (const [name, { responseStream }] of Object.entries(definition)) {
    if (name === 'GetContainerEvents') setOwn(methods, name, events(parts));
    else if (!responseStream) {
      const handler = getOwn(handlers, name);
      setOwn(methods, name, handler === undefined ? unimplemented(name) : unary(name, handler, parts));
    }
  }
  return methods;
}

export interface CriServer {
  /** Lets calls end for a moment, then cuts them off. */
  close(): Promise<void>;
}

/** Rejects with UserError when the socket is taken or cannot be made. */
export async function serveCri(socket: string, parts: ServerParts): Promise<CriServer> {
  const { RuntimeService, ImageService } = loadProto('cri').runtime.v1;
  const server = new Server({
    'grpc.max_receive_message_length': MAX_MESSAGE,
    // ExecSync returns 16 MiB of each stream.
    'grpc.max_send_message_length': 3 * MAX_MESSAGE,
  });
  for (const { service } of [RuntimeService, ImageService]) server.addService(service, methodsOf(service, parts));
  await removeStaleSocket(socket);
  const mask = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) => {
        if (error === null) resolve();
        else reject(new UserError(`cannot listen on ${socket}: ${error.message}`));
      });
    });
  } finally {
    process.umask(mask);
  }
  return {
    close: () =>
      new Promise<void>((resolve) => {
        const timer = parts.clock.after(STOP_GRACE_MS, () => {
          server.forceShutdown();
          resolve();
        });
        server.tryShutdown(() => {
          timer.cancel();
          resolve();
        });
      }),
  };
}
