// The rules of a `fault` step in force: which call goes wrong. It keeps count of the rules that hold for some calls only; what
// then happens to the call is done by those who have it in their hands.

import { requestInfo } from '../../client/paths.ts';
import type { Status } from '../../client/types.ts';
import { milliseconds } from './duration.ts';
import { matchesText } from './expression/functions.ts';
import type { FaultRule } from './model.ts';

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

/** ms */
export function delayOf({ delay }: FaultRule): number {
  return delay === undefined ? DELAY_MS : milliseconds(delay);
}

/** What an API server answers to a call that a rule fails. Pure. */
export function apiFailure(rule: FaultRule, call: string): Status & { readonly code: number } {
  const code = Number(rule.code ?? 500);
  const reason = code === 503 ? 'ServiceUnavailable' : code === 429 ? 'TooManyRequests' : 'InternalError';
  const message = rule.message ?? `${call} was made to fail`;
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message };
}

/** The pod of an API call's path, without its query. Pure. */
export function podOfPath(path: string): string | undefined {
  const { resource, namespace, name } = requestInfo(path);
  const isPod = resource === 'pods' || resource.startsWith('pods/');
  return isPod && namespace !== undefined && name !== undefined ? `${namespace}/${name}` : undefined;
}
