// `nodelet explain` as tests use it: the command's own code, called in this process. The shape of its JSON is that of docs/explain.md.

import { expect } from 'vitest';
import { runExplain } from '../../../cli/explain/main.ts';
import { eventually } from '../agent/harness.ts';
import type { TestLab } from '../support/lab.ts';

/** For giving up only. */
const PATIENCE_MS = 120_000;

interface Link {
  readonly text: string;
  readonly call?: { readonly name: string; readonly to: string; readonly with?: string; readonly answer?: string };
  readonly since?: string;
  readonly at?: string;
  readonly count?: number;
  readonly nextTry?: string;
}

export interface Answer {
  readonly rule: string;
  readonly state: string;
  readonly verdict: string;
  readonly chain: readonly Link[];
  readonly commands: readonly { readonly command: string }[];
  readonly details: readonly { readonly lines: readonly string[] }[];
  readonly alsoFound: readonly { readonly rule: string; readonly verdict: string }[];
  readonly fine: readonly string[];
  readonly notLookedAt: readonly { readonly what: string; readonly why: string }[];
}

interface More {
  readonly output?: 'text' | 'json';
  readonly runtimeEndpoint?: string;
  readonly networkNamespace?: string;
  readonly from?: string;
}

/** What the command prints for `name` ("namespace/name"), and its exit code. */
export async function runText(
  lab: TestLab,
  kind: string,
  name: string,
  more: More = {},
): Promise<{ code: number; text: string }> {
  let text = '';
  const options = { root: lab.root, output: 'text', watch: false, ...more } as const;
  const write = (part: string): void => {
    text += part;
  };
  const code = await runExplain(kind, name, options, write, new AbortController().signal);
  return { code, text };
}

export async function answerFor(lab: TestLab, kind: string, name: string, more: More = {}): Promise<Answer> {
  return JSON.parse((await runText(lab, kind, name, { ...more, output: 'json' })).text);
}

/**
 * Waits until the answer passes `check`, which throws: a look has short deadlines of its own, of which a busy machine may miss one, and
 * what comes before the answer (starting, being pulled) is right in its time.
 */
export async function answerWhen(
  lab: TestLab,
  kind: string,
  name: string,
  check: (answer: Answer) => void,
  more: More = {},
): Promise<Answer> {
  let last: Answer | undefined;
  const look = async (): Promise<Answer> => {
    last = await answerFor(lab, kind, name, more);
    check(last);
    return last;
  };
  return await eventually(`the answer for ${kind} ${name}`, look, PATIENCE_MS).catch((error: unknown) => {
    throw new Error(`${error}; the answer is ${JSON.stringify(last, undefined, 1)}`);
  });
}

/** Waits until this rule gives the verdict for the pod, and the rest of the answer passes `check`. */
export async function verdictFor(
  lab: TestLab,
  name: string,
  rule: string,
  verdict: RegExp = /./,
  check: (answer: Answer) => void = () => undefined,
): Promise<Answer> {
  return await answerWhen(lab, 'pod', `${lab.namespace}/${name}`, (answer) => {
    expect(answer.rule).toBe(rule);
    expect(answer.verdict).toMatch(verdict);
    check(answer);
  });
}

/** The chain's texts, each with its call: "TEXT [NAME → TO: ANSWER]". */
export function chainText({ chain }: Pick<Answer, 'chain'>): string {
  return chain
    .map(({ text, call }) => (call === undefined ? text : `${text} [${call.name} → ${call.to}: ${call.answer}]`))
    .join('\n');
}
