// The real API server in a thread of its own, so that its event loop can be watched while the campaign is busy with
// other things: says where it listens, between "begin" and "end" how long its loop was occupied, and at "floor" what a piece of
// work that is always the same costs the thread.

import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { startApiServer } from '../../../apiserver/main.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';

export interface ThreadReady {
  readonly url: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Of the server's thread between "begin" and "end". */
export interface Occupation {
  /** Longest time in which the event loop did not turn, in ms. */
  readonly blockedMs: number;
  /** Processor time, in ms: what blocks cannot be more than this. */
  readonly cpuMs: number;
  /** Lines that the server wrote to its log: internal errors. */
  readonly logged: readonly string[];
}

/** Read and written twice for the floor: as many keys as the largest requests have. */
const FLOOR = JSON.stringify(Object.fromEntries(Array.from({ length: 16_000 }, (_, index) => [`key-${index}`, 'v'])));

/** Processor time, in ms. */
function floor(): number {
  const begun = process.threadCpuUsage();
  for (let times = 0; times < 2; times++) JSON.stringify(JSON.parse(FLOOR));
  const { user, system } = process.threadCpuUsage(begun);
  return (user + system) / 1000;
}

const directory: unknown = workerData;
if (typeof directory !== 'string' || parentPort === null)
  throw new Error('this file is a thread of the bodies campaign');
const port = parentPort;
let logged: string[] = [];
const server = await startApiServer({
  pkiDir: join(directory, 'pki'),
  dbPath: join(directory, 'store.db'),
  address: '127.0.0.1',
  port: 0,
  hosts: [],
  nodeName: 'node',
  tracer: new Tracer(),
  clock: systemClock,
  log: (line) => logged.push(line),
});
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
let began = process.threadCpuUsage();
port.on('message', (message: 'begin' | 'end' | 'floor' | 'close') => {
  if (message === 'begin') {
    logged = [];
    began = process.threadCpuUsage();
    delay.reset();
    port.postMessage('begun');
  } else if (message === 'end') {
    const { user, system } = process.threadCpuUsage(began);
    port.postMessage({ blockedMs: delay.max / 1e6, cpuMs: (user + system) / 1000, logged } satisfies Occupation);
  } else if (message === 'floor') port.postMessage(floor());
  else void server.close().then(() => port.close());
});
const { cert, key } = server.pki.clients.admin;
port.postMessage({ url: server.url, ca: server.pki.ca.cert, cert, key } satisfies ThreadReady);
