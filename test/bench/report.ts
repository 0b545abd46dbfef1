// The benchmark's figures as a table for people and as JSON for programs. Pure.

import { type Range, ratioRange, type Summary } from './stats.ts';

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly containerd: string;
  readonly node: string;
}

export interface Figures {
  readonly machine: Machine;
  /** Of what has no floor beside it; the others say in their summary how many there were. */
  readonly runs: number;
  /** All in ms. The least pod that CRI takes: no seccomp profile, no DNS, no mounts. */
  readonly bareStart: Summary;
  /** The agent's own requests, sent without the agent. */
  readonly floorStart: Summary;
  readonly start: Summary;
  /** How far the ratio of start to floorStart can be trusted. */
  readonly startRatio: Range;
  readonly floorRemove: Summary;
  readonly delete: Summary;
  readonly exitToStatus: Summary;
  /** Rows of their own, without a floor beside them, and what their p50 and their worst are to be. */
  readonly more?: readonly {
    readonly name: string;
    readonly summary: Summary;
    readonly limitMs?: number;
    readonly maxLimitMs?: number;
  }[];
  /** What the agent costs beside many pods. */
  readonly loads?: readonly {
    readonly name: string;
    readonly pods: number;
    readonly seconds: number;
    readonly cpuPercent: number;
    readonly rssMiB: number;
  }[];
  /** The agent beside pods that mount a large ConfigMap or Secret each, through a restart. */
  readonly fullNode?: {
    readonly pods: number;
    readonly megabytes: number;
    readonly peakRssMiB: number;
    readonly idleRssMiB: number;
  };
  readonly burst: { readonly pods: number; readonly floorMs: readonly number[]; readonly nodeletMs: readonly number[] };
  readonly agent: {
    readonly peakRssMiB: number;
    readonly idleRssMiB: number;
    readonly idlePods: number;
    readonly idleSeconds: number;
    /** Percent of one core. */
    readonly idleCpuPercent: number;
  };
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? Number.NaN;

const rangeText = ({ low, high }: Range): string => `${low.toFixed(2)} to ${high.toFixed(2)} ×`;

export interface Goal {
  readonly name: string;
  readonly value: number;
  readonly limit: number;
  readonly unit: string;
  readonly reached: boolean;
}

/** What is to be reached, and whether this run did. */
export function goals(figures: Figures): readonly Goal[] {
  const goal = (name: string, value: number, limit: number, unit: string): Goal => ({
    name,
    value,
    limit,
    unit,
    reached: value <= limit,
  });
  return [
    goal('start p50 / floor p50', figures.start.p50 / figures.floorStart.p50, 1.15, '×'),
    goal('exit → status p50', figures.exitToStatus.p50, 50, 'ms'),
    goal('burst / floor', median(figures.burst.nodeletMs) / median(figures.burst.floorMs), 1.15, '×'),
    goal('agent peak RSS', figures.agent.peakRssMiB, 120, 'MiB'),
    ...(figures.fullNode === undefined
      ? []
      : [goal('agent peak RSS with large ConfigMaps and Secrets', figures.fullNode.peakRssMiB, 180, 'MiB')]),
    goal('agent idle CPU', figures.agent.idleCpuPercent, 1, '% of a core'),
    ...(figures.more ?? []).flatMap(({ name, summary, limitMs, maxLimitMs }) => {
      const what = name.replace(/^nodelet: /, '');
      return [
        ...(limitMs === undefined ? [] : [goal(`${what} p50`, summary.p50, limitMs, 'ms')]),
        ...(maxLimitMs === undefined ? [] : [goal(`${what} max`, summary.max, maxLimitMs, 'ms')]),
      ];
    }),
  ];
}

/** Markdown, ready for the README. */
export function renderReport(figures: Figures): string {
  const ms = (value: number): string => value.toFixed(1);
  const row = (name: string, summary: Summary, floor?: Summary): string =>
    `| ${name} | ${ms(summary.p50)} | ${ms(summary.p95)} | ${ms(summary.max)} | ${floor === undefined ? '' : `${(summary.p50 / floor.p50).toFixed(2)} ×`} |`;
  const { machine, burst, agent } = figures;
  const burstRow = (name: string, values: readonly number[], ratio: string): string =>
    `| ${name} | ${ms(median(values))} | | ${ms(Math.max(...values))} | ${ratio} |`;
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB; Linux ${machine.kernel}; containerd ${machine.containerd}; Node ${machine.node}; ${figures.start.runs} starts, ${burst.floorMs.length} bursts, ${figures.runs} runs of the rest`,
    '',
    '| ms | p50 | p95 | max | p50 / floor |',
    '|---|---:|---:|---:|---:|',
    row('the same three calls for a bare pod: no seccomp, DNS or mounts', figures.bareStart, figures.floorStart),
    row('floor: RunPodSandbox + CreateContainer + StartContainer', figures.floorStart),
    row('nodelet: pod created → Running seen', figures.start, figures.floorStart),
    row('nodelet: container exit → status seen', figures.exitToStatus),
    row('floor: StopContainer + StopPodSandbox + RemovePodSandbox', figures.floorRemove),
    row('nodelet: delete → gone', figures.delete, figures.floorRemove),
    burstRow(`floor: burst of ${burst.pods}`, burst.floorMs, ''),
    burstRow(
      `nodelet: burst of ${burst.pods}`,
      burst.nodeletMs,
      `${(median(burst.nodeletMs) / median(burst.floorMs)).toFixed(2)} ×`,
    ),
    ...(figures.more ?? []).map(({ name, summary }) => row(name, summary)),
    '',
    `A ratio is as good as its runs are many: 95 of 100 runs like this one give ${rangeText(figures.startRatio)} for one pod, ${rangeText(ratioRange(burst.nodeletMs, burst.floorMs))} for the burst.`,
    `Agent: peak RSS ${agent.peakRssMiB.toFixed(0)} MiB; with ${agent.idlePods} idle pods for ${agent.idleSeconds} s: RSS ${agent.idleRssMiB.toFixed(0)} MiB, CPU ${agent.idleCpuPercent.toFixed(2)} % of a core.`,
    ...(figures.loads ?? []).map(
      ({ name, pods, seconds, cpuPercent, rssMiB }) =>
        `With ${pods} ${name} for ${seconds} s: RSS ${rssMiB.toFixed(0)} MiB, CPU ${cpuPercent.toFixed(2)} % of a core.`,
    ),
    ...(figures.fullNode === undefined
      ? []
      : [
          `With ${figures.fullNode.pods} pods that mount ${figures.fullNode.megabytes} MB of ConfigMaps and Secrets, and a restart of the agent: peak RSS ${figures.fullNode.peakRssMiB.toFixed(0)} MiB, afterwards RSS ${figures.fullNode.idleRssMiB.toFixed(0)} MiB.`,
        ]),
    '',
    ...goals(figures).map(
      (goal) =>
        `- ${goal.reached ? 'reached' : 'NOT reached'}: ${goal.name} ${goal.value.toFixed(2)} ${goal.unit} (to reach: ≤ ${goal.limit} ${goal.unit})`,
    ),
  ].join('\n');
}
