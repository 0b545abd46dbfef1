import { describe, expect, test } from 'vitest';
import { type Message, parseMessage, renderMessage, tallyMessages } from '../../vm/results.ts';

const HELD: Message = { kind: 'check', name: 'a', held: true, saw: 'x\n\ny\n' };
const FAILED: Message = { kind: 'check', name: 'b', held: false, saw: '' };
const NOTE: Message = { kind: 'note', text: 'one\ntwo' };
const END: Message = { kind: 'end' };

describe('what the machine says', () => {
  test.each([HELD, FAILED, NOTE, END])('is read back as it was sent: %j', (message) => {
    expect(parseMessage(JSON.stringify(message))).toEqual(message);
  });

  test.each([
    ['is cut short', '{"kind":"chec'],
    ['is of no known kind', '{"kind":"stop"}'],
    ['lacks a field', '{"kind":"check","name":"a","held":true}'],
    ['has a field of another type', '{"kind":"check","name":"a","held":"yes","saw":""}'],
    ['is no object', 'null'],
    ['is empty', ''],
  ])('is refused when it %s', (_why, line) => {
    expect(() => parseMessage(line)).toThrow(/is no message/);
  });

  test('is shown with what was seen below each check', () => {
    expect(renderMessage(HELD)).toEqual(['  ok   a', '         | x', '         | y']);
    expect(renderMessage(FAILED)).toEqual(['  FAIL b']);
    expect(renderMessage(NOTE)).toEqual(['one', 'two']);
    expect(renderMessage(END)).toEqual([]);
  });
});

describe('the count', () => {
  test.each([
    ['of checks that held and that failed', [HELD, NOTE, FAILED, HELD, END], 2, 1],
    ['has one failure more when the run broke off', [HELD], 1, 1],
    ['has a failure when nothing was checked', [NOTE, END], 0, 1],
    ['has a failure when nothing was said', [], 0, 1],
  ] as const)('%s', (_what, messages, passed, failed) => {
    expect(tallyMessages([...messages])).toEqual({ passed, failed, skipped: 0 });
  });
});
