// crictl images, inspecti, rmi, pull and imagefsinfo.

import { UserError } from '../../lib/errors.ts';
import type { AuthConfig } from '../../proto/gen/runtime/v1/AuthConfig.ts';
import type { FilesystemUsage__Output } from '../../proto/gen/runtime/v1/FilesystemUsage.ts';
import type { Image__Output } from '../../proto/gen/runtime/v1/Image.ts';
import type { ImageFsInfoResponse__Output } from '../../proto/gen/runtime/v1/ImageFsInfoResponse.ts';
import type { ImageStatusResponse__Output } from '../../proto/gen/runtime/v1/ImageStatusResponse.ts';
import type { PodSandboxConfig } from '../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import { type Flags, parsePairs } from './arguments.ts';
import type { Console } from './console.ts';
import type { Cri } from './cri.ts';
import { byReference, filterImages, repoDigest, repoTags, shortId } from './filters.ts';
import { formatMessage, formatStatuses, withInfo } from './format.ts';
import { type Invocation, ShowHelp } from './invocation.ts';
import { loadSandboxConfig } from './pod-config.ts';
import { messageToJson } from './protojson.ts';
import { allOf, failed, infoLine } from './report.ts';
import { table } from './table.ts';
import { humanSize } from './units.ts';

async function list(cri: Cri, name: string, conditions: readonly string[]): Promise<Image__Output[]> {
  const { images } = await cri.call('ListImages', { filter: { image: { image: name } } });
  return filterImages([...images].sort(byReference), conditions);
}

export interface ImageColumns {
  readonly digests: boolean;
  readonly pinned: boolean;
  readonly wholeIds: boolean;
}

const size = (image: Image__Output): string => humanSize(Number(image.size), 3);

/** Pure. */
export function imageTable(images: readonly Image__Output[], columns: ImageColumns): string {
  const id = (whole: string): string => (columns.wholeIds ? whole : shortId(whole, 'sha256:'));
  const row = (image: Image__Output, [name, tag]: readonly [string, string]): string[] => [
    name,
    tag,
    ...(columns.digests ? [id(repoDigest(image)[1])] : []),
    id(image.id),
    size(image),
    ...(columns.pinned ? [String(image.pinned)] : []),
  ];
  const head = [
    'IMAGE',
    'TAG',
    ...(columns.digests ? ['DIGEST'] : []),
    'IMAGE ID',
    'SIZE',
    ...(columns.pinned ? ['PINNED'] : []),
  ];
  return table([head, ...images.flatMap((image) => repoTags(image).map((pair) => row(image, pair)))]);
}

/** `images -v`. Pure. */
export function imageDetails(image: Image__Output): string {
  return [
    `ID: ${image.id}`,
    ...image.repo_tags.map((tag) => `RepoTags: ${tag}`),
    ...image.repo_digests.map((digest) => `RepoDigests: ${digest}`),
    ...(image.size === '0' ? [] : [`Size: ${image.size}`]),
    ...(image.uid === null ? [] : [`Uid: value:${image.uid.value}`]),
    ...(image.username === '' ? [] : [`Username: ${image.username}`]),
    ...(image.pinned ? ['Pinned: true'] : []),
    '\n',
  ].join('\n');
}

export async function listImages({ flags, args, console, openCri }: Invocation): Promise<void> {
  if (args.length > 1) throw new ShowHelp();
  const cri = await openCri();
  const images = await failed('listing images', list(cri, args[0] ?? '', flags.list('filter')));
  const formatted = formatMessage('ListImagesResponse', { images }, flags.text('output'));
  if (formatted !== undefined) return console.print(formatted);
  const columns = { digests: flags.bool('digests'), pinned: flags.bool('pinned'), wholeIds: flags.bool('no-trunc') };
  if (flags.bool('quiet')) console.print(images.map(({ id }) => `${id}\n`).join(''));
  else if (flags.bool('verbose')) console.print(images.map(imageDetails).join(''));
  else console.print(imageTable(images, columns));
}

