// The lab's images in a test's own containerd. Always built on this machine (or taken from the cache), so that tests see
// the same images whether or not a registry can be reached.

import { buildImages, loadDefinitions } from '../../../labs/images/build.ts';
import { type ImportOutcome, importImages } from '../../../labs/images/import.ts';
import type { RunningContainerd } from './containerd.ts';

export const NGINX = 'docker.io/library/nginx:stable';
export const BUSYBOX = 'docker.io/library/busybox:stable';
export const PAUSE = 'registry.k8s.io/pause:3.9';

/** Resolves when CRI knows nginx:stable, busybox:stable, busybox:latest and the pause image. */
export function importLabImages(
  containerd: Pick<RunningContainerd, 'socket' | 'snapshotter'>,
): Promise<ReadonlyMap<string, ImportOutcome>> {
  return importImages({ socket: containerd.socket, snapshotter: containerd.snapshotter, source: 'build' });
}

/** Makes the archives ahead of the tests that import them, so that no test's time limit pays for it. */
export async function prepareLabImages(say: (line: string) => void): Promise<void> {
  await buildImages(await loadDefinitions(), say);
}
