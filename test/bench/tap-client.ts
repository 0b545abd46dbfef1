// A client for measuring `nodelet tap`, in a process of its own: `tap-client.ts http2|frames SOCKET`. For each line on stdin, the
// number of calls and how many of them at a time, it makes them and writes a line: how long all took, and each at p50, in ms.

import { connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { createInterface } from 'node:readline';
import { percentile } from './stats.ts';
import { MESSAGE, METHOD } from './tap-call.ts';
import { connectFrames } from './tap-frames.ts';

export interface Measured {
  readonly ms: number;
  readonly p50: number;
}

async function connectHttp2(path: string): Promise<() => Promise<void>> {
  const client = connect('http://localhost', { createConnection: () => connectSocket(path) });
  return () =>
    new Promise((resolve, reject) => {
      const stream = client.request({
        ':method': 'POST',
        ':path': METHOD,
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      stream.on('data', () => undefined);
      stream.once('error', reject);
      stream.once('end', () => resolve());
      stream.end(MESSAGE);
    });
}

async function measure(call: () => Promise<void>, calls: number, atOnce: number): Promise<Measured> {
  const times: number[] = [];
  let left = calls;
  const begin = performance.now();
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const began = performance.now();
      await call();
      times.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return { ms: performance.now() - begin, p50: percentile(times, 0.5) };
}

const [kind, path = ''] = process.argv.slice(2);
const call = kind === 'frames' ? (await connectFrames(path, METHOD, MESSAGE)).call : await connectHttp2(path);
for await (const line of createInterface({ input: process.stdin })) {
  const [calls = 0, atOnce = 1] = line.split(' ').map(Number);
  process.stdout.write(`${JSON.stringify(await measure(call, calls, atOnce))}\n`);
}
process.exit(0);
