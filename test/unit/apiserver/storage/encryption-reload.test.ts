// --encryption-provider-config-automatic-reload: keys that come, change places and go while the server runs.

import { writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { at, TestApiServer } from '../../../support/api-server.ts';

const SECRETS = '/api/v1/namespaces/default/secrets';
const key = (byte: number): string => Buffer.alloc(32, byte).toString('base64');
/** More than the pause in the writes that is waited for, and less than what is between two renewals of the server’s own Lease, which are writes. ms. */
const MAINTENANCE_MS = 3_000;

let directory: string;
let file: string;
let stand: TestApiServer | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-reload-'));
  file = join(directory, 'encryption.json');
});
afterEach(async () => {
  await stand?.stop();
  stand = undefined;
  await rm(directory, { recursive: true, force: true });
});

/** "key1=1,key2=2" of aescbc, then "identity" where it is wanted. */
function configure(keys: string, identity: 'first' | 'last' | 'none'): void {
  const list = keys.split(',').map((one) => {
    const [name = '', byte = ''] = one.split('=');
    return { name, secret: key(Number(byte)) };
  });
  const plain = { identity: {} };
  const cipher = { aescbc: { keys: list } };
  const providers = identity === 'first' ? [plain, cipher] : identity === 'last' ? [cipher, plain] : [cipher];
  const rule = { resources: ['secrets'], providers };
  const kind = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'EncryptionConfiguration' };
  writeFileSync(file, JSON.stringify({ ...kind, resources: [rule] }));
}

async function start(): Promise<TestApiServer> {
  stand = await TestApiServer.start({ encryptionProviderConfig: file, encryptionReload: true });
  return stand;
}

const secret = (name: string) => ({ metadata: { name }, stringData: { value: `plain-text-of-${name}` } });

async function stored(server: TestApiServer, text: string): Promise<boolean> {
  const files = [server.storePath, `${server.storePath}-wal`];
  return (await Promise.all(files.map((one) => readFile(one)))).some((bytes) => bytes.includes(text));
}

it('a key that comes first writes from then on, and what is written anew leaves nothing of before', async () => {
  configure('key1=1', 'first');
  const server = await start();
  const again = (): number => server.lines.filter((line) => line.includes('was read again')).length;
  const renewed = (): number => server.lines.filter((line) => line.includes('was written anew')).length;
  const before = renewed();
  await server.admit('POST', SECRETS, secret('a'));
  const plain = Buffer.from('plain-text-of-a').toString('base64');
  expect(await stored(server, plain)).toBe(true);
  configure('key1=1', 'last');
  await expect.poll(again).toBe(1);
  await server.admit('POST', SECRETS, secret('b'));
  expect(await stored(server, 'k8s:enc:aescbc:v1:key1:')).toBe(true);
  // What is stored already is read as it is, until it is written.
  const old = await server.admit('GET', `${SECRETS}/a`);
  expect(at(old, 'data', 'value')).toBe(plain);
  await server.admit('PUT', `${SECRETS}/a`, old);
  await expect
    .poll(() => {
      server.clock.elapse(MAINTENANCE_MS);
      return renewed();
    })
    .toBe(before + 1);
  expect(await stored(server, plain)).toBe(false);
  // The other key takes its place; the first one reads still.
  configure('key2=2,key1=1', 'none');
  await expect.poll(again).toBe(2);
  await server.admit('POST', SECRETS, secret('c'));
  expect(await stored(server, 'k8s:enc:aescbc:v1:key2:')).toBe(true);
  const list = await server.admit('GET', SECRETS);
  expect(at(list, 'items')).toHaveLength(3);
  // Without it, what it wrote cannot be read.
  configure('key2=2', 'none');
  await expect.poll(again).toBe(3);
  const { code, text } = await server.call({ path: `${SECRETS}/a`, as: server.admin });
  expect([code, text]).toEqual([500, expect.stringContaining('no matching key was found')]);
  expect((await server.call({ path: `${SECRETS}/c`, as: server.admin })).code).toBe(200);
});

it('a file that is not valid changes nothing, and the flag needs the file', async () => {
  configure('key1=1', 'none');
  const server = await start();
  await server.admit('POST', SECRETS, secret('a'));
  writeFileSync(file, 'kind: Nothing\n');
  await expect.poll(() => server.lines.some((line) => line.includes('error processing encryption config'))).toBe(true);
  await server.admit('POST', SECRETS, secret('b'));
  expect(at(await server.admit('GET', SECRETS), 'items')).toHaveLength(2);
  await expect(TestApiServer.start({ encryptionReload: true })).rejects.toThrow(
    '--encryption-provider-config-automatic-reload must be set with --encryption-provider-config',
  );
});