/** `inspecti -o table`. Pure. */
export function imageStatusTable(image: Image__Output, info: ImageStatusResponse__Output['info'], verbose: boolean) {
  const lines = [
    `ID: ${image.id}`,
    ...image.repo_tags.map((tag) => `Tag: ${tag}`),
    ...image.repo_digests.map((digest) => `Digest: ${digest}`),
    `Size: ${size(image)}`,
    ...(verbose ? [infoLine(info)] : []),
  ];
  return `${lines.join('\n')}\n`;
}

const statusOf = (cri: Cri, image: string, verbose = false) => cri.call('ImageStatus', { image: { image }, verbose });

export async function inspectImages({ flags, args, console, openCri }: Invocation): Promise<void> {
  const cri = await openCri();
  let ids = args;
  if (ids.length === 0) {
    const images = await failed('listing images', list(cri, flags.text('name'), flags.list('filter')));
    ids = images.map(({ id }) => id);
  }
  if (ids.length === 0) {
    console.log('ERRO', 'No IDs provided or nothing found per filter');
    throw new ShowHelp();
  }
  const verbose = !flags.bool('quiet');
  const output = flags.text('output') || 'json';
  const statuses = [];
  for (const id of ids) {
    const { image, info } = await failed(`image status for "${id}" request`, statusOf(cri, id, verbose));
    if (image === null) throw new UserError(`no such image "${id}" present`);
    if (output === 'table') console.print(imageStatusTable(image, info, verbose));
    else statuses.push(withInfo({ status: messageToJson('Image', image) }, info));
  }
  if (statuses.length > 0) console.print(formatStatuses(statuses, output, flags.text('template')));
}

/** `pull --creds`: "user:password", or "user". Throws UserError. Pure. */
export function parseCreds(creds: string): { readonly username: string; readonly password: string } {
  const colon = creds.indexOf(':');
  if (colon === 0) throw new UserError("username can't be empty");
  return colon < 0
    ? { username: creds, password: '' }
    : { username: creds.slice(0, colon), password: creds.slice(colon + 1) };
}

/** The credentials of a pull, from --username (prompts for the password), --creds or --auth; undefined: anonymous. */
export async function pullAuth(flags: Flags, console: Console): Promise<AuthConfig | undefined> {
  const [creds, auth, username] = [flags.text('creds'), flags.text('auth'), flags.text('username')];
  if (username !== '') {
    const { readPassword } = await import('./streaming/tty.ts');
    return { username, password: await readPassword(console.terminal) };
  }
  if (creds !== '' && auth !== '') throw new UserError('both `--creds` and `--auth` are specified');
  if (creds !== '') return parseCreds(creds);
  return auth === '' ? undefined : { auth };
}

export interface Pull {
  readonly image: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly auth: AuthConfig | undefined;
  readonly sandbox: PodSandboxConfig | undefined;
  /** ms; 0 is no limit. */
  readonly timeoutMs: number;
}

/** The reference of what was pulled. */
export async function pullImage(cri: Cri, pull: Pull, signal: AbortSignal): Promise<string> {
  if (pull.timeoutMs < 0) throw new UserError('timeout should be bigger than 0');
  const limit = pull.timeoutMs > 0 ? AbortSignal.timeout(pull.timeoutMs) : undefined;
  try {
    const { image_ref: reference } = await cri.call(
      'PullImage',
      {
        image: { image: pull.image, annotations: pull.annotations },
        ...(pull.auth !== undefined && { auth: pull.auth }),
        ...(pull.sandbox !== undefined && { sandbox_config: pull.sandbox }),
      },
      { signal: limit === undefined ? signal : AbortSignal.any([signal, limit]) },
    );
    return reference;
  } catch (error) {
    if (limit?.aborted !== true) throw error;
    throw new UserError(`rpc error: code = DeadlineExceeded desc = context deadline exceeded (--pull-timeout)`, {
      cause: error,
    });
  }
}

