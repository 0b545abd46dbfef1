// Runs the rules over the facts: the first finding is the verdict, further ones are what is wrong besides. Pure.

import type { Facts } from './facts.ts';
import type { EachPart, Explanation, Finding, NamedFinding, Rule, RuleGroup, State, Target } from './finding.ts';

/** What a person has to mend comes before what goes on by itself. */
const SEVERITY: readonly State[] = ['broken', 'waiting', 'ended', 'ready'];

/**
 * In the order of the groups, from the most final to the most general; of a group what its first entry that has an opinion says,
 * of several parts the most severe first.
 */
export function findingsOf<F extends Facts>(groups: readonly RuleGroup<F>[], facts: F): readonly NamedFinding[] {
  const findings: NamedFinding[] = [];
  for (const group of groups) {
    const found = firstOpinion(group, facts);
    findings.push(...found);
    // Nothing comes after the end.
    if (found.some(({ state }) => state === 'ended')) break;
  }
  return findings;
}

function firstOpinion<F extends Facts>(group: RuleGroup<F>, facts: F): readonly NamedFinding[] {
  for (const entry of group) {
    const found = 'each' in entry ? findingsOfParts(entry, facts) : findingsOfRule(entry, facts);
    if (found.length > 0) return found;
  }
  return [];
}

function findingsOfRule<F extends Facts>({ name, find }: Rule<F>, facts: F): readonly NamedFinding[] {
  const finding: Finding | undefined = find(facts);
  return finding === undefined ? [] : [{ rule: name, ...finding }];
}

function findingsOfParts<F extends Facts>({ each, rules }: EachPart<F>, facts: F): readonly NamedFinding[] {
  const found = each(facts).flatMap((part) =>
    firstOpinion(rules, part).map((one) => ({ ...one, ofPart: true as const })),
  );
  const distinct = found.filter((one, index) => found.findIndex(({ verdict }) => verdict === one.verdict) === index);
  return distinct.toSorted((a, b) => SEVERITY.indexOf(a.state) - SEVERITY.indexOf(b.state));
}

/** `fallback`: for what no rule knows. */
export function explain<F extends Facts>(
  target: Target,
  facts: F,
  rules: readonly RuleGroup<F>[],
  fallback: (facts: F) => Finding,
  fine: (facts: F) => readonly string[],
): Explanation {
  const [first, ...more] = findingsOf(rules, facts);
  const finding = first ?? { rule: 'unknown', ...fallback(facts) };
  return {
    target,
    at: facts.now,
    finding,
    // What goes on by itself is worth a line only beside another part that the verdict is about.
    others: more.filter(({ state, ofPart }) => state === 'broken' || (state === 'waiting' && ofPart && finding.ofPart)),
    fine: fine(facts),
    gaps: facts.gaps,
  };
}
