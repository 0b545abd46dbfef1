// The floor of the API server's measurements, with the same connections: the raw store behind HTTPS, and nothing else. No
// authentication but the handshake's, no authorization, no admission, no validation, no managed fields; a body is stored as it is.
//
//   sh scripts/node24 test/bench/apiserver/raw-server.ts <directory>
//
// It answers the requests of pods.ts: GET of a pod and of all of them, a watch of all, POST, PATCH (reads the pod, sets one
// annotation, stores it) and DELETE.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { ensurePki } from '../../../apiserver/main.ts';
import { writeKubeconfig } from '../../../apiserver/pki/kubeconfig.ts';
import { parseObject } from '../../../apiserver/storage/change.ts';
import { Store } from '../../../apiserver/storage/store.ts';
import { systemClock } from '../../../lib/clock.ts';
import { PODS } from './pods.ts';
import { RAW_READY } from './server.ts';

const [root = ''] = process.argv.slice(2);
const store = new Store(join(root, 'raw.db'), { clock: systemClock });
const keyOf = (name: string) => ({ resource: '/pods', namespace: 'default', name });

function need(name: string) {
  const stored = store.get(keyOf(name));
  if (stored === undefined) throw new Error(`no pod ${name}`);
  return stored;
}

function create(text: string): string {
  const object = parseObject(text);
  return store.put(keyOf(object.metadata.name ?? ''), object).text;
}

function patch(name: string, text: string): string {
  const stored = need(name);
  const object = parseObject(stored.text);
  const { metadata } = parseObject(text);
  object.metadata.annotations = { ...object.metadata.annotations, ...metadata.annotations };
  return store.put(keyOf(name), object, stored).text;
}

function remove(name: string): string {
  const stored = need(name);
  return store.remove(keyOf(name), parseObject(stored.text), stored).text;
}

function listText(): string {
  return `{"items":[${Array.from(store.scan('/pods', 'default'), ({ text }) => text).join(',')}]}`;
}

/** Every later change, a line each. */
function watch(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  response.flushHeaders();
  const end = store.subscribe('/pods', (change) => {
    const line = (): string => `{"type":"${change.record.type}","object":${change.record.text}}\n`;
    response.write(change.encoded('raw', line));
  });
  response.once('close', end);
}

function answer(method: string, url: string, body: string): string {
  const [path = ''] = url.split('?');
  const name = path.slice(PODS.length + 1);
  if (method === 'POST') return create(body);
  if (method === 'PATCH') return patch(name, body);
  if (method === 'DELETE') return remove(name);
  return name === '' ? listText() : need(name).text;
}

function serve(request: IncomingMessage, response: ServerResponse): void {
  const { method = 'GET', url = '/' } = request;
  if (url.includes('watch=')) {
    watch(response);
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.once('end', () => {
    const text = Buffer.from(answer(method, url, Buffer.concat(chunks).toString()));
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': text.length }).end(text);
  });
}

const names = { hosts: ['127.0.0.1'], nodeName: 'bench', now: systemClock.now() };
const pki = await ensurePki(join(root, 'pki'), names);
const { cert, key } = pki.serving;
const server = createServer({ cert, key, ca: pki.ca.cert, requestCert: true, rejectUnauthorized: true }, serve);
server.listen(0, '127.0.0.1', async () => {
  const address = server.address();
  const port = address === null || typeof address === 'string' ? 0 : address.port;
  const client = pki.clients.admin;
  const access = { server: `https://127.0.0.1:${port}`, ca: pki.ca.cert, user: 'admin', client };
  await writeKubeconfig(join(root, 'kubeconfig'), access);
  process.stdout.write(`${RAW_READY}\n`);
});
process.once('SIGTERM', () => {
  server.closeAllConnections();
  server.close(() => {
    store.close();
    process.exit(0);
  });
});
