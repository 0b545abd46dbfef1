// Runs the rules over the facts: the first finding is the verdict, further ones are what is wrong besides. Pure.

import type { Facts } from './facts.ts';
import type { Explanation, Finding, NamedFinding, Rule, Target } from './finding.ts';

/** In the order of the groups, from the most final to the most general; of a group the first rule that has an opinion. */
export function findingsOf<F extends Facts>(
  groups: readonly (readonly Rule<F>[])[],
  facts: F,
): readonly NamedFinding[] {
  const findings: NamedFinding[] = [];
  for (const group of groups) {
    const found = firstFinding(group, facts);
    if (found === undefined) continue;
    findings.push(found);
    // Nothing comes after the end.
    if (found.state === 'ended') break;
  }
  return findings;
}

function firstFinding<F extends Facts>(group: readonly Rule<F>[], facts: F): NamedFinding | undefined {
  for (const { name, find } of group) {
    const finding: Finding | undefined = find(facts);
    if (finding !== undefined) return { rule: name, ...finding };
  }
  return undefined;
}

/** `fallback`: for what no rule knows. */
export function explain<F extends Facts>(
  target: Target,
  facts: F,
  rules: readonly (readonly Rule<F>[])[],
  fallback: (facts: F) => Finding,
  fine: (facts: F) => readonly string[],
): Explanation {
  const [first, ...more] = findingsOf(rules, facts);
  const finding = first ?? { rule: 'unknown', ...fallback(facts) };
  return {
    target,
    at: facts.now,
    finding,
    others: more.filter(({ state }) => state === 'broken'),
    fine: fine(facts),
    gaps: facts.gaps,
  };
}
