// The gRPC side: services on a unix socket, each call through secrets' check, faults, handler and call log, every failure as
// a status with a message. Decides nothing about volumes.

import {
  type handleUnaryCall,
  type Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { errorMessage, isDiskFull, UserError } from '../../lib/errors.ts';
import { getOwn, setOwn } from '../../lib/own-property.ts';
import { removeStaleSocket } from '../../lib/unix-socket.ts';
import type { CallRecord } from './call-log.ts';
import { type DriverCode, DriverError } from './errors.ts';
import type { Faults } from './faults.ts';
import { type Driver, Work } from './work.ts';

export interface Served {
  readonly driver: Driver;
  readonly faults: Faults;
  readonly record?: (call: CallRecord) => void;
}

type AnyHandler = (request: never, work: Work) => Promise<unknown>;

/** The volume, snapshot or name that a request is about; for faults that are about one. */
function subjectOf(request: object): string {
  for (const field of ['volume_id', 'source_volume_id', 'snapshot_id', 'name']) {
    const value: unknown = Reflect.get(request, field);
    if (typeof value === 'string' && value !== '') return value;
  }
  return '';
}

function checkSecrets(driver: Driver, method: string, request: object): void {
  const required = getOwn(driver.options.requiredSecrets, method);
  if (required === undefined) return;
  const secrets: unknown = Reflect.get(request, 'secrets');
  for (const [key, value] of Object.entries(required)) {
    const got: unknown = typeof secrets === 'object' && secrets !== null ? Reflect.get(secrets, key) : undefined;
    if (got === undefined) throw new DriverError('UNAUTHENTICATED', `${method} needs the secret "${key}"`);
    if (got !== value)
      throw new DriverError('UNAUTHENTICATED', `the secret "${key}" of ${method} is not the right one`);
  }
}

/** gRPC's form of one method. */
function unary(served: Served, method: string, handler: AnyHandler): handleUnaryCall<object, object> {
  const { driver, faults } = served;
  const answer = async (request: object): Promise<object> => {
    const point = await faults.open(method, subjectOf(request));
    await point.before();
    checkSecrets(driver, method, request);
    // The request is of the handler's type: both come from one entry of the service definition.
    const response: unknown = await Reflect.apply(handler, undefined, [request, new Work(driver, point)]);
    await point.after();
    return typeof response === 'object' && response !== null ? response : {};
  };
  return (call: ServerUnaryCall<object, object>, reply: sendUnaryData<object>) => {
    const at = driver.clock.now();
    const began = driver.clock.monotonic();
    const done = (code: DriverCode | 'OK', message?: string): void => {
      const durationMs = driver.clock.monotonic() - began;
      const fields = message === undefined ? {} : { message };
      driver.log(code === 'OK' ? 'debug' : 'info', `${method}: ${code}`, { ...fields, ms: Math.round(durationMs) });
      try {
        served.record?.({ at, method, request: call.request, code, ...fields, durationMs });
      } catch (error) {
        driver.log('error', 'the call log cannot be written', { error: errorMessage(error) });
      }
    };
    // What the call has programs do is shown with it.
    void driver.tracer
      .within({ cause: method }, () => answer(call.request))
      .then(
        (response) => {
          done('OK');
          reply(null, response);
        },
        (error: unknown) => {
          // A record or an image for which the disk has no room is the specification's "unable to provision": try again later.
          const code =
            error instanceof DriverError ? error.code : isDiskFull(error) ? 'RESOURCE_EXHAUSTED' : 'INTERNAL';
          const message = errorMessage(error) || 'no message';
          if (code === 'INTERNAL') driver.log('error', `${method} failed`, { error: message });
          done(code, message);
          reply({ code: status[code], details: message });
        },
      );
  };
}

export function addService(
  server: Server,
  served: Served,
  definition: ServiceDefinition,
  service: Readonly<Record<string, AnyHandler>>,
): void {
  const methods: UntypedServiceImplementation = {};
  for (const [name, handler] of Object.entries(service)) setOwn(methods, name, unary(served, name, handler));
  server.addService(definition, methods);
}

export async function listen(server: Server, path: string): Promise<void> {
  await removeStaleSocket(path);
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => {
      if (error === null) resolve();
      else reject(new UserError(`cannot listen on ${path}: ${error.message}`));
    });
  });
}

/** Lets calls end for `graceMs`, then cuts them off. */
export async function close(server: Server, driver: Pick<Driver, 'clock'>, graceMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = driver.clock.after(graceMs, () => {
      server.forceShutdown();
      resolve();
    });
    server.tryShutdown(() => {
      timer.cancel();
      resolve();
    });
  });
}
