// SPDY to a runtime's streaming URL, over an upgraded HTTP request. Unlike WebSocket's v4 channels it can end one direction of a
// stream, which `echo … | exec -i … cat` needs.

import { readFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { errorMessage, UserError } from '../../../lib/errors.ts';
import { request as httpRequest } from '../../../lib/node-http.ts';
import { SpdyConnection } from '../../../lib/spdy-connection.ts';

export { SpdyConnection, type SpdyHandlers, type SpdyStream } from '../../../lib/spdy-connection.ts';

export interface StreamTls {
  readonly serverName: string;
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export const MAX_ERROR_BODY = 64 * 1024;
export function tlsOptions(tls: StreamTls) {
  const { caFile, certFile, keyFile, serverName } = tls;
  // Without files the runtime's own certificate is taken as it is, as crictl does: the URL came over the CRI socket.
  if (caFile === '' && certFile === '' && keyFile === '') return { rejectUnauthorized: false };
  if (certFile === '' || keyFile === '') {
    throw new UserError('--tls-cert and --tls-key are both required for TLS streaming, --tls-ca is optional');
  }
  return {
    servername: serverName,
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    ...(caFile !== '' && { ca: readFileSync(caFile) }),
  };
}

export interface Upgraded {
  readonly connection: SpdyConnection;
  /** The one of `protocols` that the server took; "" when it did not say. */
  readonly protocol: string;
}

/** Connects to a streaming URL of a runtime. Rejects with UserError that says what the server answered. */
export function connectSpdy(url: URL, protocols: readonly string[], tls: StreamTls): Promise<Upgraded> {
  const headers = { Connection: 'Upgrade', Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': [...protocols] };
  const secure = url.protocol === 'https:';
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers: { ...headers, 'Content-Length': 0 }, agent: false as const };
    const request = secure ? httpsRequest(url, { ...options, ...tlsOptions(tls) }) : httpRequest(url, options);
    request.once('upgrade', (response, socket, head) => {
      const protocol = response.headers['x-stream-protocol-version'];
      // http gives the raw socket, which is a net.Socket (or a TLSSocket).
      const connection = new SpdyConnection(socket as Socket, head);
      resolve({ connection, protocol: typeof protocol === 'string' ? protocol : '' });
    });
    request.once('response', (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body = `${body}${chunk}`.slice(0, MAX_ERROR_BODY);
      });
      response.once('end', () => {
        reject(new UserError(`unable to upgrade connection: ${response.statusCode} ${body.trim()}`));
      });
    });
    request.once('error', (error) => {
      reject(new UserError(`error sending request: ${url.origin}: ${errorMessage(error)}`, { cause: error }));
    });
    request.end();
  });
}
