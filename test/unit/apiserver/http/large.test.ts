// Large requests that follow large responses on the same connection, as fast as a client can send them: each is answered.
// The server has a thread of its own, or it could never be behind its client.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BodiesServer } from '../../../hostile/bodies/server.ts';

let directory: string;
let server: BodiesServer;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-large-'));
  server = await BodiesServer.start(directory);
});
afterAll(async () => {
  await server?.close();
  await rm(directory, { recursive: true, force: true });
});

test('each of many large objects is made, over connections that are used again', async () => {
  const create = async (name: string): Promise<number> => {
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data: { a: 'x'.repeat(1_000_000) } };
    const path = '/api/v1/namespaces/default/configmaps';
    const { code } = await server.send({
      method: 'POST',
      path,
      contentType: 'application/json',
      body: JSON.stringify(object),
    });
    return code;
  };
  const codes = await Promise.all(
    Array.from({ length: 4 }, async (_, lane) => {
      const own: number[] = [];
      for (let round = 0; round < 10; round++) own.push(await create(`large-${lane}-${round}`));
      return own;
    }),
  );
  expect(codes.flat()).toEqual(Array.from({ length: 40 }, () => 201));
});
