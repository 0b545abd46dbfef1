// The driver as a whole: records read, leftovers of an earlier life put in order, services on their sockets, and the driver registered.
// Stopping leaves volumes as they are, staged and published: a driver may be replaced under running pods.

import { createHash } from 'node:crypto';
import { mkdir, realpath } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import { whenAborted } from '../../lib/abort.ts';
import { readFileIfExists } from '../../lib/atomic.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { isErrno, UserError } from '../../lib/errors.ts';
import { exec } from '../../lib/exec.ts';
import type { Log } from '../../lib/log.ts';
import { Tracer } from '../../lib/trace.ts';
import { loadProto } from '../../proto/load.ts';
import { csiTarget } from '../client.ts';
import { fileCallLog } from './call-log.ts';
import { controller } from './controller-service.ts';
import { Faults, parseFaults } from './faults.ts';
import { identity } from './identity.ts';
import { Locks } from './locks.ts';
import { DRIVER_NAME } from './names.ts';
import { node } from './node.ts';
import { recover } from './recover.ts';
import { registrationServer } from './registration.ts';
import { addService, close, listen, type Served } from './server.ts';
import { Store } from './store.ts';
import { tracedPrograms } from './traced-programs.ts';
import type { Driver, DriverOptions } from './work.ts';

/** A socket's path, as the kernel takes it. */
const MAX_SOCKET_PATH = 107;
const STOP_GRACE_MS = 3_000;

export interface RunningDriver {
  readonly options: DriverOptions;
  /** Resolves when the sockets are gone and the calls that ran have ended. */
  stop(): Promise<void>;
}

/**
 * One driver per state directory: an abstract socket is the lock, since the kernel takes it back however a process ends.
 * Rejects with UserError when it is taken.
 */
async function lockState(stateDir: string): Promise<() => void> {
  const name = createHash('sha256').update(stateDir).digest('hex').slice(0, 32);
  // Nothing is served there: connections are closed at once, and cost no descriptor.
  const server = createServer((caller) => caller.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      reject(
        isErrno(error, 'EADDRINUSE') ? new UserError(`another driver has the state directory ${stateDir}`) : error,
      );
    });
    server.listen({ path: `\0nodelet-csi-${name}` }, resolve);
  });
  // A caller that cannot be accepted (no descriptor left) leaves the lock as it is.
  server.on('error', () => undefined);
  return () => void server.close();
}

function socketPath(endpoint: string): string {
  const path = csiTarget(endpoint).slice('unix:'.length);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH)
    throw new UserError(`${path} is longer than a socket's path may be (${MAX_SOCKET_PATH})`);
  return path;
}

/** Resolves when the driver serves. Rejects with UserError for what the user can mend. */
export async function startDriver(
  requested: DriverOptions,
  log: Log,
  clock: Clock = systemClock,
  tracer = new Tracer(),
): Promise<RunningDriver> {
  const socket = socketPath(requested.endpoint);
  await mkdir(requested.stateDir, { recursive: true, mode: 0o700 });
  // Loop devices name their images by real paths.
  const options = { ...requested, stateDir: await realpath(requested.stateDir) };
  const unlock = await lockState(options.stateDir);
  try {
    const driver: Driver = {
      options,
      store: await Store.open(options.stateDir),
      locks: new Locks(),
      clock,
      log,
      tracer,
      exec: tracedPrograms(tracer, exec),
    };
    await recover(driver);
    const faults = new Faults({
      clock,
      readFile: readFileIfExists,
      crash: () => {
        process.kill(process.pid, 'SIGKILL');
        throw new Error('alive after SIGKILL');
      },
      onHold: (method, { when, message }) => log('info', `${method} is on hold`, { when, rule: message }),
      ...(options.faultFile === undefined ? {} : { file: options.faultFile }),
      ...(options.faults === undefined ? {} : { rules: parseFaults(options.faults) }),
    });
    const served: Served = {
      driver,
      faults,
      ...(options.callLog === undefined ? {} : { record: fileCallLog(options.callLog) }),
    };
    const csi = loadProto('csi').csi.v1;
    const server = new Server();
    addService(server, served, csi.Identity.service, identity);
    addService(server, served, csi.Controller.service, controller);
    addService(server, served, csi.Node.service, node);
    await mkdir(dirname(socket), { recursive: true, mode: 0o750 });
    await listen(server, socket);
    log('info', `${DRIVER_NAME} serves`, { endpoint: requested.endpoint, stateDir: options.stateDir });
    const registration = await register(served, socket);
    return {
      options,
      async stop() {
        // The kubelet first: it sends nothing more to a driver that is gone from plugins_registry.
        if (registration !== undefined) await close(registration, driver, STOP_GRACE_MS);
        await close(server, driver, STOP_GRACE_MS);
        unlock();
      },
    };
  } catch (error) {
    unlock();
    throw error;
  }
}

async function register(served: Served, socket: string): Promise<Server | undefined> {
  const { registrationDir } = served.driver.options;
  if (registrationDir === undefined) return undefined;
  const path = socketPath(`unix://${join(registrationDir, `${DRIVER_NAME}-reg.sock`)}`);
  await mkdir(registrationDir, { recursive: true, mode: 0o750 });
  const server = registrationServer(served, socket, ({ registered, error }) => {
    if (registered) served.driver.log('info', 'Registration of the driver succeeded');
    else served.driver.log('error', 'Registration of the driver failed', { error });
  });
  await listen(server, path);
  return server;
}

/** Runs until the signal aborts. */
export async function runDriver(options: DriverOptions, log: Log, signal: AbortSignal): Promise<void> {
  const driver = await startDriver(options, log);
  await whenAborted(signal);
  await driver.stop();
  log('info', `${DRIVER_NAME} has stopped; its volumes stay as they are`);
}
