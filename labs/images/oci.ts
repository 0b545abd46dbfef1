// An OCI image archive from a layer and a definition: config, manifest, index, all in one tar that containerd imports.
// Pure, and the same bytes for the same input.

import { createHash } from 'node:crypto';
import { epochMs } from '../../lib/clock.ts';
import { rfc3339Milli } from '../../lib/rfc3339.ts';
import type { ImageDefinition } from './definition.ts';
import { FIXED_TIME_S, type TarEntry, writeTar } from './tar.ts';

/** OCI's names of processor architectures, by Debian's. */
export const ARCHITECTURES: Readonly<Record<string, string>> = {
  amd64: 'amd64',
  arm64: 'arm64',
  ppc64el: 'ppc64le',
  riscv64: 'riscv64',
  s390x: 's390x',
};

const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar';

export interface OciImage {
  readonly archive: Buffer;
  /** "sha256:…" of the manifest: what a repo digest names. */
  readonly digest: string;
  /** "sha256:…" of the config: what CRI calls the image's id. */
  readonly id: string;
}

interface Blob {
  readonly mediaType: string;
  readonly data: Buffer;
  readonly digest: string;
}

function blob(mediaType: string, data: Buffer): Blob {
  return { mediaType, data, digest: `sha256:${createHash('sha256').update(data).digest('hex')}` };
}

function json(mediaType: string, value: unknown): Blob {
  return blob(mediaType, Buffer.from(JSON.stringify(value)));
}

function descriptor(of: Blob): { readonly mediaType: string; readonly digest: string; readonly size: number } {
  return { mediaType: of.mediaType, digest: of.digest, size: of.data.length };
}

/** `docker.io/library/nginx` of `docker.io/library/nginx:stable`. */
export function repositoryOf(name: string): string {
  return name.slice(0, name.lastIndexOf(':'));
}

/** `architecture` is OCI's name of it. */
export function buildOciImage(definition: ImageDefinition, layer: Buffer, architecture: string): OciImage {
  const created = rfc3339Milli(epochMs(FIXED_TIME_S * 1000));
  const layerBlob = blob(LAYER, layer);
  const config = json(CONFIG, {
    created,
    architecture,
    os: 'linux',
    config: {
      ...(definition.user === '' ? {} : { User: definition.user }),
      ...(definition.exposedPorts.length === 0
        ? {}
        : { ExposedPorts: Object.fromEntries(definition.exposedPorts.map((port) => [port, {}])) }),
      Env: Object.entries(definition.env).map(([name, value]) => `${name}=${value}`),
      ...(definition.entrypoint.length === 0 ? {} : { Entrypoint: definition.entrypoint }),
      ...(definition.cmd.length === 0 ? {} : { Cmd: definition.cmd }),
      WorkingDir: definition.workingDir,
      ...(definition.stopSignal === undefined ? {} : { StopSignal: definition.stopSignal }),
    },
    rootfs: { type: 'layers', diff_ids: [layerBlob.digest] },
    history: [{ created, created_by: 'nodelet labs/images' }],
  });
  const manifest = json(MANIFEST, {
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: descriptor(config),
    layers: [descriptor(layerBlob)],
  });
  // Every name by tag and, as after a pull, every repository by digest.
  const repositories = new Set(definition.names.map(repositoryOf));
  const references = [...definition.names, ...[...repositories].map((name) => `${name}@${manifest.digest}`)];
  const index = json(INDEX, {
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: references.map((name) => ({
      ...descriptor(manifest),
      platform: { os: 'linux', architecture },
      annotations: { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name },
    })),
  });
  const layout = blob('', Buffer.from(JSON.stringify({ imageLayoutVersion: '1.0.0' })));
  const file = (path: string, of: Blob): TarEntry => ({
    type: 'file',
    path,
    mode: 0o644,
    uid: 0,
    gid: 0,
    data: of.data,
  });
  const blobs = [config, layerBlob, manifest].toSorted((a, b) => (a.digest < b.digest ? -1 : 1));
  const archive = writeTar([
    file('oci-layout', layout),
    file('index.json', index),
    ...blobs.map((each) => file(`blobs/${each.digest.replace(':', '/')}`, each)),
  ]);
  return { archive, digest: manifest.digest, id: config.digest };
}
