// crictl pods and inspectp.

import type { EpochMs } from '../../lib/clock.ts';
import type { PodSandbox__Output } from '../../proto/gen/runtime/v1/PodSandbox.ts';
import type { PodSandboxFilter } from '../../proto/gen/runtime/v1/PodSandboxFilter.ts';
import type { PodSandboxStatusResponse__Output } from '../../proto/gen/runtime/v1/PodSandboxStatusResponse.ts';
import { type Flags, parsePairs } from './arguments.ts';
import type { Cri } from './cri.ts';
import { newestFirst, newestOf, pattern, sandboxState, shortId } from './filters.ts';
import { formatMessage, formatStatuses, withInfo } from './format.ts';
import { type Invocation, ShowHelp } from './invocation.ts';
import { messageToFullJson } from './protojson.ts';
import { failed, infoLine, keyLines, unsupportedOutput } from './report.ts';
import { table } from './table.ts';
import { ago, formatNanos, goTimeString } from './units.ts';

/** The request's filter; regular expressions and the newest ones are for selectSandboxes. Pure. */
export function sandboxFilter(id: string, state: string, labels: readonly string[]): PodSandboxFilter {
  const wanted = sandboxState(state);
  return {
    ...(id !== '' && { id }),
    ...(wanted !== undefined && { state: { state: wanted } }),
    label_selector: parsePairs(labels),
  };
}

/** Pure. */
export function selectSandboxes(sandboxes: readonly PodSandbox__Output[], flags: Flags): PodSandbox__Output[] {
  const name = pattern('name', flags.text('name'));
  const namespace = pattern('namespace', flags.text('namespace'));
  const matching = sandboxes.filter(
    ({ metadata }) => metadata !== null && name.test(metadata.name) && namespace.test(metadata.namespace),
  );
  return newestFirst(matching, newestOf(flags));
}

async function list(cri: Cri, flags: Flags, id: string): Promise<PodSandbox__Output[]> {
  const filter = sandboxFilter(id, flags.text('state'), flags.list('label'));
  const { items } = await failed('call list sandboxes RPC', cri.call('ListPodSandbox', { filter }));
  return selectSandboxes(items, flags);
}

const stateWord = (state: PodSandbox__Output['state']): string => (state === 'SANDBOX_READY' ? 'Ready' : 'NotReady');
const handler = (name: string): string => (name === '' ? '(default)' : name);

/** Pure. `now`: epoch ms. */
export function podTable(pods: readonly PodSandbox__Output[], now: EpochMs, wholeIds: boolean): string {
  return table([
    ['POD ID', 'CREATED', 'STATE', 'NAME', 'NAMESPACE', 'ATTEMPT', 'RUNTIME'],
    ...pods.map((pod) => [
      wholeIds ? pod.id : shortId(pod.id),
      ago(pod.created_at, now),
      stateWord(pod.state),
      pod.metadata?.name ?? '',
      pod.metadata?.namespace ?? '',
      String(pod.metadata?.attempt ?? 0),
      handler(pod.runtime_handler),
    ]),
  ]);
}

/** `pods -v`. Pure. */
export function podDetails(pod: PodSandbox__Output): string {
  const { metadata } = pod;
  return [
    `ID: ${pod.id}`,
    ...(metadata?.name ? [`Name: ${metadata.name}`] : []),
    ...(metadata?.uid ? [`UID: ${metadata.uid}`] : []),
    ...(metadata?.namespace ? [`Namespace: ${metadata.namespace}`] : []),
    ...(metadata?.attempt ? [`Attempt: ${metadata.attempt}`] : []),
    `Status: ${stateWord(pod.state)}`,
    `Created: ${goTimeString(BigInt(pod.created_at))}`,
    ...keyLines('Labels', pod.labels),
    ...keyLines('Annotations', pod.annotations),
    `Runtime: ${handler(pod.runtime_handler)}`,
    '\n',
  ].join('\n');
}

export async function listPods({ flags, console, openCri }: Invocation): Promise<void> {
  const cri = await openCri();
  const pods = await failed('listing pod sandboxes: list pod sandboxes', list(cri, flags, flags.text('id')));
  const output = flags.text('output');
  const formatted = formatMessage('ListPodSandboxResponse', { items: pods }, output);
  if (formatted !== undefined) return console.print(formatted);
  if (output !== 'table') throw unsupportedOutput(output);
  if (flags.bool('quiet')) console.print(pods.map(({ id }) => `${id}\n`).join(''));
  else if (flags.bool('verbose')) console.print(pods.map(podDetails).join(''));
  else console.print(podTable(pods, console.now(), flags.bool('no-trunc')));
}

/** The status with its time readable. Pure. */
export function podStatusJson(status: PodSandboxStatusResponse__Output['status']) {
  return {
    ...messageToFullJson('PodSandboxStatus', status),
    createdAt: formatNanos(BigInt(status?.created_at ?? 0)),
  };
}

/** `inspectp -o table`. Pure. */
export function podStatusTable({ status, info }: PodSandboxStatusResponse__Output, verbose: boolean): string {
  const metadata = status?.metadata;
  const lines = [
    `ID: ${status?.id ?? ''}`,
    ...(metadata?.name ? [`Name: ${metadata.name}`] : []),
    ...(metadata?.uid ? [`UID: ${metadata.uid}`] : []),
    ...(metadata?.namespace ? [`Namespace: ${metadata.namespace}`] : []),
    ...(metadata ? [`Attempt: ${metadata.attempt}`] : []),
    `Status: ${status?.state ?? ''}`,
    `Created: ${goTimeString(BigInt(status?.created_at ?? 0))}`,
    ...(status?.network ? [`IP Addresses: ${status.network.ip}`] : []),
    ...(status?.network?.additional_ips ?? []).map(({ ip }) => `Additional IP: ${ip}`),
    ...keyLines('Labels', status?.labels ?? {}),
    ...keyLines('Annotations', status?.annotations ?? {}),
    ...(verbose ? [infoLine(info)] : []),
  ];
  return `${lines.join('\n')}\n`;
}

export async function inspectPods({ flags, args, console, openCri }: Invocation): Promise<void> {
  const cri = await openCri();
  let ids = args;
  if (ids.length === 0) {
    ids = (await failed('listing pod sandboxes', list(cri, flags, ''))).map(({ id }) => id);
  }
  if (ids.length === 0) {
    console.log('ERRO', 'No IDs provided or nothing found per filter');
    throw new ShowHelp();
  }
  const verbose = !flags.bool('quiet');
  const output = flags.text('output') || 'json';
  const statuses = [];
  for (const id of ids) {
    const response = await failed(
      'get the status of pod sandboxes: get pod sandbox status',
      cri.call('PodSandboxStatus', { pod_sandbox_id: id, verbose }),
    );
    if (output === 'table') console.print(podStatusTable(response, verbose));
    else statuses.push(withInfo({ status: podStatusJson(response.status) }, response.info));
  }
  if (statuses.length > 0) console.print(formatStatuses(statuses, output, flags.text('template')));
}
