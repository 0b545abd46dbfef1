// Which process of the cluster a step kills or starts, and the refusal of one that a world does not have: the same line from
// every world, before anything is started. Pure.

import type { ExperimentStep, ProcessName } from './model.ts';

/** One line, or none. `missing`: why the world has no such process of its own; undefined where it has one. */
export function processProblems(
  step: ExperimentStep,
  missing: (name: ProcessName) => string | undefined,
): readonly string[] {
  const problems = (verb: string, name: ProcessName): readonly string[] => {
    const why = missing(name);
    return why === undefined ? [] : [`${verb} ${name}: ${why}`];
  };
  if ('kill' in step && 'process' in step.kill) return problems('kill', step.kill.process);
  return 'start' in step ? problems('start', step.start.process) : [];
}
