// The method CONNECT, which only HTTP/2 brings here: there is nothing to connect to. Who may not (the verb "connect" on the path "")
// is 401 or 403, everybody else gets 404, as from kube-apiserver.

import type { Clock } from '../../lib/clock.ts';
import { sendResponse } from '../../lib/finish-connection.ts';
import type { HttpRequest, HttpResponse } from '../../lib/http-message.ts';
import type { Handler } from './handler.ts';
import { PATH_NOT_FOUND } from './paths.ts';

/** Never rejects. */
export async function refuseConnect(
  handler: Handler,
  request: HttpRequest,
  response: HttpResponse,
  clock: Clock,
): Promise<void> {
  const refusal = await handler
    .receive(request, (visit) => response.once('close', () => visit.end(response.statusCode)))
    .then(() => PATH_NOT_FOUND)
    .catch((error: unknown) => handler.failure(error, request));
  const { code, contentType, body, headers } = refusal;
  sendResponse(response, code, { ...headers, 'content-type': contentType }, Buffer.from(body), clock);
}
