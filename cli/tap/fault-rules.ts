// The rules of `nodelet tap fault`: which calls are delayed, failed, dropped, duplicated or hung. Parsing and deciding are
// pure but for the counters of a running set of rules; fault-proxy.ts does what is decided.

import { UserError } from '../../lib/errors.ts';
import { parseGoDuration } from '../../lib/go-duration.ts';
import { statusNumber } from './decoded.ts';
import { isJsonObject, type JsonObject } from './json.ts';
import type { Subject } from './names.ts';
import { matchesMethod, matchesPattern, matchesPod } from './patterns.ts';
import { parseRulesFile, readRulesFile } from './rules-file.ts';

export type Effect =
  | { readonly kind: 'pass' }
  /** Answered by the tap; the runtime does not see the call. */
  | { readonly kind: 'fail'; readonly status: number; readonly message: string }
  /** The runtime sees the call; its answer never comes. */
  | { readonly kind: 'drop' }
  /** Neither is the runtime called nor the client answered. */
  | { readonly kind: 'hang' }
  /** Every message of a stream comes this many times more. */
  | { readonly kind: 'duplicate'; readonly times: number };

export interface FaultRule {
  readonly name: string;
  /** Patterns; absent matches every call. */
  readonly method: string | undefined;
  /** A pattern of what a stream of events tells: containerd's topic, or CRI's type. Such a rule is about events, not about calls. */
  readonly event?: string | undefined;
  readonly pod: string | undefined;
  readonly container: string | undefined;
  /** Only this one of the calls that match, from 1. */
  readonly nth: number | undefined;
  /** At most so many times. */
  readonly count: number | undefined;
  /** 0 to 1 */
  readonly probability: number;
  readonly delayMs: number;
  readonly effect: Effect;
}

export interface FaultRules {
  readonly seed: number;
  readonly rules: readonly FaultRule[];
}

export interface FaultDecision {
  readonly delayMs: number;
  readonly effect: Effect;
  /** Names of the rules that took effect. */
  readonly rules: readonly string[];
}

export interface CallToJudge {
  /** The path. */
  readonly method: string;
  readonly subject: Subject;
  readonly responseStream: boolean;
}

/** One message of a stream of events. */
export interface EventToJudge {
  /** "/tasks/exit", "CONTAINER_STOPPED_EVENT" */
  readonly event: string;
  readonly subject: Subject;
}

const RULE_KEYS = new Set([
  'name',
  'method',
  'event',
  'pod',
  'container',
  'nth',
  'count',
  'probability',
  'delay',
  'fail',
  'drop',
  'hang',
  'duplicate',
]);

/** Throws UserError that names the place. */
export function parseFaultRules(text: string, file: string): FaultRules {
  const { seed = 1, rules } = parseRulesFile(text, file, ['seed', 'rules'], '"rules"');
  if (typeof seed !== 'number' || !Number.isInteger(seed)) throw new UserError(`${file}: seed must be a whole number`);
  if (!Array.isArray(rules) || rules.length === 0) throw new UserError(`${file}: rules must be a list of at least one`);
  return { seed, rules: rules.map((rule: unknown, index) => parseRule(rule, index, `${file}: rules[${index}]`)) };
}

function parseRule(rule: unknown, index: number, where: string): FaultRule {
  if (!isJsonObject(rule)) throw new UserError(`${where} must be a mapping`);
  const unknown = Object.keys(rule).find((key) => !RULE_KEYS.has(key));
  if (unknown !== undefined) throw new UserError(`${where}.${unknown} is none of ${[...RULE_KEYS].join(', ')}`);
  const text = (key: string, value: unknown): string | undefined => {
    if (value !== undefined && (typeof value !== 'string' || value === ''))
      throw new UserError(`${where}.${key} must be a text`);
    return value;
  };
  const whole = (key: string, value: unknown): number | undefined => {
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 1)
      throw new UserError(`${where}.${key} must be a whole number from 1`);
    return value;
  };
  const { probability = 1 } = rule;
  if (typeof probability !== 'number' || probability < 0 || probability > 1)
    throw new UserError(`${where}.probability must be from 0 to 1`);
  const delayMs = parseDelay(rule['delay'], where);
  const effect = parseEffect(rule, where, whole('duplicate', rule['duplicate']));
  if (effect.kind === 'pass' && delayMs === 0)
    throw new UserError(`${where} must have one of delay, fail, drop, hang, duplicate`);
  const event = text('event', rule['event']);
  if (event !== undefined && (effect.kind !== 'drop' || delayMs > 0 || rule['method'] !== undefined))
    throw new UserError(`${where}.event goes with drop alone: an event is lost or it is not`);
  return {
    name: text('name', rule['name']) ?? `rule ${index + 1}`,
    method: text('method', rule['method']),
    event,
    pod: text('pod', rule['pod']),
    container: text('container', rule['container']),
    nth: whole('nth', rule['nth']),
    count: whole('count', rule['count']),
    probability,
    delayMs,
    effect,
  };
}

