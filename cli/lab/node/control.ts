// The socket on which a lab with several nodes takes orders: HTTP, in a directory that root alone may enter. `nodelet node` is its client.
// GET /nodes; POST /nodes with {name, zone}; POST /nodes/NAME/{stop,start,kill,partition,heal}.

import { mkdir, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { errorMessage, isErrno, UserError } from '../../../lib/errors.ts';
import type { NodeOrders, NodeView } from './orders.ts';

export const NODE_ORDERS = ['stop', 'start', 'kill', 'partition', 'heal'] as const;
export type NodeOrder = (typeof NODE_ORDERS)[number];

/** A name and a zone; more is no order. */
const BODY_BYTES = 4096;

export type Order =
  | { readonly kind: 'list' }
  | { readonly kind: 'add' }
  | { readonly kind: 'node'; readonly name: string; readonly order: NodeOrder };

/** Undefined for a request that is none. Pure. */
export function parseOrder(method: string | undefined, url: string | undefined): Order | undefined {
  if (url === '/nodes') return method === 'GET' ? { kind: 'list' } : method === 'POST' ? { kind: 'add' } : undefined;
  const [, name, word] = /^\/nodes\/([^/?]+)\/([a-z]+)$/.exec(url ?? '') ?? [];
  const order = NODE_ORDERS.find((each) => each === word);
  if (method !== 'POST' || name === undefined || order === undefined) return undefined;
  return { kind: 'node', name: decoded(name), order };
}

/** Names are as they were typed, so that the refusal of one shows it. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch (error) {
    if (error instanceof URIError) return name;
    throw error;
  }
}

/** Serves until `close`. Only root can connect: the directory is root's. */
export async function serveOrders(socket: string, orders: NodeOrders): Promise<{ close(): Promise<void> }> {
  await mkdir(dirname(socket), { recursive: true, mode: 0o700 });
  await rm(socket, { force: true });
  const server = createServer((incoming, response) => {
    const reply = (code: number, body: unknown): void => {
      response.writeHead(code, { 'content-type': 'application/json' });
      response.end(`${JSON.stringify(body)}\n`);
    };
    carryOut(incoming, orders).then(
      (body) => reply(body === undefined ? 404 : 200, body ?? { message: 'there is no such order' }),
      (error: unknown) => reply(error instanceof UserError ? 409 : 500, { message: errorMessage(error) }),
    );
  });
  await listening(server, socket);
  return {
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

function listening(server: Server, socket: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(socket, () => resolve());
  });
}

async function carryOut(incoming: IncomingMessage, orders: NodeOrders): Promise<unknown> {
  const order = parseOrder(incoming.method, incoming.url);
  if (order === undefined) return undefined;
  if (order.kind === 'list') return orders.list();
  if (order.kind === 'add') return orders.add(wanted(await bodyOf(incoming)));
  await orders[order.order](order.name);
  return orders.list().find(({ name }) => name === order.name);
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  if (Number(incoming.headers['content-length'] ?? '0') > BODY_BYTES) throw new UserError('the order is too long');
  return text(incoming);
}

/** Throws UserError for what is no JSON object with strings. Pure. */
export function wanted(body: string): { readonly name?: string; readonly zone?: string } {
  if (body.trim() === '') return {};
  const value: unknown = parseJson(body);
  if (typeof value !== 'object' || value === null) throw new UserError('the order is no JSON object');
  const [name, zone] = [field(value, 'name'), field(value, 'zone')];
  return { ...(name === undefined ? {} : { name }), ...(zone === undefined ? {} : { zone }) };
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    if (error instanceof SyntaxError) throw new UserError('the order is no JSON');
    throw error;
  }
}

function field(object: object, name: string): string | undefined {
  const value: unknown = Reflect.get(object, name);
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw new UserError(`${name} is no text`);
  return value;
}

/** Sends one order to the lab at `socket`. Rejects with UserError: no such lab runs, or it refuses. */
export async function sendOrder(
  socket: string,
  method: 'GET' | 'POST',
  path: string,
  body?: Readonly<Record<string, string>>,
): Promise<readonly NodeView[]> {
  const { code, answer } = await roundTrip(socket, method, path, body);
  const value: unknown = JSON.parse(answer);
  if (code === 200) return (Array.isArray(value) ? value : [value]) as readonly NodeView[];
  throw new UserError(typeof value === 'object' && value !== null ? (field(value, 'message') ?? answer) : answer);
}

function unsent(error: Error): string | undefined {
  if (isErrno(error, 'EACCES')) return 'must be root: orders to the nodes of a lab are taken from root alone';
  if (isErrno(error, 'ENOENT', 'ECONNREFUSED')) {
    return 'no lab with several nodes runs there: start one with nodelet up --nodes 3';
  }
  return isErrno(error, 'ECONNRESET', 'EPIPE') ? 'the lab ended before it had carried out the order' : undefined;
}

function roundTrip(
  socket: string,
  method: string,
  path: string,
  body: Readonly<Record<string, string>> | undefined,
): Promise<{ readonly code: number | undefined; readonly answer: string }> {
  return new Promise((resolve, reject) => {
    const content = body === undefined ? '' : JSON.stringify(body);
    const headers = { 'content-length': String(Buffer.byteLength(content)) };
    const outgoing = request({ socketPath: socket, method, path, headers }, (response) => {
      text(response).then((answer) => resolve({ code: response.statusCode, answer }), reject);
    });
    outgoing.once('error', (error) => {
      const why = unsent(error);
      reject(why === undefined ? error : new UserError(why));
    });
    outgoing.end(content);
  });
}
