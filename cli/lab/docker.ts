// The dockerd of a lab with --runtime docker (labs/docker/dockerd.ts), on the lab's own containerd: its program, and images
// that are put into it.

import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { dockerdArguments } from '../../labs/docker/dockerd.ts';
import type { BuiltImage } from '../../labs/images/build.ts';
import { dockerArchive } from '../../labs/images/docker-archive.ts';
import { Tracer } from '../../lib/trace.ts';
import type { Snapshotter } from './containerd.ts';
import type { LabPaths } from './paths.ts';
import type { Program } from './programs.ts';
import type { LabState } from './state.ts';

/** `cgroup`: the highest that is the lab's alone, for containers that name none. Pure. */
export function dockerdProgram(paths: LabPaths, state: LabState, snapshotter: Snapshotter, cgroup: string): Program {
  const args = dockerdArguments(paths.docker, {
    containerd: paths.containerd.socket,
    cgroupDriver: state.cgroupDriver ?? 'cgroupfs',
    cgroupParent: `${cgroup}/docker`,
    overlay: snapshotter === 'overlayfs',
    liveRestore: true,
  });
  // The kernel ends it with the lab's process; the pods stay.
  return { command: 'setpriv', args: ['--pdeathsig', 'TERM', 'dockerd', ...args] };
}

/** Puts an image that was built here into the lab's dockerd, under all its names. */
export async function loadIntoDocker(paths: LabPaths, image: BuiltImage): Promise<void> {
  const archive = dockerArchive(await readFile(image.archive), image.names);
  // Only a lab with Docker loads its client, which takes as long as all else that a lab's start imports.
  const { Engine } = await import('../../dockershim/engine.ts');
  const engine = new Engine(paths.docker.socket, new Tracer());
  await engine.call('ImageLoad', { names: image.names }, async (docker) => {
    const progress = await docker.loadImage(Readable.from([archive]), { quiet: true });
    let text = '';
    for await (const chunk of progress) text += chunk.toString();
    if (/"error"/.test(text)) throw new Error(`Docker cannot load ${image.names.join(', ')}: ${text.trim()}`);
  });
}
