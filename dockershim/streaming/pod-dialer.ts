// Connections to ports of a pod's loopback, made by a process in the pod's network namespace (dialer.ts), one for each
// port-forward.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./dialer.ts', import.meta.url));

interface Answer {
  readonly id: number;
  readonly error?: string;
}

export class PodDialer {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve: (socket: Socket) => void; reject: (error: Error) => void }>();
  #next = 0;

  /** `pid`: a process in the namespace. */
  constructor(pid: number) {
    this.#child = spawn('nsenter', [`--net=/proc/${pid}/ns/net`, process.execPath, '--no-warnings', PROGRAM], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    this.#child.on('message', (answer, socket) => this.#answer(answer as Answer, socket as Socket | undefined));
    this.#child.on('error', (error) => this.#fail(error));
    this.#child.on('exit', () => this.#fail(new Error('the process in the pod’s network namespace has ended')));
  }

  #answer({ id, error }: Answer, socket: Socket | undefined): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (waiting === undefined) socket?.destroy();
    else if (socket !== undefined) {
      socket.allowHalfOpen = true;
      waiting.resolve(socket);
    } else waiting.reject(new Error(error ?? 'the connection was lost'));
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  connect(port: number): Promise<Socket> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      if (!this.#child.connected) {
        reject(new Error('the process in the pod’s network namespace has ended'));
        return;
      }
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, port });
    });
  }

  close(): void {
    if (this.#child.connected) this.#child.disconnect();
    this.#child.kill('SIGKILL');
  }
}
