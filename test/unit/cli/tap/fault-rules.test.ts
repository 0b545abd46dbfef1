// Which calls the rules strike.

import { expect, test } from 'vitest';
import { type CallToJudge, FaultEngine, parseFaultRules } from '../../../../cli/tap/fault-rules.ts';

const call = (method: string, pod?: string, container?: string, responseStream = false): CallToJudge => ({
  method: `/runtime.v1.RuntimeService/${method}`,
  subject: { ...(pod === undefined ? {} : { pod }), ...(container === undefined ? {} : { container }) },
  responseStream,
});

const engine = (rules: string): FaultEngine => new FaultEngine(parseFaultRules(rules, 'rules'));

/** What becomes of the same call, again and again. */
function kinds(rules: string, times: number, decided = call('StartContainer', 'demo/web', 'main')): string[] {
  const running = engine(rules);
  return Array.from({ length: times }, () => {
    const { effect, delayMs } = running.decide(decided);
    return delayMs === 0 ? effect.kind : `${effect.kind}+${delayMs}`;
  });
}

test.each([
  ['every call', 'rules: [{hang: true}]', 2, ['hang', 'hang']],
  ['a method', 'rules: [{method: StartContainer, drop: true}]', 1, ['drop']],
  ['another method', 'rules: [{method: StopContainer, drop: true}]', 1, ['pass']],
  ['a pattern', 'rules: [{method: "Start*", delay: 200ms}]', 1, ['pass+200']],
  ['a pod and a container', 'rules: [{pod: web, container: main, delay: 1.5s}]', 1, ['pass+1500']],
  ['another container', 'rules: [{pod: web, container: other, hang: true}]', 1, ['pass']],
  ['the second call', 'rules: [{nth: 2, hang: true}]', 3, ['pass', 'hang', 'pass']],
  ['at most twice', 'rules: [{count: 2, hang: true}]', 3, ['hang', 'hang', 'pass']],
  ['never', 'rules: [{probability: 0, hang: true}]', 3, ['pass', 'pass', 'pass']],
  [
    'delays add up, the first effect counts',
    'rules: [{delay: 1s}, {drop: true, delay: 1m}, {hang: true}]',
    1,
    ['drop+61000'],
  ],
  ['a unary call has nothing to duplicate', 'rules: [{duplicate: 2}]', 1, ['pass']],
])('%s', (_, rules, times, expected) => {
  expect(kinds(rules, times)).toEqual(expected);
});

test('a failure has its code and message, a stream is duplicated', () => {
  const { effect, rules } = engine('rules: [{name: away, fail: {code: UNAVAILABLE, message: gone}}]').decide(
    call('Version'),
  );
  expect({ effect, rules }).toEqual({ effect: { kind: 'fail', status: 14, message: 'gone' }, rules: ['away'] });
  expect(
    engine('rules: [{duplicate: 2}]').decide(call('GetContainerEvents', undefined, undefined, true)).effect,
  ).toEqual({ kind: 'duplicate', times: 2 });
});

test('an event of one pod is lost as often as the rule says, and no call is', () => {
  const running = engine('rules: [{name: deaf, event: "/tasks/*", pod: demo/web, count: 1, drop: true}]');
  expect(running.decide(call('StartContainer', 'demo/web', 'main')).effect.kind).toBe('pass');
  const of = (event: string, pod: string): string | undefined => running.loses({ event, subject: { pod } });
  expect([
    of('/tasks/exit', 'demo/other'),
    of('/containers/delete', 'demo/web'),
    of('/tasks/exit', 'demo/web'),
  ]).toEqual([undefined, undefined, 'deaf']);
  expect(of('/tasks/exit', 'demo/web')).toBeUndefined();
});

test('chance is the same for the same seed, and about what was asked for', () => {
  const rules = (seed: number): string => `{seed: ${seed}, rules: [{probability: 0.3, hang: true}]}`;
  expect(kinds(rules(7), 200)).toEqual(kinds(rules(7), 200));
  expect(kinds(rules(7), 200)).not.toEqual(kinds(rules(8), 200));
  const struck = kinds(rules(7), 2000).filter((kind) => kind === 'hang').length;
  expect(struck).toBeGreaterThan(500);
  expect(struck).toBeLessThan(700);
});

test.each([
  ['[]', 'must have "rules"'],
  ['rules: []', 'at least one'],
  ['rules: [{event: /tasks/exit, hang: true}]', 'rules[0].event goes with drop alone'],
  ['rules: [{event: /tasks/exit, method: A, drop: true}]', 'rules[0].event goes with drop alone'],
  ['{rules: [{hang: true}], seed: x}', 'seed must be a whole number'],
  ['{rules: [{hang: true}], more: 1}', '"more" is neither'],
  ['rules: [1]', 'rules[0] must be a mapping'],
  ['rules: [{method: A}]', 'rules[0] must have one of delay'],
  ['rules: [{hang: true, drop: true}]', 'more than one of'],
  ['rules: [{hang: false}]', 'rules[0].hang can only be true'],
  ['rules: [{delay: 5}]', 'rules[0].delay must be a time'],
  ['rules: [{nth: 0, hang: true}]', 'rules[0].nth must be a whole number'],
  ['rules: [{probability: 2, hang: true}]', 'rules[0].probability must be from 0 to 1'],
  ['rules: [{fail: {code: BROKEN}}]', 'rules[0].fail.code must be a gRPC code'],
  ['rules: [{fail: {code: OK}}]', 'rules[0].fail.code must be a gRPC code'],
  ['rules: [{fail: {code: INTERNAL, text: x}}]', 'rules[0].fail.text is neither'],
  ['rules: [{pods: x, hang: true}]', 'rules[0].pods is none of'],
  ['rules: [', 'rules: '],
])('%s is refused', (text, why) => {
  expect(() => parseFaultRules(text, 'rules')).toThrow(why);
});
