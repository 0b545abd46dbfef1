// What `nodelet experiment` does: list, show, run. Texts go through `print`; commands/experiment.ts has the flags.

import { readFile } from 'node:fs/promises';
import { KUBELET_VERSION } from '../../agent/compose/base.ts';
import { UserError } from '../../lib/errors.ts';
import { findExperiment, LIBRARY, libraryNames, openExperiment } from './library.ts';
import { loadExperiment } from './load.ts';
import type { Experiment, ExperimentResult } from './model.ts';
import { writeResultFolder } from './report/folder.ts';
import { type Outcome, type RunOptions, runExperiment } from './runner.ts';
import { createSimWorld } from './sim/world.ts';
import type { World, WorldKind } from './world.ts';

type Print = (text: string) => void;

export interface RunFlags {
  readonly on: string;
  readonly agent: string;
  readonly repeat: string;
  readonly seed: string;
  /** "name=v1,v2", or "name" for the values of the file. */
  readonly matrix: readonly string[];
  readonly output?: string;
}

export async function listExperiments(print: Print): Promise<void> {
  const names = await libraryNames();
  const rows = await Promise.all(
    names.map(async (name) => {
      const { experiment } = await loadExperiment(`${LIBRARY}/${name}.yaml`);
      return [name, experiment.on.join(','), experiment.metadata.title] as const;
    }),
  );
  const width = (column: 0 | 1): number => Math.max(...rows.map((row) => row[column].length));
  for (const [name, on, title] of rows) print(`${name.padEnd(width(0))}  ${on.padEnd(width(1))}  ${title}\n`);
}

export async function showExperiment(fileOrName: string, print: Print): Promise<void> {
  print(await readFile(await findExperiment(fileOrName), 'utf8'));
}

/** Pure. Throws UserError. */
export function parseMatrix(
  texts: readonly string[],
  experiment: Experiment,
): Map<string, readonly (string | number)[]> {
  const matrix = new Map<string, readonly (string | number)[]>();
  const parameters = new Map(Object.entries(experiment.parameters ?? {}));
  for (const text of texts) {
    const [, name = '', , list] = /^([^=]+)(=(.*))?$/.exec(text) ?? [];
    const parameter = parameters.get(name);
    if (parameter === undefined) {
      const known = parameters.size === 0 ? 'it has none' : `it has ${[...parameters.keys()].join(', ')}`;
      throw new UserError(`--matrix ${text}: the experiment has no parameter "${name}"; ${known}`);
    }
    const isNumber = typeof parameter.default === 'number';
    const values = list?.split(',').map((value) => {
      if (!isNumber) return value;
      if (value.trim() === '' || !Number.isFinite(Number(value)))
        throw new UserError(`--matrix ${text}: "${value}" is no number`);
      return Number(value);
    });
    const chosen = values ?? parameter.values;
    if (chosen === undefined)
      throw new UserError(`--matrix ${text}: say which values, as ${name}=a,b: the file lists none`);
    matrix.set(name, chosen);
  }
  return matrix;
}

function wholeNumber(flag: string, text: string, least: number): number {
  if (!/^\d+$/.test(text) || Number(text) < least)
    throw new UserError(`${flag} must be a whole number from ${least}, not "${text}"`);
  return Number(text);
}

function worldKind(text: string): WorldKind {
  if (text === 'sim' || text === 'lab' || text === 'vm') return text;
  throw new UserError(`--on ${text}: there are sim, lab and vm`);
}

/** How a result names the agent. Rejects with UserError for one that cannot run there. */
async function agentName(kind: WorldKind, agent: string): Promise<string> {
  if (agent === 'nodelet') return `nodelet ${KUBELET_VERSION}`;
  if (kind === 'sim')
    throw new UserError('--agent: the simulated world runs nodelet alone; --on lab and --on vm run a kubelet');
  const { nameOfAgent, parseAgent } = await import('./lab/lab-agent.ts');
  return await nameOfAgent(parseAgent(agent));
}

async function worldMaker(kind: 'sim' | 'lab', agent: string, note: Print): Promise<(seed: number) => World> {
  if (kind === 'sim') return (seed) => createSimWorld({ seed });
  const { createLabWorld } = await import('./lab/world.ts');
  return () => createLabWorld({ agent, say: note });
}

type Given = Omit<RunOptions, 'createWorld' | 'kind'>;

/** `agent`: as the user names it. */
async function runOn(kind: WorldKind, agent: string, given: Given): Promise<Outcome> {
  if (kind === 'vm') {
    const { runOnVm } = await import('./vm/host.ts');
    return await runOnVm({ ...given, agent, agentName: given.agent });
  }
  return await runExperiment({ ...given, kind, createWorld: await worldMaker(kind, agent, given.note) });
}

/** Resolves with the exit code: 0 where every expectation was met. */
export async function runCommand(
  fileOrName: string,
  flags: RunFlags,
  { print, note, signal }: { readonly print: Print; readonly note: Print; readonly signal: AbortSignal },
): Promise<number> {
  const source = await openExperiment(fileOrName);
  const kind = worldKind(flags.on);
  const matrix = parseMatrix(flags.matrix, source.experiment);
  const repeat = wholeNumber('--repeat', flags.repeat, 1);
  const seed = wholeNumber('--seed', flags.seed, 0);
  const agent = await agentName(kind, flags.agent);
  const given = { source, agent, repeat, seed, matrix, signal, note };
  const { result, recordings } = await runOn(kind, flags.agent, given);
  print(summary(result));
  const folder = flags.output ?? `experiment-${source.experiment.metadata.name}-${kind}`;
  await writeResultFolder(folder, result, recordings);
  print(`report: ${folder}/report.md, ${folder}/report.html\n`);
  return result.verdict === 'passed' ? 0 : 1;
}

/** The verdict with every expectation, for a terminal. Pure. */
export function summary({ experiment, world, verdict, runs }: ExperimentResult): string {
  const lines = [`${experiment.metadata.name} on ${world}: ${verdict}`];
  for (const { parameters, worldMs, wallMs, expectations, failure } of runs) {
    const values = Object.entries(parameters).map(([name, value]) => `${name}=${value}`);
    const seconds = (ms: number): string => (ms / 1000).toFixed(1);
    lines.push(`  ${[...values, `${seconds(worldMs)} s of the world in ${seconds(wallMs)} s`].join(', ')}`);
    if (failure !== undefined) lines.push(`    failed: ${failure}`);
    for (const { outcome, that, detail, because } of expectations) {
      lines.push(`    ${outcome}: ${that}`);
      if (outcome === 'not met' || outcome === 'error')
        lines.push(`      ${detail}${because === undefined ? '' : ` (expected because: ${because})`}`);
    }
  }
  return `${lines.join('\n')}\n`;
}
