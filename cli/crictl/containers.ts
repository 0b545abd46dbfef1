// crictl ps and inspect, and the choice of containers that exec has too.

import type { EpochMs } from '../../lib/clock.ts';
import type { Container__Output } from '../../proto/gen/runtime/v1/Container.ts';
import type { ContainerStatus__Output } from '../../proto/gen/runtime/v1/ContainerStatus.ts';
import type { ContainerStatusResponse__Output } from '../../proto/gen/runtime/v1/ContainerStatusResponse.ts';
import { type Flags, parsePairs } from './arguments.ts';
import type { Cri } from './cri.ts';
import {
  containerState,
  fromLabel,
  type Newest,
  newestFirst,
  POD_NAME_LABEL,
  POD_NAMESPACE_LABEL,
  pattern,
  shortId,
} from './filters.ts';
import { formatMessage, formatStatuses, withInfo } from './format.ts';
import { type Invocation, ShowHelp } from './invocation.ts';
import { messageToFullJson } from './protojson.ts';
import { failed, infoLine, keyLines, unsupportedOutput } from './report.ts';
import { table } from './table.ts';
import { ago, formatNanos } from './units.ts';

/** Which containers are meant. */
export interface ContainerChoice extends Newest {
  readonly id: string;
  readonly pod: string;
  readonly name: string;
  readonly namespace: string;
  readonly state: string;
  readonly image: string;
  readonly labels: readonly string[];
  readonly all: boolean;
}

/** The request's filter; names, images and the newest ones are for what comes back. Pure. */
export function containerFilter(choice: ContainerChoice) {
  const state = containerState(choice.state, choice.all, choice);
  return {
    ...(choice.id !== '' && { id: choice.id }),
    ...(choice.pod !== '' && { pod_sandbox_id: choice.pod }),
    ...(state !== undefined && { state: { state } }),
    label_selector: parsePairs(choice.labels),
  };
}

/** Pure. `imageId`: of a container; `wanted`: only containers of this image, when it is set. */
export function selectContainers(
  containers: readonly Container__Output[],
  choice: ContainerChoice,
  isImage: (container: Container__Output) => boolean,
): Container__Output[] {
  const name = pattern('name', choice.name);
  const namespace = pattern('namespace', choice.namespace);
  const matching = containers.filter(
    (container) =>
      container.metadata !== null &&
      name.test(container.metadata.name) &&
      namespace.test(fromLabel(container.labels, POD_NAMESPACE_LABEL)) &&
      isImage(container),
  );
  return newestFirst(matching, choice);
}

const imageName = (container: Container__Output): string => container.image?.image ?? '';

async function imageStatus(cri: Cri, image: string) {
  return (await cri.call('ImageStatus', { image: { image }, verbose: false })).image;
}

/** Whether a container's image is `image`, whichever of its names either goes by. */
async function imageMatcher(
  cri: Cri,
  image: string,
  containers: readonly Container__Output[],
): Promise<(container: Container__Output) => boolean> {
  if (image === '') return () => true;
  const wanted = await imageStatus(cri, image);
  const ids = new Map<string, string | undefined>();
  for (const name of new Set(containers.map(imageName))) ids.set(name, (await imageStatus(cri, name))?.id);
  return (container) => wanted !== null && ids.get(imageName(container)) === wanted.id;
}

export async function chooseContainers(cri: Cri, choice: ContainerChoice): Promise<Container__Output[]> {
  const filter = containerFilter(choice);
  const { containers } = await failed('call list containers RPC', cri.call('ListContainers', { filter }));
  const isImage = await failed('check image match', imageMatcher(cri, choice.image, containers));
  return selectContainers(containers, choice, isImage);
}

const STATE_WORDS = {
  CONTAINER_CREATED: 'Created',
  CONTAINER_RUNNING: 'Running',
  CONTAINER_EXITED: 'Exited',
  CONTAINER_UNKNOWN: 'Unknown',
} as const;

/** Pure. `imageOf`: the column's text; `now`: epoch ms. */
export function containerTable(
  containers: readonly Container__Output[],
  now: EpochMs,
  wholeIds: boolean,
  imageOf: (container: Container__Output) => string,
): string {
  const id = (whole: string): string => (wholeIds ? whole : shortId(whole));
  return table([
    ['CONTAINER', 'IMAGE', 'CREATED', 'STATE', 'NAME', 'ATTEMPT', 'POD ID', 'POD', 'NAMESPACE'],
    ...containers.map((container) => [
      id(container.id),
      imageOf(container),
      ago(container.created_at, now),
      STATE_WORDS[container.state],
      container.metadata?.name ?? '',
      String(container.metadata?.attempt ?? 0),
      id(container.pod_sandbox_id),
      fromLabel(container.labels, POD_NAME_LABEL),
      fromLabel(container.labels, POD_NAMESPACE_LABEL),
    ]),
  ]);
}

/** The image as the table shows it: 13 characters of a digest, a name as it is. Pure. */
export function shownImage(container: Container__Output, whole: boolean): string {
  const name = imageName(container);
  const [, algorithm] = /^([a-z0-9]+(?:[.+_-][a-z0-9]+)*):[0-9a-f]{32,}$/.exec(name) ?? [];
  return whole || algorithm === undefined ? name : shortId(name, `${algorithm}:`);
}