export async function pull({ flags, args, console, signal, openCri }: Invocation): Promise<void> {
  const [image = ''] = args;
  if (image === '') throw new UserError('image name cannot be empty');
  if (args.length > 1) throw new ShowHelp();
  const auth = await pullAuth(flags, console);
  const sandbox = flags.isSet('pod-config') ? await loadSandboxConfig(flags.text('pod-config'), console) : undefined;
  const annotations = parsePairs(flags.list('annotation'));
  const cri = await openCri();
  const timeoutMs = flags.number('pull-timeout');
  const reference = await failed(
    'pulling image',
    pullImage(cri, { image, annotations, auth, sandbox, timeoutMs }, signal),
  );
  console.line(`Image is up to date for ${reference}`);
}

/** The ids that rmi removes: the named ones, all, or those that are neither used nor pinned. Pure. */
export function imagesToRemove(
  named: readonly string[],
  there: readonly Pick<Image__Output, 'id' | 'pinned'>[],
  prune: boolean,
  used: ReadonlySet<string>,
): string[] {
  const found = there.filter(({ pinned }) => !(prune && pinned)).map(({ id }) => id);
  return [...new Set([...named, ...found])].filter((id) => !used.has(id));
}

async function usedImages(cri: Cri, console: Console): Promise<Set<string>> {
  const { containers } = await cri.call('ListContainers', {});
  const used = new Set<string>();
  for (const name of new Set(containers.map((container) => container.image?.image ?? ''))) {
    try {
      const { image } = await statusOf(cri, name);
      if (image !== null) used.add(image.id);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      console.log('ERRO', `image status request for "${name}" failed: ${error.message}`);
    }
  }
  return used;
}

export async function removeImages({ flags, args, console, openCri }: Invocation): Promise<void> {
  const [all, prune] = [flags.bool('all'), flags.bool('prune')];
  if (!all && !prune && args.length === 0) throw new ShowHelp();
  const cri = await openCri();
  const { images } = all || prune ? await cri.call('ListImages', {}) : { images: [] };
  const used = prune ? await usedImages(cri, console) : new Set<string>();
  const ids = imagesToRemove(args, images, prune, used);
  if (ids.length === 0) return console.log('INFO', 'No images to remove');
  const remove = async (id: string): Promise<void> => {
    const { image } = await failed(`image status request for "${id}" failed`, statusOf(cri, id));
    if (image === null) throw new UserError(`no such image ${id}`);
    if (image.repo_tags.length > 1 && !id.startsWith('sha256:') && /[:/]/.test(id)) {
      console.log('WARN', `Image "${id}" goes with all of its tags: ${image.repo_tags.join(', ')}`);
    }
    try {
      await failed(`error of removing image "${id}"`, cri.call('RemoveImage', { image: { image: id } }));
    } catch (error) {
      // Something may have begun to use it since.
      if (prune && error instanceof UserError) return console.log('DEBU', error.message);
      throw error;
    }
    const names = image.repo_tags.length > 0 ? image.repo_tags : image.repo_digests;
    console.print(names.map((name) => `Deleted: ${name}\n`).join(''));
  };
  await allOf(ids.map((id) => () => remove(id)));
}

/** `imagefsinfo -o table`. Pure. */
export function imageFsTable(info: ImageFsInfoResponse__Output): string {
  const part = (title: string, filesystems: readonly FilesystemUsage__Output[]): string[] => [
    `${title} Filesystem `,
    ...filesystems.flatMap((usage, index) => [
      `TimeStamp[${index}]: ${usage.timestamp}`,
      `Disk[${index}]: ${humanSize(Number(usage.used_bytes?.value ?? 0))}`,
      `Inodes[${index}]: ${usage.inodes_used?.value ?? 0}`,
      `Mountpoint[${index}]: ${usage.fs_id?.mountpoint ?? ''}`,
    ]),
  ];
  const lines = [...part('Container', info.container_filesystems), ...part('Image', info.image_filesystems)];
  return `${lines.join('\n')}\n`;
}

export async function imageFsInfo({ flags, console, openCri }: Invocation): Promise<void> {
  const cri = await openCri();
  const info = await failed('image filesystem info request', cri.call('ImageFsInfo', {}));
  const output = flags.text('output') || 'json';
  if (output === 'table') return console.print(imageFsTable(info));
  const status = messageToJson('ImageFsInfoResponse', info);
  console.print(formatStatuses([{ status }], output, flags.text('template')));
}
