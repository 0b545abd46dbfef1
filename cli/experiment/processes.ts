// Which process of the cluster a step kills or starts, and the refusal of one that a world does not have: the same line from
// every world, before anything is started. Pure.

import type { ExperimentStep, ProcessName } from './model.ts';

/** One line, or none. `missing`: why the world has no such process of its own; undefined where it has one. */
export function processProblems(
  step: ExperimentStep,
  missing: (name: ProcessName) => string | undefined,
): readonly string[] {
  const [verb, name] =
    'kill' in step && 'process' in step.kill
      ? (['kill', step.kill.process] as const)
      : 'start' in step
        ? (['start', step.start.process] as const)
        : [];
  const why = name === undefined ? undefined : missing(name);
  return why === undefined ? [] : [`${verb} ${name}: ${why}`];
}
