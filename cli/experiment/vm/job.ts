// What crosses the border between this machine and a virtual one: the experiment, read and varied here, as a job; and lines that
// come back, with the result and its recordings in parts. Pure.

import { errorMessage } from '../../../lib/errors.ts';
import type { ExperimentSource, ParameterValues } from '../load.ts';
import type { Experiment, ExperimentResult } from '../model.ts';
import { parseResult, RESULT_FILE } from '../report/folder.ts';
import { type Outcome, variationsOf } from '../runner.ts';

/** Names on the disk that the run brings along. */
export const JOB_FILE = 'job.json';
export const KUBELET_FILE = 'kubelet';

type Matrix = ReadonlyMap<string, readonly (string | number)[]>;

export interface VmJob {
  /** For messages. */
  readonly file: string;
  /** With the defaults of its parameters. */
  readonly experiment: Experiment;
  /** Every combination of the matrix: files of manifests that the experiment names are not in the machine. */
  readonly variations: readonly { readonly values: ParameterValues; readonly experiment: Experiment }[];
  readonly matrix: readonly (readonly [name: string, values: readonly (string | number)[]])[];
  readonly repeat: number;
  readonly seed: number;
  /** Of the world in the machine: "nodelet", or "kubelet=/path" there. */
  readonly agent: string;
  /** For the result. */
  readonly agentName: string;
}

/** Rejects with UserError for a variation that is not right. */
export async function jobOf(
  source: ExperimentSource,
  matrix: Matrix,
  more: Pick<VmJob, 'repeat' | 'seed' | 'agent' | 'agentName'>,
): Promise<VmJob> {
  const variations = await Promise.all(
    variationsOf(matrix).map(async (values) => ({ values, experiment: await source.vary(values) })),
  );
  return { ...more, file: source.file, experiment: source.experiment, variations, matrix: [...matrix] };
}

const keyOf = (values: ParameterValues): string => JSON.stringify(Object.entries(values).toSorted());

/** The experiment in the machine, as if its file were there. */
export function sourceOf({ file, experiment, variations }: VmJob): ExperimentSource {
  const byValues = new Map(variations.map(({ values, experiment: varied }) => [keyOf(values), varied]));
  return {
    file,
    experiment,
    vary: async (values) => {
      const varied = byValues.get(keyOf(values));
      if (varied === undefined) throw new Error(`the job has no variation ${keyOf(values)}`);
      return varied;
    },
  };
}

export type VmMessage =
  | { readonly kind: 'note'; readonly text: string }
  /** Nothing has happened, and it still runs. */
  | { readonly kind: 'alive' }
  /** The next part of a file of the result. */
  | { readonly kind: 'part'; readonly name: string; readonly text: string }
  /** What a user can mend; there is no result. */
  | { readonly kind: 'refused'; readonly text: string }
  /** The last line: everything has been sent. */
  | { readonly kind: 'end' };

/** Of a part: a line is read as a whole. */
const PART_LENGTH = 64 * 1024;

/** The lines of an outcome. */
export function* outcomeMessages({ result, recordings }: Outcome): Iterable<VmMessage> {
  for (const [name, text] of [[RESULT_FILE, JSON.stringify(result)] as const, ...recordings]) {
    for (let at = 0; at === 0 || at < text.length; at += PART_LENGTH)
      yield { kind: 'part', name, text: text.slice(at, at + PART_LENGTH) };
  }
  yield { kind: 'end' };
}

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : []);
}

/** Throws where a line was not written by the program in the machine, or was cut short. */
export function parseMessage(line: string): VmMessage {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new Error(`the machine sent a line that is not JSON: ${errorMessage(error)}`);
  }
  const fields = fieldsOf(value);
  const [kind, text, name] = [fields.get('kind'), fields.get('text'), fields.get('name')];
  if (kind === 'alive' || kind === 'end') return { kind };
  if ((kind === 'note' || kind === 'refused') && typeof text === 'string') return { kind, text };
  if (kind === 'part' && typeof text === 'string' && typeof name === 'string') return { kind, name, text };
  throw new Error(`the machine sent a line that is no message: ${line.slice(0, 200)}`);
}

/** What has come back so far. */
export class VmOutput {
  readonly #parts = new Map<string, string[]>();
  #refused: string | undefined;
  #isWhole = false;

  add(message: VmMessage): void {
    if (message.kind === 'end') this.#isWhole = true;
    else if (message.kind === 'refused') this.#refused = message.text;
    else if (message.kind === 'part') {
      const parts = this.#parts.get(message.name);
      if (parts === undefined) this.#parts.set(message.name, [message.text]);
      else parts.push(message.text);
    }
  }

  /** Why there is no result, in the words of the program in the machine. */
  get refused(): string | undefined {
    return this.#refused;
  }

  /** Undefined where the machine ended before it had sent everything. Throws UserError where the result is none. */
  outcome(): Outcome | undefined {
    if (!this.#isWhole) return undefined;
    const files = new Map([...this.#parts].map(([name, parts]) => [name, parts.join('')]));
    const result: ExperimentResult = parseResult(files.get(RESULT_FILE) ?? '', RESULT_FILE);
    files.delete(RESULT_FILE);
    return { result, recordings: files };
  }
}
