// Imports the lab's images into a runtime, containerd unless another way is given: pulled where their registry responds, else built here. An image that
// exists already is left alone.

import { credentials } from '@grpc/grpc-js';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { execOk } from '../../lib/exec.ts';
import { httpAnswer } from '../../lib/http-answer.ts';
import { poll } from '../../lib/retry.ts';
import { Tracer } from '../../lib/trace.ts';
import { loadProto } from '../../proto/load.ts';
import { GrpcError, type UnaryCaller, unaryCaller } from '../../proto/unary.ts';
import { type BuiltImage, buildImages, type LabImage, loadDefinitions } from './build.ts';

export interface ImportOptions {
  /** Where the runtime serves CRI, without a scheme. */
  readonly socket: string;
  readonly snapshotter: 'overlayfs' | 'native';
  /** `build` uses no registry. Default `auto`. */
  readonly source?: 'auto' | 'build';
  readonly images?: readonly LabImage[];
  readonly say?: (line: string) => void;
  readonly clock?: Clock;
  /** Aborts the import. */
  readonly signal?: AbortSignal;
  /** How an image that was built here gets into the runtime; by default with ctr into containerd. */
  readonly load?: (image: BuiltImage) => Promise<void>;
  readonly probe?: (registry: string) => Promise<boolean>;
}

export type ImportOutcome = 'present' | 'pulled' | 'built' | 'cached';

const PROBE_MS = 2_000;
const VISIBLE_MS = 60_000;
const PULL_MS = 300_000;

/** The host that serves a name's registry: Docker Hub's is not the name's first part. Pure. */
export function registryOf(name: string): string {
  const host = name.slice(0, name.indexOf('/'));
  return host === 'docker.io' ? 'registry-1.docker.io' : host;
}

/** Whether a registry answers: with the header of its API, as where it asks for credentials (401, the usual status), or with 200. */
export async function registryAnswers(registry: string): Promise<boolean> {
  const answer = await httpAnswer(`https://${registry}/v2/`, AbortSignal.timeout(PROBE_MS));
  return answer !== undefined && ('docker-distribution-api-version' in answer.headers || answer.status === 200);
}

type ImageClient = InstanceType<ReturnType<typeof loadProto<'cri'>>['runtime']['v1']['ImageService']>;

/** Resolves when CRI lists every name of every image. The result has the outcome per first name. */
export async function importImages(options: ImportOptions): Promise<ReadonlyMap<string, ImportOutcome>> {
  const images = options.images ?? (await loadDefinitions());
  const { ImageService } = loadProto('cri').runtime.v1;
  const client = new ImageService(`unix://${options.socket}`, credentials.createInsecure());
  try {
    return await importAll(options, images, client, unaryCaller(new Tracer(), 'cri'));
  } finally {
    client.close();
  }
}

async function importAll(
  options: ImportOptions,
  images: readonly LabImage[],
  client: ImageClient,
  call: UnaryCaller,
): Promise<ReadonlyMap<string, ImportOutcome>> {
  const say = options.say ?? (() => undefined);
  const clock = options.clock ?? systemClock;
  const outcomes = new Map<string, ImportOutcome>();
  const isThere = async (name: string): Promise<boolean> =>
    (await call(client, 'ImageStatus', { image: { image: name } }, { deadlineMs: 10_000 })).image !== null;

  const wanted: LabImage[] = [];
  for (const image of images) {
    const there = await Promise.all(image.definition.names.map(isThere));
    if (there.every((each) => each)) outcomes.set(firstName(image), 'present');
    else wanted.push(image);
  }
  const answers = await reachable(wanted, options);
  const toBuild: LabImage[] = [];
  for (const image of wanted) {
    const registries = image.definition.names.map(registryOf);
    if (registries.every((registry) => answers.get(registry) === true) && (await pull(image, client, call, options))) {
      outcomes.set(firstName(image), 'pulled');
    } else toBuild.push(image);
  }
  for (const built of await buildImages(toBuild, say)) {
    options.signal?.throwIfAborted();
    await (options.load ?? ((image) => importWithCtr(image, options)))(built);
    // CRI learns of it by an event of the runtime's.
    for (const name of built.names) {
      const look = { clock, everyMs: 10, limitMs: VISIBLE_MS, signal: options.signal };
      if (!(await poll(() => isThere(name), look))) {
        throw new Error(`the runtime imported ${name}, but CRI does not show it`);
      }
    }
    const name = built.names[0] ?? built.archive;
    outcomes.set(name, built.fromCache ? 'cached' : 'built');
    say(`imported ${built.names.join(', ')}${built.fromCache ? ' from the cache' : ''}`);
  }
  return outcomes;
}

async function importWithCtr({ archive }: BuiltImage, options: ImportOptions): Promise<void> {
  const target = ['--address', options.socket, '--connect-timeout', '60s', '--namespace', 'k8s.io'];
  await execOk('ctr', [...target, 'images', 'import', '--snapshotter', options.snapshotter, archive], {
    timeoutMs: 120_000,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
}

function firstName(image: LabImage): string {
  return image.definition.names[0] ?? image.file;
}

async function reachable(images: readonly LabImage[], options: ImportOptions): Promise<ReadonlyMap<string, boolean>> {
  if (options.source === 'build') return new Map();
  const registries = new Set(images.flatMap((image) => image.definition.names.map(registryOf)));
  const probe = options.probe ?? registryAnswers;
  const answers = await Promise.all(
    [...registries].map(async (registry) => [registry, await probe(registry)] as const),
  );
  for (const [registry, answered] of answers) {
    if (!answered) options.say?.(`the registry ${registry} cannot be reached: its images are made on this machine`);
  }
  return new Map(answers);
}

/** False when the registry answers but does not hand the image out: it is then built like any other. */
async function pull(image: LabImage, client: ImageClient, call: UnaryCaller, options: ImportOptions): Promise<boolean> {
  const say = options.say ?? (() => undefined);
  const limits = { deadlineMs: PULL_MS, ...(options.signal === undefined ? {} : { signal: options.signal }) };
  for (const name of image.definition.names) {
    try {
      await call(client, 'PullImage', { image: { image: name } }, limits);
      say(`pulled ${name}`);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!(error instanceof GrpcError)) throw error;
      say(`cannot pull ${name} (${errorMessage(error)}): it is made on this machine`);
      return false;
    }
  }
  return true;
}
