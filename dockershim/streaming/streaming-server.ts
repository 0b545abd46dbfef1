// The streaming server of CRI: Exec, Attach and PortForward hand out URLs of it, each good for one connection. On loopback
// only; who may call is decided by the client that passes the URL on (the kubelet).

import { randomBytes } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { finishSocket } from '../../lib/finish-connection.ts';
import type { Log } from '../../lib/log.ts';
import { createServer } from '../../lib/node-http.ts';
import type { Containers } from '../containers.ts';
import type { Handlers, Received } from '../cri-types.ts';
import type { Engine } from '../engine.ts';
import { CriError, invalid } from '../errors.ts';
import { type Execs, outputOf } from '../exec.ts';
import type { Sandboxes } from '../sandboxes.ts';
import { PORT_FORWARD_PROTOCOL, servePortForward, servePortForwardSocket } from './port-forward.ts';
import { exitStatus, failureStatus, REMOTE_COMMAND_PROTOCOL, type RemoteIo } from './remote-io.ts';
import { spdyIo } from './spdy-io.ts';
import { acceptWebSocket, offersChannels, websocketIo } from './websocket-io.ts';

/** containerd's: how long a URL that is not opened is valid. ms. */
const TOKEN_MS = 60_000;
const MAX_TOKENS = 1000;

type Job =
  | { readonly kind: 'exec'; readonly request: Received<'Exec'> }
  | { readonly kind: 'attach'; readonly request: Received<'Attach'> }
  | { readonly kind: 'portforward'; readonly request: Received<'PortForward'> };

export interface StreamingParts {
  readonly engine: Engine;
  readonly execs: Execs;
  readonly containers: Containers;
  readonly sandboxes: Sandboxes;
  readonly clock: Clock;
  readonly log: Log;
}

/** kubelets, crictl and kubectl ask for at least one stream, and for no stderr of a terminal. */
function checkStreams({ tty, stdin, stdout, stderr }: Omit<Received<'Exec'>, 'cmd' | 'container_id'>): void {
  if (tty && stderr) throw invalid('stderr', 'tty and stderr cannot both be true');
  if (!stdin && !stdout && !stderr) throw invalid('stdin', 'one of stdin, stdout, or stderr must be set');
}

/** The one of SPDY. */
function protocolOf({ kind }: Job): string {
  return kind === 'portforward' ? PORT_FORWARD_PROTOCOL : REMOTE_COMMAND_PROTOCOL;
}

/** How the connection is to be upgraded; or why it cannot be. */
function upgradeOf(request: IncomingMessage, job: Job): 'spdy' | 'websocket' | { readonly problem: string } {
  const protocol = protocolOf(job);
  const upgrade = (request.headers.upgrade ?? '').toLowerCase();
  if (upgrade === 'websocket') {
    if (!offersChannels(request)) return { problem: `only ${REMOTE_COMMAND_PROTOCOL} is served over WebSocket` };
    if (job.kind === 'portforward' && job.request.port.length === 0) {
      return { problem: 'over WebSocket the request has to name the ports' };
    }
    return 'websocket';
  }
  if (upgrade !== 'spdy/3.1')
    return { problem: `"${request.headers.upgrade}" is not served: SPDY/3.1 and websocket are` };
  const header = request.headers['x-stream-protocol-version'];
  const offered = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',').map((each) => each.trim());
  return offered.includes(protocol) ? 'spdy' : { problem: `of the stream protocols only ${protocol} is served` };
}

export class StreamingServer {
  readonly #parts: StreamingParts;
  readonly #server: Server;
  readonly #jobs = new Map<string, Job>();
  readonly #sockets = new Set<Duplex>();
  #origin = '';

