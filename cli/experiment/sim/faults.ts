// The rules of a `fault` step on the simulated world's connections: which call goes wrong, and how. It keeps count of the
// rules that hold for some calls only.

import { RuntimeError } from '../../../agent/ports/runtime.ts';
import { ApiError } from '../../../client/errors.ts';
import type { DnsAnswer, DnsInjection } from '../../../labs/sim/dns.ts';
import type { Injection } from '../../../labs/sim/line.ts';
import type { PluginInjection } from '../../../labs/sim/network.ts';
import { milliseconds } from '../duration.ts';
import { matchesText } from '../expression/functions.ts';
import type { FaultRule } from '../model.ts';

/** A plugin that hangs is killed by its caller before this. */
const HANGS_MS = 3_600_000;
const DELAY_MS = 1_000;

export class FaultSet {
  readonly #rules: { readonly rule: FaultRule; used: number }[];

  constructor(rules: readonly FaultRule[]) {
    this.#rules = rules.map((rule) => ({ rule, used: 0 }));
  }

  /** The first rule that holds for a call; `pod` is "namespace/name" where it is known. */
  take(call: string, pod: string | undefined): FaultRule | undefined {
    const found = this.#rules.find(({ rule, used }) => {
      if (rule.times !== undefined && used >= rule.times) return false;
      return matchesText(rule.call, call) && (rule.pod === undefined || matchesPod(rule.pod, pod));
    });
    if (found === undefined) return undefined;
    found.used++;
    return found.rule;
  }
}

function matchesPod(pattern: string, pod: string | undefined): boolean {
  if (pod === undefined) return false;
  return matchesText(pattern, pattern.includes('/') ? pod : pod.slice(pod.indexOf('/') + 1));
}

function delayOf({ delay }: FaultRule): number {
  return delay === undefined ? DELAY_MS : milliseconds(delay);
}

/** For calls of CRI and of the API. */
export function injectionOf(rule: FaultRule, call: string, on: 'cri' | 'api'): Injection {
  const message = rule.message ?? `${call} was made to fail`;
  switch (rule.action) {
    case 'fail': {
      if (on === 'cri') return { kind: 'refused', error: new RuntimeError(call, rule.code ?? 'UNKNOWN', message) };
      const code = Number(rule.code ?? 500);
      const reason = code === 503 ? 'ServiceUnavailable' : code === 429 ? 'TooManyRequests' : 'InternalError';
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message } as const;
      return { kind: 'refused', error: new ApiError(status, code, 'simulated') };
    }
    case 'delay':
      return { kind: 'delayed', ms: delayOf(rule) };
    case 'hang':
      return { kind: 'never' };
    case 'drop':
      return { kind: 'lost' };
    case 'duplicate':
      return { kind: 'twice' };
  }
}

export function pluginInjectionOf(rule: FaultRule, call: string): PluginInjection {
  if (rule.action === 'fail') {
    return { kind: 'failed', message: rule.message ?? `${call} was made to fail`, code: Number(rule.code ?? 999) };
  }
  return { kind: 'delayed', ms: rule.action === 'hang' ? HANGS_MS : delayOf(rule) };
}

/** The codes that a name server can answer with; another is SERVFAIL. */
const ANSWERS: ReadonlySet<string> = new Set<DnsAnswer>(['NXDOMAIN', 'NODATA', 'SERVFAIL']);

function isAnswer(code: string): code is DnsAnswer {
  return ANSWERS.has(code);
}

export function dnsInjectionOf(rule: FaultRule): DnsInjection {
  if (rule.action === 'delay') return { delayMs: delayOf(rule) };
  if (rule.action !== 'fail') return { answer: 'none' };
  const code = rule.code ?? 'SERVFAIL';
  return { answer: isAnswer(code) ? code : 'SERVFAIL' };
}
