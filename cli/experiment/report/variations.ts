// The runs of a result by variation: the same parameters, once or several times. Pure.

import type { ExperimentResult, RunResult } from '../model.ts';

export interface Variation {
  /** The same text for the same parameters, whatever their order. */
  readonly key: string;
  /** The parameters that differ between the runs of this result: "exitCode=1"; '' when there is one variation. */
  readonly label: string;
  readonly parameters: RunResult['parameters'];
  /** In the order of `repeat`. */
  readonly runs: readonly RunResult[];
}

export function variationKey(parameters: RunResult['parameters']): string {
  return JSON.stringify(Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

/** Names of the parameters that have more than one value, in the order of the file. */
export function variedParameters(runs: readonly RunResult[]): readonly string[] {
  const values = new Map<string, Set<string | number>>();
  for (const { parameters } of runs) {
    for (const [name, value] of Object.entries(parameters)) {
      values.set(name, (values.get(name) ?? new Set()).add(value));
    }
  }
  return [...values].flatMap(([name, all]) => (all.size > 1 ? [name] : []));
}

export function parameterText(parameters: RunResult['parameters'], names: readonly string[]): string {
  const values = new Map(Object.entries(parameters));
  return names.flatMap((name) => (values.has(name) ? [`${name}=${values.get(name)}`] : [])).join(', ');
}

/** In the order of their first run. */
export function variationsOf({ runs }: Pick<ExperimentResult, 'runs'>): readonly Variation[] {
  const varied = variedParameters(runs);
  const groups = new Map<string, RunResult[]>();
  for (const run of runs) {
    const key = variationKey(run.parameters);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [run]);
    else group.push(run);
  }
  return [...groups].flatMap(([key, group]) => {
    const [first] = group;
    if (first === undefined) return [];
    const sorted = group.toSorted((a, b) => a.repeat - b.repeat);
    return [{ key, label: parameterText(first.parameters, varied), parameters: first.parameters, runs: sorted }];
  });
}