  constructor(parts: StreamingParts) {
    this.#parts = parts;
    this.#server = createServer((_request, response) => {
      response.writeHead(400, { 'content-type': 'text/plain' }).end('an upgrade of the connection is required\n');
    });
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  get handlers(): Handlers {
    return {
      Exec: async (request) => {
        checkStreams(request);
        if (request.cmd.length === 0) throw invalid('cmd', 'missing');
        await this.#parts.containers.requireRunning(request.container_id);
        return { url: this.#url({ kind: 'exec', request }) };
      },
      Attach: async (request) => {
        checkStreams(request);
        await this.#parts.containers.requireRunning(request.container_id);
        return { url: this.#url({ kind: 'attach', request }) };
      },
      PortForward: async (request) => {
        const sandbox = await this.#parts.sandboxes.require(request.pod_sandbox_id);
        if (!sandbox.inspected.State.Running) {
          throw new CriError('FAILED_PRECONDITION', `sandbox container "${request.pod_sandbox_id}" is not running`);
        }
        return { url: this.#url({ kind: 'portforward', request }) };
      },
    };
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host: '127.0.0.1', port: 0 }, resolve);
    });
    const address = this.#server.address();
    if (typeof address !== 'object' || address === null) throw new TypeError('a TCP server has no address');
    this.#origin = `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #url(job: Job): string {
    if (this.#jobs.size >= MAX_TOKENS) throw new CriError('RESOURCE_EXHAUSTED', 'too many streams wait to be opened');
    const token = randomBytes(16).toString('base64url');
    this.#jobs.set(token, job);
    this.#parts.clock.after(TOKEN_MS, () => this.#jobs.delete(token));
    return `${this.#origin}/${job.kind}/${token}`;
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { clock, log } = this.#parts;
    const refuse = (status: string, message: string): void =>
      finishSocket(
        socket,
        `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(message)}\r\n` +
          `Connection: close\r\n\r\n${message}`,
        clock,
      );
    const [, kind, token = ''] = (request.url ?? '').split('?')[0]?.split('/') ?? [];
    const job = this.#jobs.get(token);
    if (job === undefined || job.kind !== kind) {
      refuse('404 Not Found', 'there is no such stream, or it was opened before\n');
      return;
    }
    const upgrade = upgradeOf(request, job);
    if (typeof upgrade === 'object') {
      refuse('403 Forbidden', `unable to upgrade: ${upgrade.problem}\n`);
      return;
    }
    this.#jobs.delete(token);
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    socket.allowHalfOpen = true;
    if (upgrade === 'spdy') {
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n' +
          `X-Stream-Protocol-Version: ${protocolOf(job)}\r\n\r\n`,
      );
    }
    void this.#serve(job, upgrade, request, socket, head).catch((error: unknown) => {
      log('debug', `${job.kind} ended early`, { error: errorMessage(error) });
      socket.destroy();
    });
  }

  async #serve(job: Job, upgrade: 'spdy' | 'websocket', request: IncomingMessage, socket: Duplex, head: Buffer) {
    if (job.kind === 'portforward') {
      const { inspected } = await this.#parts.sandboxes.require(job.request.pod_sandbox_id);
      const { Pid: pid } = inspected.State;
      if (upgrade === 'spdy') await servePortForward(socket, head, pid);
      else await servePortForwardSocket(await acceptWebSocket(request, socket, head), pid, job.request.port);
      return;
    }
    const io =
      upgrade === 'spdy'
        ? await spdyIo(socket, head, job.request, this.#parts.clock)
        : await websocketIo(request, socket, head, job.request.stdin);
    let status: string;
    try {
      status = job.kind === 'exec' ? await this.#exec(job.request, io) : await this.#attach(job.request, io);
    } catch (error) {
      status = failureStatus(errorMessage(error));
    }
    io.finish(status);
  }

  /** Copies both ways until the process' output ends or the client has gone. Returns the beginning of the output. */
  async #copy(stream: Duplex, io: RemoteIo, tty: boolean, isRefusal: (text: string) => boolean): Promise<string> {
    const stop = (): void => void stream.destroy();
    io.gone.addEventListener('abort', stop, { once: true });
    stream.on('error', stop);
    // The end of the input ends the process' input, and no more.
    io.stdin?.pipe(stream);
    let first: string | undefined;
    for await (const { stream: name, data } of outputOf(stream, tty)) {
      const text = first === undefined ? data.toString('utf8', 0, 4096) : '';
      first ??= text;
      // Docker's words in place of a process are no output: they go into the Status.
      if (isRefusal(text)) continue;
      await io.write(name, data);
    }
    io.stdin?.unpipe(stream);
    return first ?? '';
  }

  async #exec({ container_id, cmd, tty, stdin }: Received<'Exec'>, io: RemoteIo): Promise<string> {
    const { execs, log } = this.#parts;
    const execution = await execs.start({ containerId: container_id, command: cmd, tty, stdin });
    io.onResize(({ width, height }) => {
      execs.resize(execution.id, { w: width, h: height }).catch((error: unknown) => {
        // The process has not begun yet, or has ended.
        log('debug', 'a terminal was not resized', { error: errorMessage(error) });
      });
    });
    if (!stdin) execution.stream.end();
    const first = await this.#copy(execution.stream, io, tty, (text) => text.startsWith('OCI runtime exec failed'));
    return exitStatus(await execs.exitCode(execution.id, first));
  }

  async #attach({ container_id, stdin, tty, stdout, stderr }: Received<'Attach'>, io: RemoteIo): Promise<string> {
    const { engine, containers, log } = this.#parts;
    const { inspected } = await containers.requireRunning(container_id);
    const { Id: id, Config } = inspected;
    if (tty !== Config.Tty) throw invalid('tty', `the container has ${Config.Tty ? 'a' : 'no'} terminal`);
    const stream = await engine.call('ContainerAttach', { container: id }, (docker) =>
      docker.getContainer(id).attach({ stream: true, hijack: true, stdin, stdout, stderr: stderr || tty, logs: false }),
    );
    io.onResize(({ width, height }) => {
      const size = { w: width, h: height };
      engine
        .call('ContainerResize', { container: id }, (docker) => docker.getContainer(id).resize(size))
        .catch((error: unknown) => log('debug', 'a terminal was not resized', { error: errorMessage(error) }));
    });
    await this.#copy(stream as Duplex, io, tty, () => false);
    return exitStatus(0);
  }
}
