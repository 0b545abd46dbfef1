// The socket on which a lab with several nodes is controlled: HTTP, in a directory that root alone may enter. `nodelet node` is its client.
// GET /nodes; POST /nodes with {name, zone}; POST /nodes/NAME/{stop,start,kill,partition,heal}.

import { mkdir, rm } from 'node:fs/promises';
import type { IncomingMessage, Server } from 'node:http';
import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { errorMessage, isErrno, UserError } from '../../../lib/errors.ts';
import { createServer, request } from '../../../lib/node-http.ts';
import type { NodeActions, NodeView } from './actions.ts';

const NODE_ACTIONS = ['stop', 'start', 'kill', 'partition', 'heal'] as const;
export type NodeAction = (typeof NODE_ACTIONS)[number];

/** A name and a zone need less. */
const BODY_BYTES = 4096;

export type ControlRequest =
  | { readonly kind: 'list' }
  | { readonly kind: 'add' }
  | { readonly kind: 'node'; readonly name: string; readonly action: NodeAction };

/** Undefined for a request that is none. Pure. */
export function parseControlRequest(method: string | undefined, url: string | undefined): ControlRequest | undefined {
  if (url === '/nodes') return method === 'GET' ? { kind: 'list' } : method === 'POST' ? { kind: 'add' } : undefined;
  const [, name, word] = /^\/nodes\/([^/?]+)\/([a-z]+)$/.exec(url ?? '') ?? [];
  const action = NODE_ACTIONS.find((each) => each === word);
  if (method !== 'POST' || name === undefined || action === undefined) return undefined;
  return { kind: 'node', name: decoded(name), action };
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
export async function serveControl(socket: string, actions: NodeActions): Promise<{ close(): Promise<void> }> {
  await mkdir(dirname(socket), { recursive: true, mode: 0o700 });
  await rm(socket, { force: true });
  const server = createServer((incoming, response) => {
    const reply = (code: number, body: unknown): void => {
      response.writeHead(code, { 'content-type': 'application/json' });
      response.end(`${JSON.stringify(body)}\n`);
    };
    perform(incoming, actions).then(
      (body) => reply(body === undefined ? 404 : 200, body ?? { message: 'there is no such request' }),
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

async function perform(incoming: IncomingMessage, actions: NodeActions): Promise<unknown> {
  const received = parseControlRequest(incoming.method, incoming.url);
  if (received === undefined) return undefined;
  if (received.kind === 'list') return actions.list();
  if (received.kind === 'add') return actions.add(wanted(await bodyOf(incoming)));
  await actions[received.action](received.name);
  return actions.list().find(({ name }) => name === received.name);
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  if (Number(incoming.headers['content-length'] ?? '0') > BODY_BYTES) throw new UserError('the request is too long');
  return text(incoming);
}

/** Throws UserError for what is no JSON object with strings. Pure. */
export function wanted(body: string): { readonly name?: string; readonly zone?: string } {
  if (body.trim() === '') return {};
  const value: unknown = parseJson(body);
  if (typeof value !== 'object' || value === null) throw new UserError('the request is not a JSON object');
  const [name, zone] = [field(value, 'name'), field(value, 'zone')];
  return { ...(name === undefined ? {} : { name }), ...(zone === undefined ? {} : { zone }) };
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    if (error instanceof SyntaxError) throw new UserError('the request is not JSON');
    throw error;
  }
}

function field(object: object, name: string): string | undefined {
  const value: unknown = Reflect.get(object, name);
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw new UserError(`${name} is not a string`);
  return value;
}

/** Sends one request to the lab at `socket`. Rejects with UserError: no such lab runs, or it refuses. */
export async function sendControlRequest(
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
  if (isErrno(error, 'EACCES')) return 'must be root: only root controls the nodes of a lab';
  if (isErrno(error, 'ENOENT', 'ECONNREFUSED')) {
    return 'no lab with several nodes runs there: start one with nodelet up --nodes 3';
  }
  return isErrno(error, 'ECONNRESET', 'EPIPE') ? 'the lab ended before it had done what was requested' : undefined;
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
