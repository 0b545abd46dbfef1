// Connections with an Upgrade (SPDY, WebSocket): the same checks as any request, then the tunnel to the kubelet. Works
// on the raw socket, because the HTTP library hands it over; refusals are written by hand.

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';
import { finishSocket } from '../../lib/finish-connection.ts';
import type { AggregationProxy } from '../aggregation/proxy.ts';
import { badRequest } from '../errors.ts';
import type { RequestProxy } from '../proxy/types.ts';
import type { Reply } from './exchange.ts';
import type { Handler } from './handler.ts';

/** A whole HTTP/1.1 response that ends the connection. Pure. */
export function rawResponse(reply: Pick<Reply, 'code' | 'contentType' | 'body'>, phrase: string): Buffer {
  const body = Buffer.from(reply.body);
  const head = [
    `HTTP/1.1 ${reply.code} ${phrase}`,
    `Content-Type: ${reply.contentType}`,
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]);
}

export interface UpgradeParts {
  readonly handler: Handler;
  readonly proxy: RequestProxy;
  readonly aggregation: AggregationProxy;
  readonly clock: Clock;
}

/** Tunnels the connection to the kubelet, or to another API server, or responds with the refusal. Never throws. */
export async function handleUpgrade(
  { handler, proxy, aggregation, clock }: UpgradeParts,
  message: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  // The HTTP library has removed its handlers; without this one a reset would end the process.
  socket.on('error', () => socket.destroy());
  let code: number | undefined;
  try {
    const admitted = await handler.receive(message, (visit) => socket.once('close', () => visit.end(code)));
    const { parsed: request, visit, caller } = admitted;
    const elsewhere = aggregation.serviceFor(request);
    if (elsewhere !== undefined) await aggregation.upgrade(elsewhere, caller, message, socket, head);
    else {
      if (request.kind !== 'resource') throw badRequest('this path cannot be upgraded');
      await handler.admitConnection(request, admitted);
      await proxy.upgrade(request, message, socket, head);
    }
    code = 101;
    visit.audit?.started(code);
  } catch (error) {
    const reply = await handler.failure(error, message);
    code = reply.code;
    finishSocket(socket, rawResponse(reply, reply.code === 400 ? 'Bad Request' : 'Refused'), clock);
  }
}
