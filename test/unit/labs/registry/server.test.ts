// The registry over HTTP, as a client of the distribution API sees it.

import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseImageDefinition } from '../../../../labs/images/definition.ts';
import { buildOciImage, type OciImage } from '../../../../labs/images/oci.ts';
import { writeTar } from '../../../../labs/images/tar.ts';
import { ACCOUNT } from '../../../../labs/registry/access.ts';
import { Catalog } from '../../../../labs/registry/catalog.ts';
import { RegistryServer } from '../../../../labs/registry/server.ts';
import { systemClock } from '../../../../lib/clock.ts';
import { UserError } from '../../../../lib/errors.ts';

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}
interface Manifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

const NAMES = ['docker.io/library/tiny:stable', 'docker.io/library/tiny:latest'];
const layer = writeTar([
  { type: 'file', path: 'hello', mode: 0o644, uid: 0, gid: 0, data: Buffer.alloc(200_000, 'x') },
]);
let directory: string;
let built: OciImage;
let archives = 0;
let server: RegistryServer;
let base: string;
const lines: string[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-registry-unit-'));
  built = buildOciImage(parseImageDefinition(`names: [${NAMES.join(', ')}]`, 'tiny.yaml'), layer, 'amd64');
  const path = join(directory, 'tiny.tar');
  await writeFile(path, built.archive);
  const tiny = {
    names: NAMES,
    archive: async () => {
      archives++;
      return path;
    },
  };
  const broken = {
    names: ['docker.io/library/broken:1'],
    archive: async () => {
      throw new UserError('no package can be had');
    },
  };
  const reachable = new Set<string>();
  server = new RegistryServer({
    catalog: new Catalog({ images: async () => [tiny, broken], reachable, paddingBytes: 100_000 }),
    reachable,
    slowBytesPerSecond: 10_000_000,
    limit: { pulls: 2, windowMs: 600_000 },
    clock: systemClock,
    log: (_level, line, fields) => lines.push(`${line} ${fields?.['status']}`),
  });
  base = `http://127.0.0.1:${await server.listen('127.0.0.1', 0)}`;
});
afterAll(async () => {
  await server?.close();
  await rm(directory, { recursive: true, force: true });
});

const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
  fetch(`${base}${path}`, { headers, method });
const textOf = async (path: string): Promise<string> => (await get(path)).text();
const sha = (data: ArrayBuffer): string => `sha256:${createHash('sha256').update(Buffer.from(data)).digest('hex')}`;
const codes = async (response: Response): Promise<unknown> => {
  const body: { readonly errors: readonly { readonly code: string }[] } = JSON.parse(await response.text());
  return [response.status, ...body.errors.map(({ code }) => code)];
};
const basic = `Basic ${Buffer.from(`${ACCOUNT.user}:${ACCOUNT.password}`).toString('base64')}`;

/** As a client does it: the token endpoint of the challenge, by GET. */
async function tokenFor(path: string, headers: Record<string, string> = {}): Promise<string> {
  const challenged = await get(path);
  expect(challenged.status).toBe(401);
  const header = challenged.headers.get('www-authenticate') ?? '';
  const [, realm = '', service = '', scope = ''] =
    /^Bearer realm="([^"]+)",service="([^"]+)",scope="([^"]+)"$/.exec(header) ?? [];
  const url = `${realm}?${new URLSearchParams({ service, scope })}`;
  const { token }: { token: string } = JSON.parse(await (await fetch(url, { headers })).text());
  return `Bearer ${token}`;
}

