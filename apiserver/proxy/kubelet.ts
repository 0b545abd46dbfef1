// The connection to a node's kubelet, with the server's own client certificate. Where it is, is node-address.ts; which request goes
// there pods.ts; upgraded connections are tunnel.ts.

import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { connect as connectTcp, Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { errorMessage } from '../../lib/errors.ts';
import type { Tracer } from '../../lib/trace.ts';
import { StatusError } from '../errors.ts';
import { hostPort, type KubeletAddress } from './node-address.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** A kubelet that has the connection answers an upgrade within this time. */
const ANSWER_TIMEOUT_MS = 60_000;

export interface KubeletCredential {
  readonly cert: string;
  readonly key: string;
}

export class KubeletClient {
  readonly #credential: KubeletCredential;
  readonly #tracer: Tracer;
  readonly #agent: Agent;

  constructor(credential: KubeletCredential, tracer: Tracer) {
    this.#credential = credential;
    this.#tracer = tracer;
    this.#agent = new Agent({ keepAlive: false });
  }

  /** What TLS needs. Kubelets serve with certificates of their own making, which the real server does not check either. */
  #tls(address: KubeletAddress): { host: string; port: number; cert: string; key: string; rejectUnauthorized: false } {
    return { ...address, ...this.#credential, rejectUnauthorized: false };
  }

  /** Sends a request and resolves with the response once its head is there. Rejects with a 500 Status when it cannot. */
  request(
    address: KubeletAddress,
    method: string,
    path: string,
    headers: Readonly<Record<string, string | string[]>>,
    body: Uint8Array | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const attributes = { address: hostPort(address), path };
    return this.#tracer.span('api', `${method} kubelet ${path.split('?')[0]}`, attributes, () => {
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      // Node leaves the length out where a body is unusual (DELETE), and the kubelet would read none.
      const sized = body === undefined ? headers : { ...headers, 'content-length': String(body.length) };
      const outgoing = httpsRequest(
        { ...this.#tls(address), agent: this.#agent, method, path, headers: sized, signal },
        resolve,
      );
      outgoing.on('socket', (socket) => {
        socket.setTimeout(CONNECT_TIMEOUT_MS, () => outgoing.destroy(new Error('i/o timeout')));
        socket.once('secureConnect', () => socket.setTimeout(0));
      });
      outgoing.on('error', (error) => reject(unreachable(method, address, path, error)));
      outgoing.end(body);
      return promise;
    });
  }

  /** A SPDY connection with the protocol. Rejects with the kubelet's refusal as `refuse` words it, or a 500 Status. */
  spdy(
    address: KubeletAddress,
    path: string,
    protocol: string,
    refuse: (response: IncomingMessage) => Promise<StatusError>,
  ): Promise<{ readonly socket: Socket; readonly head: Buffer }> {
    const attributes = { address: hostPort(address), path };
    return this.#tracer.span('api', `SPDY kubelet ${path.split('?')[0]}`, attributes, () => {
      const { promise, resolve, reject } = Promise.withResolvers<{ socket: Socket; head: Buffer }>();
      const headers = {
        ...{ connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': protocol },
        'content-length': '0',
      };
      const outgoing = httpsRequest({ ...this.#tls(address), agent: this.#agent, method: 'POST', path, headers });
      outgoing.setTimeout(ANSWER_TIMEOUT_MS, () => outgoing.destroy(new Error('i/o timeout')));
      outgoing.once('upgrade', (_response, socket, head) => {
        if (!(socket instanceof Socket)) return reject(new TypeError('an upgraded connection without a socket'));
        socket.setTimeout(0);
        resolve({ socket, head });
      });
      outgoing.once('response', (response) => void refuse(response).then(reject, reject));
      outgoing.on('error', (error) => reject(unreachable('POST', address, path, error)));
      outgoing.end();
      return promise;
    });
  }

  /** A TLS connection, for raw bytes. Rejects with a 500 Status when there is none within ten seconds. */
  connect(address: KubeletAddress, method: string, path: string): Promise<TLSSocket> {
    const attributes = { address: hostPort(address), path };
    return this.#tracer.span('api', `UPGRADE kubelet ${path.split('?')[0]}`, attributes, () => {
      const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
      // Half-open, so that a client which has closed its side still receives the response.
      const transport = connectTcp({ ...address, allowHalfOpen: true });
      const socket = connect({ ...this.#tls(address), socket: transport });
      const fail = (error: Error): void => {
        socket.destroy();
        reject(unreachable(method, address, path, error));
      };
      transport.setTimeout(CONNECT_TIMEOUT_MS, () => fail(new Error('i/o timeout')));
      transport.once('error', fail);
      socket.once('error', fail);
      socket.once('secureConnect', () => {
        transport.setTimeout(0);
        transport.setNoDelay(true);
        socket.removeListener('error', fail);
        resolve(socket);
      });
      return promise;
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function unreachable(method: string, address: KubeletAddress, path: string, error: unknown): StatusError {
  const verb = method.charAt(0) + method.slice(1).toLowerCase();
  const url = `https://${hostPort(address)}${path}`;
  const message = `${verb} "${url}": ${errorMessage(error)}`;
  return new StatusError(500, 'InternalError', `error dialing backend: ${message}`, { causes: [{ message }] });
}
