import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { httpAnswer } from '../../../lib/http-answer.ts';

const servers: { close: () => unknown }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

const never = new AbortController().signal;

it('has status and headers, of a redirect as of any other, and does not wait for the body', async () => {
  const port = await listen(
    createServer((_request, response) => {
      response.writeHead(302, { location: 'http://elsewhere/', 'x-registry': 'yes' });
      // It never ends.
      response.write('a part of a body');
    }),
  );
  const answer = await httpAnswer(`http://127.0.0.1:${port}/v2/`, never);
  expect(answer).toMatchObject({ status: 302, headers: { 'x-registry': 'yes' } });
});

it('is undefined where nothing listens, for what is no HTTP, and for HTTPS that is plain', async () => {
  const port = await listen(createTcpServer((socket) => socket.end('SSH-2.0-nothing\r\n')));
  for (const scheme of ['http', 'https']) {
    expect(await httpAnswer(`${scheme}://127.0.0.1:${port}/`, never)).toBeUndefined();
  }
  // Nothing listens there: a port that was free a moment ago may be another program's by now.
  expect(await httpAnswer('http://127.0.0.1:1/', never)).toBeUndefined();
});

it('is undefined when the signal aborts first', async () => {
  const giveUp = new AbortController();
  const port = await listen(createTcpServer(() => giveUp.abort()));
  expect(await httpAnswer(`http://127.0.0.1:${port}/`, giveUp.signal)).toBeUndefined();
});
