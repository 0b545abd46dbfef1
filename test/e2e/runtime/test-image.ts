// Two small OCI images from this machine's busybox-static, imported into a test's own containerd: one to run things
// in, one for the sandbox. Nothing is pulled.

import { createHash } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execOk } from '../../../lib/exec.ts';

const APPLETS = [
  'sh',
  'sleep',
  'cat',
  'echo',
  'env',
  'hostname',
  'id',
  'ps',
  'ip',
  'kill',
  'true',
  'false',
  'nc',
  'head',
];

/** A sandbox process: ends on TERM, reaps what it is left with. */
const PAUSE = ['/bin/sh', '-c', "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"];

function sha256(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

async function writeBlob(directory: string, data: Uint8Array): Promise<{ digest: string; size: number }> {
  const hex = sha256(data);
  await writeFile(join(directory, 'blobs', 'sha256', hex), data);
  return { digest: `sha256:${hex}`, size: data.length };
}

/** Builds both images and imports them under the names given. */
export async function importTestImages(
  socket: string,
  names: { readonly pause: string; readonly busybox: string },
): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'nodelet-runtime-image-'));
  try {
    const rootfs = join(work, 'rootfs');
    for (const directory of ['bin', 'etc', 'tmp', 'dev', 'proc', 'sys', 'root']) {
      await mkdir(join(rootfs, directory), { recursive: true });
    }
    await copyFile('/bin/busybox', join(rootfs, 'bin', 'busybox'));
    for (const applet of APPLETS) await symlink('busybox', join(rootfs, 'bin', applet));
    await writeFile(join(rootfs, 'etc', 'passwd'), 'root:x:0:0:root:/root:/bin/sh\nweb:x:101:101::/:/bin/sh\n');
    await writeFile(join(rootfs, 'etc', 'group'), 'root:x:0:\nweb:x:101:\n');
    const layerFile = join(work, 'layer.tar');
    await execOk('tar', ['--numeric-owner', '--owner=0', '--group=0', '-C', rootfs, '-cf', layerFile, '.']);
    const layer = await readFile(layerFile);

    const oci = join(work, 'oci');
    await mkdir(join(oci, 'blobs', 'sha256'), { recursive: true });
    const layerBlob = await writeBlob(oci, layer);
    const manifests = [];
    for (const [name, config] of [
      [names.pause, { Entrypoint: PAUSE, Env: ['PATH=/bin'] }],
      [names.busybox, { Cmd: ['/bin/sh'], Env: ['PATH=/bin'] }],
    ] as const) {
      const image = {
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        os: 'linux',
        config,
        rootfs: { type: 'layers', diff_ids: [layerBlob.digest] },
      };
      const configBlob = await writeBlob(oci, Buffer.from(JSON.stringify(image)));
      const manifest = {
        schemaVersion: 2,
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...configBlob },
        layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', ...layerBlob }],
      };
      const manifestBlob = await writeBlob(oci, Buffer.from(JSON.stringify(manifest)));
      manifests.push({
        mediaType: manifest.mediaType,
        ...manifestBlob,
        annotations: { 'io.containerd.image.name': name },
      });
    }
    await writeFile(join(oci, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
    await writeFile(join(oci, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
    const archive = join(work, 'images.tar');
    await execOk('tar', ['-C', oci, '-cf', archive, 'blobs', 'index.json', 'oci-layout']);
    await stat(archive);
    await execOk('ctr', ['-a', socket, '-n', 'k8s.io', 'images', 'import', archive]);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
