// Questions a second: the DNS server beside a bare UDP echo, each a process of its own, in turns, with the same questions.

import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../e2e/support/ports.ts';
import type { Row } from '../report.ts';
import { questionOf } from './questions.ts';

const LOCAL = '127.0.0.1';
/** Under way at a time: what a server of many pods has, and what a socket's buffer holds. */
const WINDOW = 64;
const COUNT = 5000;
const ROUNDS = 15;
const WARM_UP = 10_000;
/** 5,000 questions a second: 1,000 in so many ms. */
const LIMIT_MS = 200;
/** For giving up only: a packet that is lost on the loopback is a fault. */
const LOST_MS = 20_000;

interface Side {
  readonly child: ChildProcess;
  readonly port: number;
}

async function startSide(what: 'dns' | 'echo'): Promise<Side> {
  const port = await freePort();
  const program = fileURLToPath(new URL('server.ts', import.meta.url));
  const child = spawn(process.execPath, [program, what, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
  if (child.stdout === null) throw new Error('no output');
  await once(child.stdout, 'data');
  return { child, port };
}

/** How long 1,000 questions take, ms, from `count` of them. */
function ask(port: number, count: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4');
    const timer = setTimeout(() => reject(new Error('an answer was lost')), LOST_MS);
    let [sent, received] = [0, 0];
    const begun = performance.now();
    const send = (): void => {
      if (sent < count) socket.send(questionOf(sent++));
    };
    socket.on('message', () => {
      if (++received < count) {
        send();
        return;
      }
      clearTimeout(timer);
      socket.close();
      resolve(((performance.now() - begun) / count) * 1000);
    });
    socket.once('error', reject);
    socket.connect(port, LOCAL, () => {
      for (let index = 0; index < WINDOW; index++) send();
    });
  });
}

export async function measureDns(say: (line: string) => void): Promise<readonly Row[]> {
  const [dns, echo] = [await startSide('dns'), await startSide('echo')];
  try {
    for (const { port } of [dns, echo]) await ask(port, WARM_UP);
    const [samples, floor]: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      samples.push(await ask(dns.port, COUNT));
      floor.push(await ask(echo.port, COUNT));
    }
    say(`dns: ${ROUNDS} rounds of ${COUNT} questions`);
    const name = 'nodelet dns: 1,000 questions of a cluster with 1,000 Services, beside a UDP echo';
    return [{ name, samples, floor, limitMs: LIMIT_MS }];
  } finally {
    dns.child.kill('SIGKILL');
    echo.child.kill('SIGKILL');
  }
}