function parseDelay(value: unknown, where: string): number {
  if (value === undefined) return 0;
  const delayMs = parseGoDuration(String(value));
  if (delayMs === undefined || delayMs < 0) throw new UserError(`${where}.delay must be a time as 200ms, 1.5s or 2m`);
  return delayMs;
}

function parseEffect(rule: JsonObject, where: string, times: number | undefined): Effect {
  const { fail, drop, hang } = rule;
  for (const [key, value] of [
    ['drop', drop],
    ['hang', hang],
  ] as const)
    if (value !== undefined && value !== true) throw new UserError(`${where}.${key} can only be true`);
  const effects: Effect[] = [];
  if (fail !== undefined) effects.push(parseFail(fail, where));
  if (drop === true) effects.push({ kind: 'drop' });
  if (hang === true) effects.push({ kind: 'hang' });
  if (times !== undefined) effects.push({ kind: 'duplicate', times });
  if (effects.length > 1) throw new UserError(`${where} has more than one of fail, drop, hang, duplicate`);
  return effects[0] ?? { kind: 'pass' };
}

function parseFail(fail: unknown, where: string): Effect {
  if (!isJsonObject(fail)) throw new UserError(`${where}.fail must have "code" and may have "message"`);
  const unknown = Object.keys(fail).find((key) => key !== 'code' && key !== 'message');
  if (unknown !== undefined) throw new UserError(`${where}.fail.${unknown} is neither code nor message`);
  const { code, message = 'failed by nodelet tap' } = fail;
  const status = typeof code === 'string' ? statusNumber(code) : undefined;
  if (status === undefined || status === 0)
    throw new UserError(`${where}.fail.code must be a gRPC code as UNAVAILABLE, not "${String(code)}"`);
  if (typeof message !== 'string') throw new UserError(`${where}.fail.message must be a text`);
  return { kind: 'fail', status, message };
}

/** Rejects with UserError. */
export async function readFaultFile(path: string): Promise<FaultRules> {
  return parseFaultRules(await readRulesFile(path), path);
}

/** Uniform in [0, 1), the same series for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A set of rules in use: counts, and decides call by call. */
export class FaultEngine {
  readonly #rules: readonly { readonly rule: FaultRule; matched: number; used: number }[];
  readonly #random: () => number;

  constructor({ seed, rules }: FaultRules) {
    this.#rules = rules.map((rule) => ({ rule, matched: 0, used: 0 }));
    this.#random = seededRandom(seed);
  }

  /** Delays add up; of other effects the first rule's counts. */
  decide(call: CallToJudge): FaultDecision {
    let delayMs = 0;
    let effect: Effect = { kind: 'pass' };
    const names: string[] = [];
    for (const each of this.#rules) {
      const { rule } = each;
      if (!matches(rule, call) || !this.#takes(each)) continue;
      delayMs += rule.delayMs;
      if (effect.kind === 'pass') effect = rule.effect;
      names.push(rule.name);
    }
    return { delayMs, effect, rules: names };
  }

  /** The name of the rule by which an event is lost; undefined where it passes. */
  loses({ event, subject }: EventToJudge): string | undefined {
    return this.#rules.find((each) => {
      const { rule } = each;
      if (rule.event === undefined || !matchesPattern(rule.event, event)) return false;
      return isAbout(rule, subject) && this.#takes(each);
    })?.rule.name;
  }

  /** Whether a rule that matches takes effect this time. */
  #takes(each: { readonly rule: FaultRule; matched: number; used: number }): boolean {
    const { rule } = each;
    each.matched++;
    if (rule.nth !== undefined && each.matched !== rule.nth) return false;
    if (rule.count !== undefined && each.used >= rule.count) return false;
    if (rule.probability < 1 && this.#random() >= rule.probability) return false;
    each.used++;
    return true;
  }
}

function matches(rule: FaultRule, { method, subject, responseStream }: CallToJudge): boolean {
  if (rule.event !== undefined) return false;
  // A unary call has one answer, and gRPC no way to give it twice.
  if (rule.effect.kind === 'duplicate' && !responseStream) return false;
  if (rule.method !== undefined && !matchesMethod(rule.method, method)) return false;
  return isAbout(rule, subject);
}

function isAbout(rule: FaultRule, subject: Subject): boolean {
  if (rule.pod !== undefined && !matchesPod(rule.pod, subject.pod)) return false;
  if (rule.container === undefined) return true;
  return subject.container !== undefined && matchesPattern(rule.container, subject.container);
}
