// The language between the machine and the host: one JSON object per line. Pure, apart from the one type it exports.

import type { Tally } from '../../scripts/tally.ts';

export type Message =
  /** Worth reporting, but no check. */
  | { readonly kind: 'note'; readonly text: string }
  | { readonly kind: 'check'; readonly name: string; readonly held: boolean; readonly saw: string }
  /** The last line: the job came to its own end. */
  | { readonly kind: 'end' };

/** Rejects what no job of ours has written: a line cut short by a crash, say. */
export function parseMessage(line: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (typeof value === 'object' && value !== null && 'kind' in value) {
    if (value.kind === 'end') return { kind: 'end' };
    if (value.kind === 'note' && 'text' in value && typeof value.text === 'string') {
      return { kind: 'note', text: value.text };
    }
    if (
      value.kind === 'check' &&
      'name' in value &&
      typeof value.name === 'string' &&
      'held' in value &&
      typeof value.held === 'boolean' &&
      'saw' in value &&
      typeof value.saw === 'string'
    ) {
      return { kind: 'check', name: value.name, held: value.held, saw: value.saw };
    }
  }
  throw new Error(`the machine sent a line that is no message: ${JSON.stringify(line.slice(0, 200))}`);
}

/** What a person reads. */
export function renderMessage(message: Message): readonly string[] {
  if (message.kind === 'end') return [];
  if (message.kind === 'note') return message.text.split('\n');
  const evidence = message.saw.trimEnd().split('\n');
  return [
    `  ${message.held ? 'ok  ' : 'FAIL'} ${message.name}`,
    ...evidence.filter((line) => line !== '').map((line) => `         | ${line}`),
  ];
}

/** A run counts only to its own end: one that broke off is one failure more, and so is one without any check. */
export function tallyMessages(messages: readonly Message[]): Tally {
  const checks = messages.filter((message) => message.kind === 'check');
  const failed = checks.filter((check) => !check.held).length;
  const whole = messages.some((message) => message.kind === 'end') && checks.length > 0;
  return { passed: checks.length - failed, failed: failed + (whole ? 0 : 1), skipped: 0 };
}
