// What becomes of a call on the simulated world's connections by a rule of a `fault` step. Pure.

import { RuntimeError } from '../../../agent/ports/runtime.ts';
import { ApiError } from '../../../client/errors.ts';
import type { DnsAnswer, DnsInjection } from '../../../labs/sim/dns.ts';
import type { Injection } from '../../../labs/sim/line.ts';
import type { PluginInjection } from '../../../labs/sim/network.ts';
import { apiFailure, delayOf } from '../fault-set.ts';
import type { FaultRule } from '../model.ts';

/** A plugin that hangs is killed by its caller before this. */
const HANGS_MS = 3_600_000;

/** For calls of CRI and of the API. */
export function injectionOf(rule: FaultRule, call: string, on: 'cri' | 'api'): Injection {
  switch (rule.action) {
    case 'fail': {
      if (on === 'cri') {
        const message = rule.message ?? `${call} was made to fail`;
        return { kind: 'refused', error: new RuntimeError(call, rule.code ?? 'UNKNOWN', message) };
      }
      const status = apiFailure(rule, call);
      return { kind: 'refused', error: new ApiError(status, status.code, 'simulated') };
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
