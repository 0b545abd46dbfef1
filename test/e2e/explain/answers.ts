// `nodelet explain` as tests use it: the command's own code, called in this process. The shape of its JSON is that of docs/explain.md.

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

/** Waits until this rule gives the verdict for the pod: what comes before it (starting, being pulled) is right in its time. */
export async function verdictFor(lab: TestLab, name: string, rule: string, verdict: RegExp = /./): Promise<Answer> {
  let last: Answer | undefined;
  const look = async (): Promise<Answer | undefined> => {
    last = await answerFor(lab, 'pod', `${lab.namespace}/${name}`);
    return last.rule === rule && verdict.test(last.verdict) ? last : undefined;
  };
  const what = `the rule ${rule} with ${verdict} for pod ${name}`;
  return await eventually(what, look, PATIENCE_MS).catch((error: unknown) => {
    throw new Error(`${error}; the answer is ${JSON.stringify(last, undefined, 1)}`);
  });
}
