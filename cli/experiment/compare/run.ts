// `nodelet experiment compare A B`: reads two folders, prints the comparison, writes it where a file is named.

import { extname } from 'node:path';
import { writeFileAtomic } from '../../../lib/atomic.ts';
import { errnoOf, errorMessage, UserError } from '../../../lib/errors.ts';
import type { ReportDocument } from '../report/document.ts';
import { plotsInText, renderHtml } from '../report/document.ts';
import { readResultFolder } from '../report/folder.ts';
import { compareResults } from './compare.ts';
import { comparisonDocument, comparisonText } from './report.ts';

export interface CompareOptions {
  /** How far two numbers may be apart, as a part of the larger: 0.1 for a tenth. Default 0. */
  readonly tolerance?: number;
  /** A page (.html), or Markdown (.md). */
  readonly output?: string;
}

/** "10%" or "0.1" as a part of one. Throws UserError. */
export function parseTolerance(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text.trim());
  const value = match === null ? Number.NaN : Number(match[1]) / (match[2] === '%' ? 100 : 1);
  if (!(value >= 0 && value <= 1)) throw new UserError(`--tolerance "${text}" is not a part as 10% or 0.1`);
  return value;
}

/** The text of a file for its name. Throws UserError for any ending but .html and .md. */
function rendered(document: ReportDocument, file: string): string {
  switch (extname(file)) {
    case '.html':
      return renderHtml(document);
    case '.md':
      return plotsInText(document);
    default:
      throw new UserError(`${file}: a comparison is written as .html or .md`);
  }
}

/** Resolves with 0 when the results are equal within the tolerance, 1 when not. Rejects with UserError. */
export async function runCompare(
  a: string,
  b: string,
  { tolerance = 0, output }: CompareOptions,
  print: (text: string) => void,
): Promise<number> {
  const [left, right] = [
    { name: a, result: await readResultFolder(a) },
    { name: b, result: await readResultFolder(b) },
  ];
  const comparison = compareResults(left.result, right.result, tolerance);
  for (const line of comparisonText(left, right, comparison, tolerance)) print(`${line}\n`);
  if (output !== undefined) {
    const text = rendered(comparisonDocument(left, right, comparison, tolerance), output);
    try {
      await writeFileAtomic(output, text);
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      throw new UserError(`the comparison cannot be written: ${errorMessage(error)}`);
    }
    print(`written: ${output}\n`);
  }
  return comparison.equal ? 0 : 1;
}
