// A registry for the test of `nodelet explain`: it has two small images, one of which it delivers only in part until a test
// releases it, and refuses everything else in different ways. Speaks plain HTTP, on all addresses.

import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { arch } from 'node:os';
import { writeTar } from '../../../labs/images/tar.ts';

const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar';
const ARCHITECTURE = arch() === 'x64' ? 'amd64' : arch();

/** Of the layer of `slow/app`, bytes. */
export const SLOW_BYTES = 4 * 1024 * 1024;
/** How much of it comes at once. */
const FIRST_BYTES = 1024 * 1024;

interface Blob {
  readonly mediaType: string;
  readonly digest: string;
  readonly data: Buffer;
}

function blob(mediaType: string, data: Buffer): Blob {
  return { mediaType, digest: `sha256:${createHash('sha256').update(data).digest('hex')}`, data };
}

const json = (mediaType: string, value: object): Blob => blob(mediaType, Buffer.from(JSON.stringify(value)));
const descriptor = ({ mediaType, digest, data }: Blob): object => ({ mediaType, digest, size: data.length });

interface Image {
  readonly manifest: Blob;
  readonly blobs: readonly Blob[];
}

/** An image of one layer with one file. */
function image(config: object, path: string, data: Buffer): Image {
  const layer = blob(LAYER, writeTar([{ type: 'file', path, mode: 0o644, uid: 0, gid: 0, data }]));
  const own = json(CONFIG, {
    architecture: ARCHITECTURE,
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
  });
  const manifest = json(MANIFEST, {
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: descriptor(own),
    layers: [descriptor(layer)],
  });
  return { manifest, blobs: [own, layer] };
}

export interface SlowRegistry {
  readonly port: number;
  /** Digest of the layer of `slow/app`. */
  readonly slowLayer: string;
  /** Delivers the rest of `slow/app`. */
  release(): void;
  close(): Promise<void>;
}

/**
 * `private/…` is refused (401), `limited/…` is over a limit (429), `foreign/app` is for another processor, `ghost/app` has a user that
 * it does not know, `slow/app` stops after its first part; of everything else there is nothing (404).
 */
export async function startSlowRegistry(): Promise<SlowRegistry> {
  const slow = image({}, 'file', randomBytes(SLOW_BYTES));
  const ghost = image({ User: 'ghost' }, 'etc/passwd', Buffer.from('root:x:0:0:root:/:/none\n'));
  const foreign = json(INDEX, {
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: [{ ...descriptor(ghost.manifest), platform: { os: 'linux', architecture: 'mips64' } }],
  });
  const manifests = new Map([
    ['slow', slow.manifest],
    ['ghost', ghost.manifest],
    ['foreign', foreign],
  ]);
  const all = [foreign, slow.manifest, ghost.manifest, ...slow.blobs, ...ghost.blobs];
  const slowLayer = slow.blobs.find(({ mediaType }) => mediaType === LAYER)?.digest ?? '';
  const released = Promise.withResolvers<void>();

  const answer = async ({ url = '', method = '' }: IncomingMessage, response: ServerResponse): Promise<void> => {
    const refuse = (status: number, code: string): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ errors: [{ code }] }));
    };
    const [, repository = '', reference = ''] = /^\/v2\/(\w+)\/app\/(?:manifests|blobs)\/([^/?]+)/.exec(url) ?? [];
    if (repository === 'private') return refuse(401, 'UNAUTHORIZED');
    if (repository === 'limited') return refuse(429, 'TOOMANYREQUESTS');
    const found = reference.startsWith('sha256:')
      ? all.find(({ digest }) => digest === reference)
      : manifests.get(repository);
    if (found === undefined) return refuse(404, 'MANIFEST_UNKNOWN');
    const { mediaType, digest, data } = found;
    response.writeHead(200, {
      'content-type': mediaType,
      'content-length': data.length,
      'docker-content-digest': digest,
    });
    if (method === 'HEAD') return void response.end();
    if (digest !== slowLayer) return void response.end(data);
    response.write(data.subarray(0, FIRST_BYTES));
    await released.promise;
    response.end(data.subarray(FIRST_BYTES));
  };

  const server = createServer((request, response) => void answer(request, response));
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '0.0.0.0', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  return {
    port,
    slowLayer,
    release: () => released.resolve(),
    async close() {
      released.resolve();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
