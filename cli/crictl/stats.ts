// crictl stats, statsp, metricsp and metricdescs. CPU is measured between two answers.

import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { repeat } from '../../lib/retry.ts';
import type { ContainerStats__Output } from '../../proto/gen/runtime/v1/ContainerStats.ts';
import type { CpuUsage__Output } from '../../proto/gen/runtime/v1/CpuUsage.ts';
import type { PodSandboxStats__Output } from '../../proto/gen/runtime/v1/PodSandboxStats.ts';
import { type Flags, parsePairs } from './arguments.ts';
import { shortId } from './filters.ts';
import { formatMessage } from './format.ts';
import { type Invocation, ShowHelp } from './invocation.ts';
import { failed, unsupportedOutput } from './report.ts';
import { table } from './table.ts';
import { humanSize } from './units.ts';

/** How often --watch shows the figures anew, ms. */
const WATCH_MS = 500;
const CLEAR_SCREEN = '\x1b[2J\x1b[H';

/** Per cent of a core between two measurements, with two digits. Throws UserError when nothing was measured between. */
export function cpuPercent(before: CpuUsage__Output | null, after: CpuUsage__Output | null): string {
  const used = (usage: CpuUsage__Output | null): bigint => BigInt(usage?.usage_core_nano_seconds?.value ?? 0);
  if (used(after) === 0n) return '0.00';
  const passed = BigInt(after?.timestamp ?? 0) - BigInt(before?.timestamp ?? 0);
  if (passed === 0n) throw new UserError('cpu stat is not updated during sample');
  return ((Number(used(after) - used(before)) / Number(passed)) * 100).toFixed(2);
}

const amount = (value: { readonly value: string } | null | undefined): number => Number(value?.value ?? 0);

/** Containers that were there both times; those that do not run only with `all`. Pure. */
export function containerStatsTable(
  before: readonly ContainerStats__Output[],
  after: readonly ContainerStats__Output[],
  all: boolean,
): string {
  const earlier = new Map(before.map((stats) => [stats.attributes?.id, stats]));
  const rows = after.flatMap((stats) => {
    const { cpu, memory, writable_layer: layer, swap, attributes } = stats;
    const old = earlier.get(attributes?.id);
    const idle = amount(cpu?.usage_core_nano_seconds) === 0 && amount(memory?.working_set_bytes) === 0;
    if (old === undefined || (idle && !all)) return [];
    return [
      [
        shortId(attributes?.id ?? ''),
        attributes?.metadata?.name ?? '',
        cpuPercent(old.cpu, cpu),
        humanSize(amount(memory?.working_set_bytes)),
        humanSize(amount(layer?.used_bytes)),
        String(amount(layer?.inodes_used)),
        humanSize(amount(swap?.swap_usage_bytes)),
      ],
    ];
  });
  return table([['CONTAINER', 'NAME', 'CPU %', 'MEM', 'DISK', 'INODES', 'SWAP'], ...rows]);
}

/** Pure. */
export function podStatsTable(
  before: readonly PodSandboxStats__Output[],
  after: readonly PodSandboxStats__Output[],
): string {
  const earlier = new Map(before.map((stats) => [stats.attributes?.id, stats]));
  const rows = after.flatMap((stats) => {
    const { attributes, linux } = stats;
    const old = earlier.get(attributes?.id);
    const memory = amount(linux?.memory?.working_set_bytes);
    if (old === undefined || (amount(linux?.cpu?.usage_core_nano_seconds) === 0 && memory === 0)) return [];
    return [
      [
        attributes?.metadata?.name ?? '',
        shortId(attributes?.id ?? ''),
        cpuPercent(old.linux?.cpu ?? null, linux?.cpu ?? null),
        humanSize(memory),
      ],
    ];
  });
  return table([['POD', 'POD ID', 'CPU %', 'MEM'], ...rows]);
}