/** `ps -v`. Pure. */
export function containerDetails(container: Container__Output, now: EpochMs): string {
  const { metadata } = container;
  return [
    `ID: ${container.id}`,
    `PodID: ${container.pod_sandbox_id}`,
    `Namespace: ${fromLabel(container.labels, POD_NAMESPACE_LABEL)}`,
    ...(metadata?.name ? [`Name: ${metadata.name}`] : []),
    ...(metadata ? [`Attempt: ${metadata.attempt}`] : []),
    `State: ${STATE_WORDS[container.state]}`,
    ...(container.image ? [`Image: ${container.image.image}`] : []),
    `Created: ${ago(container.created_at, now)}`,
    ...keyLines('Labels', container.labels),
    ...keyLines('Annotations', container.annotations),
    '\n',
  ].join('\n');
}

async function tagsOf(cri: Cri, shown: readonly string[]): Promise<Map<string, string>> {
  const tags = new Map<string, string>();
  for (const name of new Set(shown)) tags.set(name, (await imageStatus(cri, name))?.repo_tags[0] ?? name);
  return tags;
}

const choiceOf = (flags: Flags, id: string, namespace: string): ContainerChoice => ({
  id,
  pod: flags.text('pod'),
  name: flags.text('name'),
  namespace,
  state: flags.text('state'),
  image: flags.text('image'),
  labels: flags.list('label'),
  latest: flags.bool('latest'),
  last: flags.number('last'),
  all: flags.bool('all'),
});

export async function listContainers({ flags, args, console, openCri }: Invocation): Promise<void> {
  if (args.length > 0) throw new ShowHelp();
  const cri = await openCri();
  const choice = choiceOf(flags, flags.text('id'), flags.text('namespace'));
  const containers = await failed('listing containers: list containers', chooseContainers(cri, choice));
  const output = flags.text('output');
  const formatted = formatMessage('ListContainersResponse', { containers }, output);
  if (formatted !== undefined) return console.print(formatted);
  if (output !== 'table') throw unsupportedOutput(output);
  if (flags.bool('quiet')) return console.print(containers.map(({ id }) => `${id}\n`).join(''));
  if (flags.bool('verbose')) {
    return console.print(containers.map((container) => containerDetails(container, console.now())).join(''));
  }
  const whole = flags.bool('no-trunc');
  const shown = (container: Container__Output): string => shownImage(container, whole);
  const tags = flags.bool('resolve-image-path')
    ? await failed('listing containers: failed to fetch repo image', tagsOf(cri, containers.map(shown)))
    : new Map<string, string>();
  const column = (container: Container__Output): string => tags.get(shown(container)) ?? shown(container);
  console.print(containerTable(containers, console.now(), whole, column));
}

/** When a container that was started began, and when it ended; undefined for a time that has not come. Pure. */
export function containerTimes(status: ContainerStatus__Output) {
  const ended =
    status.state === 'CONTAINER_EXITED' || (status.state === 'CONTAINER_UNKNOWN' && BigInt(status.finished_at) > 0n);
  return {
    started: status.state === 'CONTAINER_CREATED' ? undefined : BigInt(status.started_at),
    finished: ended ? BigInt(status.finished_at) : undefined,
  };
}

/** The status with its times readable. Pure. */
export function containerStatusJson(status: ContainerStatus__Output) {
  const { started, finished } = containerTimes(status);
  return {
    ...messageToFullJson('ContainerStatus', status),
    createdAt: formatNanos(BigInt(status.created_at)),
    startedAt: formatNanos(started),
    finishedAt: formatNanos(finished),
  };
}

/** `inspect -o table`. Pure. */
export function containerStatusTable(
  status: ContainerStatus__Output,
  info: ContainerStatusResponse__Output['info'],
  verbose: boolean,
  now: EpochMs,
): string {
  const { started, finished } = containerTimes(status);
  const exited = status.state === 'CONTAINER_EXITED';
  const lines = [
    `ID: ${status.id}`,
    ...(status.metadata?.name ? [`Name: ${status.metadata.name}`] : []),
    ...(status.metadata?.attempt ? [`Attempt: ${status.metadata.attempt}`] : []),
    `State: ${status.state}`,
    `Created: ${ago(status.created_at, now)}`,
    ...(started === undefined ? [] : [`Started: ${ago(String(started), now)}`]),
    ...(exited && finished !== undefined && finished > 0n ? [`Finished: ${ago(String(finished), now)}`] : []),
    ...(exited ? [`Exit Code: ${status.exit_code}`] : []),
    ...keyLines('Labels', status.labels),
    ...keyLines('Annotations', status.annotations),
    ...(verbose ? [infoLine(info)] : []),
  ];
  return `${lines.join('\n')}\n`;
}

export async function inspectContainers({ flags, args, console, openCri }: Invocation): Promise<void> {
  const cri = await openCri();
  let ids = args;
  if (ids.length === 0) {
    const choice = choiceOf(flags, '', flags.text('namespace'));
    ids = (await failed('listing containers', chooseContainers(cri, choice))).map(({ id }) => id);
  }
  if (ids.length === 0) {
    console.log('ERRO', 'No IDs provided or nothing found per filter');
    throw new ShowHelp();
  }
  const verbose = !flags.bool('quiet');
  const output = flags.text('output') || 'json';
  const statuses = [];
  for (const id of ids) {
    const { status, info } = await failed(
      'get the status of containers: get container status',
      cri.call('ContainerStatus', { container_id: id, verbose }),
    );
    if (status === null) throw new TypeError(`the runtime answered no status for ${id}`);
    if (output === 'table') console.print(containerStatusTable(status, info, verbose, console.now()));
    else statuses.push(withInfo({ status: containerStatusJson(status) }, info));
  }
  if (statuses.length > 0) console.print(formatStatuses(statuses, output, flags.text('template')));
}
