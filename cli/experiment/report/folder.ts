// The folder of a result: report.md, report.html, result.json, plots/*.svg and the recordings. Thin: the texts are report.ts's.

import { mkdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { errnoOf, errorMessage, isErrno, UserError } from '../../../lib/errors.ts';
import type { ExperimentResult } from '../model.ts';
import { plotFile, renderHtml, renderMarkdown } from './document.ts';
import { renderPlot } from './plot-svg.ts';
import { plotBlocks, reportOf } from './report.ts';

export const RESULT_FILE = 'result.json';

/** Everything that a result's folder contains, by name. Pure. */
export function resultFiles(
  result: ExperimentResult,
  recordings: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const document = reportOf(result);
  return new Map([
    ...recordings,
    ...plotBlocks(result).map(({ plot, name }): [string, string] => [
      plotFile(name),
      renderPlot(plot, `plot-${name}`, true),
    ]),
    [RESULT_FILE, `${JSON.stringify(result, undefined, 2)}\n`],
    ['report.md', renderMarkdown(document)],
    ['report.html', renderHtml(document)],
  ]);
}

/**
 * Writes a result's folder, which is made where it is missing; files of an earlier result there are replaced. Returns the
 * names of the files. Throws where a recording's name is not a plain one.
 */
export async function writeResultFolder(
  folder: string,
  result: ExperimentResult,
  recordings: ReadonlyMap<string, string>,
): Promise<readonly string[]> {
  for (const name of recordings.keys()) {
    if (name !== basename(name) || name.startsWith('.')) throw new Error(`"${name}" is not the plain name of a file`);
  }
  const files = resultFiles(result, recordings);
  try {
    await mkdir(join(folder, 'plots'), { recursive: true });
    for (const [name, text] of files) await writeFileAtomic(join(folder, name), text);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    throw new UserError(`the result cannot be written to ${folder}: ${errorMessage(error)}`);
  }
  return [...files.keys()];
}

/** Rejects with UserError when the folder has no result, or one of another version. */
export async function readResultFolder(folder: string): Promise<ExperimentResult> {
  const path = join(folder, RESULT_FILE);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) {
      throw new UserError(`${folder} is no result of an experiment: there is no ${RESULT_FILE}`);
    }
    throw error;
  }
  return parseResult(text, path);
}

/** Throws UserError. */
export function parseResult(text: string, path: string): ExperimentResult {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new UserError(`${path} is not JSON: ${error.message}`);
    throw error;
  }
  if (!isResult(value)) throw new UserError(`${path} is no result of an experiment, or of another version of nodelet`);
  return value;
}

function isResult(value: unknown): value is ExperimentResult {
  if (typeof value !== 'object' || value === null) return false;
  return (
    'version' in value &&
    value.version === 1 &&
    'experiment' in value &&
    typeof value.experiment === 'object' &&
    'runs' in value &&
    Array.isArray(value.runs)
  );
}