describe('an image', () => {
  it('is there by tag and by digest, with a manifest, a config and a layer of the digests named', async () => {
    const byTag = await get('/v2/library/tiny/manifests/latest?ns=docker.io');
    expect(byTag.headers.get('docker-content-digest')).toBe(built.digest);
    expect(byTag.headers.get('content-type')).toBe('application/vnd.oci.image.manifest.v1+json');
    expect(sha(await byTag.clone().arrayBuffer())).toBe(built.digest);
    expect(await (await get(`/v2/library/tiny/manifests/${built.digest}`)).text()).toBe(await byTag.clone().text());
    const manifest: Manifest = JSON.parse(await byTag.text());
    for (const { digest, size, mediaType } of [manifest.config, ...manifest.layers]) {
      const blob = await get(`/v2/library/tiny/blobs/${digest}`);
      expect([blob.status, blob.headers.get('content-type')]).toEqual([200, mediaType]);
      const data = await blob.arrayBuffer();
      expect([data.byteLength, sha(data)]).toEqual([size, digest]);
    }
  });

  it('is described by HEAD, without its bytes', async () => {
    const head = await get('/v2/library/tiny/manifests/stable', {}, 'HEAD');
    expect(head.headers.get('docker-content-digest')).toBe(built.digest);
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(100);
    expect(await head.text()).toBe('');
  });

  it('is continued from any byte', async () => {
    const manifest: Manifest = JSON.parse(await textOf('/v2/library/tiny/manifests/stable'));
    const { digest = '' } = manifest.layers[0] ?? {};
    const part = await get(`/v2/library/tiny/blobs/${digest}`, { range: 'bytes=700-' });
    expect(part.status).toBe(206);
    expect(part.headers.get('content-range')).toBe(`bytes 700-${layer.length - 1}/${layer.length}`);
    expect(Buffer.from(await part.arrayBuffer()).equals(layer.subarray(700))).toBe(true);
    const behind = await get(`/v2/library/tiny/blobs/${digest}`, { range: `bytes=${layer.length}-` });
    expect(await codes(behind)).toEqual([416, 'RANGE_INVALID']);
  });

  it('has tags, in pages where the client wants them', async () => {
    expect(await (await get('/v2/library/tiny/tags/list')).json()).toEqual({
      name: 'library/tiny',
      tags: ['latest', 'stable'],
    });
    const page = await get('/v2/library/tiny/tags/list?n=1');
    expect(page.headers.get('link')).toBe('</v2/library/tiny/tags/list?n=1&last=latest>; rel="next"');
    expect(await (await get('/v2/library/tiny/tags/list?n=1&last=latest')).json()).toMatchObject({ tags: ['stable'] });
  });

  it('has its archive looked for once', () => expect(archives).toBe(1));
});

it('lists its repositories', async () => {
  const { repositories }: { repositories: string[] } = JSON.parse(await textOf('/v2/_catalog'));
  expect(repositories).toEqual(expect.arrayContaining(['library/tiny', 'limited/tiny', 'private/tiny', 'slow/tiny']));
});

it.each([
  ['/v2/library/tiny/manifests/none?ns=docker.io', [404, 'MANIFEST_UNKNOWN']],
  [`/v2/library/tiny/manifests/sha256:${'0'.repeat(64)}`, [404, 'MANIFEST_UNKNOWN']],
  [`/v2/library/tiny/blobs/sha256:${'0'.repeat(64)}`, [404, 'BLOB_UNKNOWN']],
  ['/v2/library/none/manifests/latest', [404, 'NAME_UNKNOWN']],
  ['/v2/library/none/manifests/latest?ns=quay.io', [404, 'NAME_UNKNOWN']],
  ['/v2/library/none/manifests/latest?ns=docker.io', [401, 'UNAUTHORIZED']],
  ['/v2/library/broken/manifests/1', [503, 'UNAVAILABLE']],
  ['/v2/UPPER/manifests/1', [400, 'NAME_INVALID']],
  ['/v1/_ping', [405, 'UNSUPPORTED']],
])('%s is refused', async (path, expected) => expect(await codes(await get(path))).toEqual(expected));

it('takes no pushes, and reports so', async () => {
  const response = await get('/v2/library/tiny/blobs/uploads/', {}, 'POST');
  expect(await response.json()).toEqual({
    errors: [{ code: 'UNSUPPORTED', message: 'this registry takes no pushes' }],
  });
});

it('has clients look at the API itself for how they are to authenticate', async () => {
  const response = await get('/v2/');
  expect(response.headers.get('docker-distribution-api-version')).toBe('registry/2.0');
  expect(response.headers.get('www-authenticate')).toBe(`Bearer realm="${base}/token",service="registry.nodelet"`);
  expect(await codes(response)).toEqual([401, 'UNAUTHORIZED']);
});