/** Shows once, or with --watch until the command is interrupted. */
async function show(flags: Flags, signal: AbortSignal, display: () => Promise<void>): Promise<void> {
  if (!flags.bool('watch')) return display();
  const round = async (): Promise<undefined> => void (await display());
  await repeat(round, { clock: systemClock, everyMs: WATCH_MS, signal });
}

/** The id of --id, or of the one argument. */
function oneId(flags: Flags, args: readonly string[]): string {
  if (args.length > 1) throw new ShowHelp();
  return flags.text('id') || (args[0] ?? '');
}

const byId = (
  a: { readonly attributes: { readonly id: string } | null },
  b: { readonly attributes: { readonly id: string } | null },
): number => ((a.attributes?.id ?? '') < (b.attributes?.id ?? '') ? -1 : 1);

async function sample(flags: Flags, signal: AbortSignal): Promise<void> {
  await sleep(flags.number('seconds') * 1000, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    throw new UserError('interrupted');
  });
}

export async function stats({ flags, args, console, signal, openCri }: Invocation): Promise<void> {
  const filter = {
    id: oneId(flags, args),
    pod_sandbox_id: flags.text('pod'),
    label_selector: parsePairs(flags.list('label')),
  };
  const output = flags.text('output');
  const cri = await openCri();
  const measure = async (): Promise<ContainerStats__Output[]> =>
    (await failed('get container stats', cri.call('ListContainerStats', { filter }))).stats.sort(byId);
  await show(flags, signal, async () => {
    const before = await measure();
    const formatted = formatMessage('ListContainerStatsResponse', { stats: before }, output);
    if (formatted !== undefined) return console.print(formatted);
    if (output !== '' && output !== 'table') throw unsupportedOutput(output);
    await sample(flags, signal);
    const text = containerStatsTable(before, await measure(), flags.bool('all'));
    console.print(`${clearing(flags, console.terminal)}${text}`);
  });
}

/** A screen of its own for --watch; a terminal only, so that a file holds no control characters. */
function clearing(flags: Flags, terminal: { readonly stdout: { readonly isTTY?: boolean } }): string {
  return flags.bool('watch') || terminal.stdout.isTTY === true ? CLEAR_SCREEN : '';
}

export async function statsPods({ flags, args, console, signal, openCri }: Invocation): Promise<void> {
  const filter = { id: oneId(flags, args), label_selector: parsePairs(flags.list('label')) };
  const output = flags.text('output');
  const cri = await openCri();
  const measure = async (): Promise<PodSandboxStats__Output[]> => {
    const call = cri.call('ListPodSandboxStats', { filter });
    return (await failed('get pod stats: list pod sandbox stats', call)).stats.sort(byId);
  };
  await show(flags, signal, async () => {
    const before = await measure();
    const formatted = formatMessage('ListPodSandboxStatsResponse', { stats: before }, output);
    if (formatted !== undefined) return console.print(formatted);
    if (output !== '' && output !== 'table') throw unsupportedOutput(output);
    await sample(flags, signal);
    console.print(`${clearing(flags, console.terminal)}${podStatsTable(before, await measure())}`);
  });
}

export async function metricsPods({ flags, args, console, signal, openCri }: Invocation): Promise<void> {
  const output = flags.text('output') || 'json';
  if (args.length > 0 || (output !== 'json' && output !== 'yaml')) throw new ShowHelp();
  const cri = await openCri();
  await show(flags, signal, async () => {
    const call = cri.call('ListPodSandboxMetrics', {});
    const answer = await failed('get pod metrics: list pod sandbox metrics', call);
    console.print(formatMessage('ListPodSandboxMetricsResponse', answer, output) ?? '');
  });
}

export async function metricDescriptors({ flags, args, console, openCri }: Invocation): Promise<void> {
  const output = flags.text('output') || 'json';
  if (args.length > 0 || (output !== 'json' && output !== 'yaml')) throw new ShowHelp();
  const cri = await openCri();
  const call = cri.call('ListMetricDescriptors', {});
  const answer = await failed('get metric descriptors: list metric descriptors', call);
  console.print(formatMessage('ListMetricDescriptorsResponse', answer, output) ?? '');
}
