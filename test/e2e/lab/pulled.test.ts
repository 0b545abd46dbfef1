// The lab's images where a registry can be reached: a real containerd pulls them, and what a registry does not hand out
// is made on this machine.

import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildImages, type LabImage, loadDefinitions } from '../../../labs/images/build.ts';
import { importImages } from '../../../labs/images/import.ts';
import { execOk } from '../../../lib/exec.ts';
import { type RunningContainerd, startContainerd } from '../support/containerd.ts';

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

let work: string;
let containerd: RunningContainerd;
let registry: Server;
let host: string;
const requested: string[] = [];

/** Serves one image from its unpacked OCI layout, under any repository's name and tag. */
async function serve(layout: string): Promise<Server> {
  const index = JSON.parse(await readFile(join(layout, 'index.json'), 'utf8'));
  const digest = String(index.manifests[0].digest);
  const server = createServer(async ({ method, url = '' }, response) => {
    requested.push(`${method} ${url}`);
    const match = /^\/v2\/.+\/(manifests|blobs)\/(.+)$/.exec(url);
    const wanted = match?.[1] === 'manifests' && !match[2]?.startsWith('sha256:') ? digest : match?.[2];
    const file = join(layout, 'blobs', (wanted ?? 'none').replace(':', '/'));
    const known = await stat(file).catch(() => undefined);
    if (match === null || known === undefined) {
      response.writeHead(match === null ? 200 : 404).end();
      return;
    }
    response.writeHead(200, {
      'content-type': match[1] === 'manifests' ? MANIFEST : 'application/octet-stream',
      'content-length': known.size,
      'docker-content-digest': wanted,
    });
    if (method === 'HEAD') response.end();
    else createReadStream(file).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

async function tiny(name: string): Promise<LabImage> {
  const image = (await loadDefinitions()).find(({ file }) => file === 'busybox.yaml');
  if (image === undefined) throw new Error('there is no busybox.yaml');
  return { ...image, definition: { ...image.definition, names: [name] }, source: `${image.source}# ${name}` };
}

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'nodelet-pulled-'));
  const [built] = await buildImages([await tiny('example.test/tiny:v1')], () => undefined, join(work, 'cache'));
  const layout = join(work, 'layout');
  await mkdir(layout);
  await execOk('tar', ['-xf', built?.archive ?? '', '-C', layout]);
  registry = await serve(layout);
  host = `127.0.0.1:${(registry.address() as AddressInfo).port}`;
  containerd = await startContainerd({ root: join(work, 'containerd') });
});
afterAll(async () => {
  await containerd?.stop();
  await new Promise<unknown>((resolve) => (registry === undefined ? resolve(undefined) : registry.close(resolve)));
  await rm(work, { recursive: true, force: true });
});

it('an image is pulled from its registry when that answers', async () => {
  const name = `${host}/lab/tiny:v1`;
  const output: string[] = [];
  const { socket, snapshotter } = containerd;
  const images = [await tiny(name)];
  const options = { socket, snapshotter, images, probe: async () => true, say: (line: string) => output.push(line) };
  expect([...(await importImages(options))]).toEqual([[name, 'pulled']]);
  expect(output).toEqual([`pulled ${name}`]);
  expect(requested).toContain('HEAD /v2/lab/tiny/manifests/v1');
  expect([...(await importImages(options))]).toEqual([[name, 'present']]);
});

it('an image that the registry refuses is made here under its name, and the reason is printed', async () => {
  // Port 1 has no listener.
  const name = '127.0.0.1:1/lab/tiny:v1';
  const output: string[] = [];
  const image = await tiny(name);
  await buildImages([image], () => undefined);
  const outcomes = await importImages({
    socket: containerd.socket,
    snapshotter: containerd.snapshotter,
    images: [image],
    probe: async () => true,
    say: (line) => output.push(line),
  });
  expect(outcomes.get(name)).toBe('cached');
  expect(output[0]).toMatch(
    /^cannot pull 127\.0\.0\.1:1\/lab\/tiny:v1 \(.*connection refused.*\): it is made on this machine$/,
  );
  expect(output.at(-1)).toContain(`imported ${name}`);
});