describe('a private image', () => {
  const path = '/v2/private/tiny/manifests/latest';

  it('is not given out without a token, and with one for no account the scope is insufficient', async () => {
    const refused = await get(path, { authorization: await tokenFor(path) });
    expect(refused.headers.get('www-authenticate')).toMatch(/,error="insufficient_scope"$/);
    expect(await codes(refused)).toEqual([401, 'UNAUTHORIZED']);
  });

  it('is given out with a token for the account, and with its password', async () => {
    expect((await get(path, { authorization: await tokenFor(path, { authorization: basic }) })).status).toBe(200);
    expect((await get(path, { authorization: basic })).status).toBe(200);
    const form = { grant_type: 'password', service: 's', scope: 'repository:private/tiny:pull' };
    const body = new URLSearchParams({ ...form, username: ACCOUNT.user, password: ACCOUNT.password });
    const { access_token }: { access_token: string } = JSON.parse(
      await (await fetch(`${base}/token`, { method: 'POST', body })).text(),
    );
    expect((await get(path, { authorization: `Bearer ${access_token}` })).status).toBe(200);
  });

  it('has no token for a wrong password', async () => {
    const wrong = `Basic ${Buffer.from(`${ACCOUNT.user}:guessed`).toString('base64')}`;
    expect((await get('/token?scope=repository:private/tiny:pull', { authorization: wrong })).status).toBe(401);
    expect((await get('/v2/', { authorization: wrong })).status).toBe(401);
    expect((await get('/v2/', { authorization: basic })).status).toBe(200);
    expect((await get('/v2/', { authorization: await tokenFor(path) })).status).toBe(200);
  });

  it('has a manifest of its own, and the layers of the public one', async () => {
    const own = await get(path, { authorization: basic });
    expect(own.headers.get('docker-content-digest')).not.toBe(built.digest);
    const manifest: Manifest = JSON.parse(await own.text());
    const shared: Manifest = JSON.parse(await textOf('/v2/library/tiny/manifests/latest'));
    expect(manifest.layers).toEqual(shared.layers);
  });
});

it('a slow image has one more layer, which is the same bytes whole and in parts', async () => {
  const response = await get('/v2/slow/tiny/manifests/latest');
  const manifest: Manifest = JSON.parse(await response.text());
  const config: { rootfs: { diff_ids: string[] } } = JSON.parse(
    await textOf(`/v2/slow/tiny/blobs/${manifest.config.digest}`),
  );
  expect(config.rootfs.diff_ids).toEqual(manifest.layers.map(({ digest }) => digest));
  const padding = manifest.layers[1];
  const url = `/v2/slow/tiny/blobs/${padding?.digest}`;
  const whole = await (await get(url)).arrayBuffer();
  expect([whole.byteLength, sha(whole)]).toEqual([padding?.size, padding?.digest]);
  const part = await (await get(url, { range: 'bytes=65000-67000' })).arrayBuffer();
  expect(Buffer.from(part).equals(Buffer.from(whole).subarray(65_000, 67_001))).toBe(true);
});

it('a limited image is given out so often, and is refused then as Docker Hub does', async () => {
  const path = (tag: string): string => `/v2/limited/tiny/manifests/${tag}`;
  const authorization = await tokenFor(path('1'));
  const statuses: number[] = [];
  for (const tag of ['1', '2']) statuses.push((await get(path(tag), { authorization })).status);
  const third = await get(path('3'), { authorization });
  expect([...statuses, third.status]).toEqual([200, 200, 429]);
  expect(third.headers.get('ratelimit-remaining')).toBe('0;w=600');
  expect(await third.json()).toEqual({
    errors: [
      {
        code: 'TOOMANYREQUESTS',
        message: 'You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit',
      },
    ],
  });
  expect((await get(path('3'), { authorization }, 'HEAD')).status).toBe(200);
  expect((await get(path('3'), { authorization: basic })).status).toBe(200);
});

it('reports each request', () => expect(lines).toContain('GET /v2/library/tiny/manifests/none?ns=docker.io 404'));
