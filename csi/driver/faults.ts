// Faults on demand, for tests of a CO: calls that fail, hang, are late, are on hold until their rule is removed, or kill the
// driver at a chosen step. Rules come from a control file that is read at every call, or from NODELET_CSI_FAULTS. Without
// either nothing here does anything.

import { writeFileAtomic } from '../../lib/atomic.ts';
import type { Clock } from '../../lib/clock.ts';
import { UserError } from '../../lib/errors.ts';
import { poll } from '../../lib/retry.ts';
import { sameJson } from '../../lib/same-json.ts';
import { type DriverCode, DriverError } from './errors.ts';

export interface FaultRule {
  /** "NodeStageVolume", or "*". */
  readonly method: string;
  /** Only calls for this volume id. */
  readonly volume?: string;
  /** Only the nth matching call since the driver started, from 1. */
  readonly call?: number;
  /** At most this many times; 0: always. Default 1. */
  readonly times: number;
  /** `before` the call is handled, `after` its work is done, or before its nth change to the machine (from 1). */
  readonly when: 'before' | 'after' | number;
  /** `hold` is a delay until the rule is gone from the control file. */
  readonly action: 'fail' | 'delay' | 'hold' | 'hang' | 'crash';
  /** For `fail`. */
  readonly code: DriverCode;
  readonly message: string;
  /** For `delay`. */
  readonly delayMs: number;
}

/** How often a call on hold checks whether its rule is still there, ms. */
const HOLD_LOOK_MS = 50;

const CODES: readonly DriverCode[] = [
  'INVALID_ARGUMENT',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'UNKNOWN',
  'INTERNAL',
  'PERMISSION_DENIED',
  'UNAUTHENTICATED',
];

/** Throws UserError for what is no list of rules. Pure. */
export function parseFaults(text: string): readonly FaultRule[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UserError(`fault rules are not JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (!Array.isArray(value)) throw new UserError('fault rules are not a list');
  return value.map((each: unknown, index) => parseRule(each, index));
}

function parseRule(value: unknown, index: number): FaultRule {
  const wrong = (what: string): UserError => new UserError(`fault rule ${index + 1}: ${what}`);
  if (typeof value !== 'object' || value === null) throw wrong('is no object');
  const fields = new Map(Object.entries(value));
  const known = ['method', 'volume', 'call', 'times', 'when', 'action', 'code', 'message', 'delayMs'];
  for (const key of fields.keys()) if (!known.includes(key)) throw wrong(`unknown field "${key}"`);
  const text = (key: string, fallback?: string): string => {
    const found = fields.get(key) ?? fallback;
    if (typeof found !== 'string') throw wrong(`"${key}" is not a text`);
    return found;
  };
  const count = (key: string, fallback: number): number => {
    const found = fields.get(key) ?? fallback;
    if (typeof found !== 'number' || !Number.isInteger(found) || found < 0) throw wrong(`"${key}" is no whole number`);
    return found;
  };
  const action = (['fail', 'delay', 'hold', 'hang', 'crash'] as const).find((each) => each === fields.get('action'));
  if (action === undefined) throw wrong('"action" is not fail, delay, hold, hang or crash');
  const given = fields.get('when') ?? 'before';
  const when = given === 'before' || given === 'after' ? given : count('when', 0);
  const code = CODES.find((each) => each === text('code', 'INTERNAL'));
  if (code === undefined) throw wrong(`"code" is not one of ${CODES.join(', ')}`);
  return {
    method: text('method'),
    ...(fields.has('volume') ? { volume: text('volume') } : {}),
    ...(fields.has('call') ? { call: count('call', 0) } : {}),
    times: count('times', 1),
    when,
    action,
    code,
    message: text('message', 'injected fault'),
    delayMs: count('delayMs', 0),
  };
}

export interface FaultsOptions {
  readonly clock: Clock;
  /** The control file; a file that is not there holds no rules. */
  readonly file?: string;
  /** Rules that hold for the whole life of the driver. */
  readonly rules?: readonly FaultRule[];
  readonly readFile: (path: string) => Promise<string | undefined>;
  /** Ends this process as SIGKILL would. Never returns. */
  readonly crash: () => never;
  /** Called when a call begins to be on hold. */
  readonly onHold?: (method: string, rule: FaultRule) => void;
}

/** What one call passes through. */
export interface FaultPoint {
  before(): Promise<void>;
  /** Before each change that the call makes to the machine. */
  step(): Promise<void>;
  after(): Promise<void>;
}

const NO_FAULTS: FaultPoint = { before: async () => {}, step: async () => {}, after: async () => {} };

export class Faults {
  readonly #options: FaultsOptions;
  /** Matching calls and firings, per rule's text: the file is read anew each time. */
  readonly #calls = new Map<string, number>();
  readonly #fired = new Map<string, number>();

  constructor(options: FaultsOptions) {
    this.#options = options;
  }

  async open(method: string, volume: string): Promise<FaultPoint> {
    const { file, rules: fixed = [] } = this.#options;
    if (file === undefined && fixed.length === 0) return NO_FAULTS;
    const text = file === undefined ? undefined : await this.#options.readFile(file);
    const rules = [...(text === undefined ? [] : parseFaults(text)), ...fixed].filter(
      (rule) => (rule.method === '*' || rule.method === method) && (rule.volume ?? volume) === volume,
    );
    const due = rules.filter((rule) => {
      const key = JSON.stringify(rule);
      const nth = (this.#calls.get(key) ?? 0) + 1;
      this.#calls.set(key, nth);
      return rule.call === undefined || rule.call === nth;
    });
    if (due.length === 0) return NO_FAULTS;
    let steps = 0;
    const at = async (when: FaultRule['when']): Promise<void> => {
      for (const rule of due) if (rule.when === when) await this.#fire(rule, method);
    };
    return { before: () => at('before'), step: () => at(++steps), after: () => at('after') };
  }

  async #fire(rule: FaultRule, method: string): Promise<void> {
    const key = JSON.stringify(rule);
    const fired = this.#fired.get(key) ?? 0;
    if (rule.times !== 0 && fired >= rule.times) return;
    this.#fired.set(key, fired + 1);
    switch (rule.action) {
      case 'fail':
        throw new DriverError(rule.code, rule.message);
      case 'delay':
        return this.#options.clock.sleep(rule.delayMs);
      case 'hold':
        this.#options.onHold?.(method, rule);
        await poll(async () => !(await this.#isHolding(rule)), { clock: this.#options.clock, everyMs: HOLD_LOOK_MS });
        return;
      case 'hang':
        return new Promise(() => undefined);
      case 'crash':
        await this.#forget(rule);
        this.#options.crash();
    }
  }

  /** One that did not come from the control file cannot be taken back. */
  async #isHolding(rule: FaultRule): Promise<boolean> {
    const { file, rules = [] } = this.#options;
    if (rules.includes(rule)) return true;
    const text = file === undefined ? undefined : await this.#options.readFile(file);
    return text !== undefined && parseFaults(text).some((each) => sameJson(each, rule));
  }

  /** Or the driver that is started again would die of the same rule. */
  async #forget(rule: FaultRule): Promise<void> {
    const { file } = this.#options;
    if (file === undefined || rule.times === 0) return;
    const text = await this.#options.readFile(file);
    if (text === undefined) return;
    const left = parseFaults(text).filter((each) => !sameJson(each, rule));
    await writeFileAtomic(file, `${JSON.stringify(left)}\n`);
  }
}
