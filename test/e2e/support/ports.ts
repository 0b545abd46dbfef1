// Ports for tests, that no other test file which runs at the same time is given. Below the range from which the kernel
// takes ports of outgoing connections, so that one that is free now is still free when it is used.

import { createServer } from 'node:net';

/** Of the ports from 10000 to 19999; labs take theirs from 20000 on, the kernel lends from 32768 on. */
const FIRST = 10_000;
const PER_WORKER = 500;
const WORKERS = 20;

/** Vitest numbers the processes that run test files at the same time, from 1. */
const worker = Number(process.env['VITEST_POOL_ID'] ?? '1') % WORKERS;
// Files that run one after the other begin at different ports: the earlier one's port may not be released yet.
let next = process.pid % PER_WORKER;

/** A port without a listener on any address; each is returned once. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < PER_WORKER; tries++) {
    const port = FIRST + worker * PER_WORKER + (next++ % PER_WORKER);
    if (await isFree(port)) return port;
  }
  throw new Error(`none of ${PER_WORKER} ports is free`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '0.0.0.0', exclusive: true }, () => server.close(() => resolve(true)));
  });
}
