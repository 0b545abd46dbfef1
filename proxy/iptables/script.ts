// What iptables-restore --noflush is given: all chains, or those alone that have changed; and what takes them away. Naming a chain
// (":NAME") empties it, or makes it. Compared is with iptables-save. Pure.

import { type Table, targetOf } from '../../cni/iptables.ts';
import { CANARY, isProxyChain, isServiceChain, NODE_PORTS, SERVICES } from './names.ts';
import type { Jump, ProxyTables } from './tables.ts';

const TABLES = ['filter', 'nat'] as const;
/** A canary is in each table that someone may empty. */
const CANARY_TABLES = ['mangle', ...TABLES] as const;

const declared = (name: string): string => `:${name} - [0:0]`;
const appended = (name: string, rules: readonly string[]): readonly string[] =>
  rules.map((rule) => `-A ${name} ${rule}`);

function chainsOf(saved: readonly Table[], table: string): ReadonlyMap<string, readonly string[]> {
  return saved.find(({ name }) => name === table)?.chains ?? new Map();
}

function section(table: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`*${table}`, ...lines, 'COMMIT'];
}

const joined = (lines: readonly string[]): string => (lines.length === 0 ? '' : `${lines.join('\n')}\n`);

/** Whether a chain of the kernel's leads to one of the proxy's. */
function hasJump(saved: readonly Table[], { table, from, to }: Jump): boolean {
  return (chainsOf(saved, table).get(from) ?? []).some((rule) => targetOf(rule) === to);
}

/** Whose rules they are: a comment in the canary's chain. */
export function ownerRule(owner: string): string {
  return `-m comment --comment "${owner}"`;
}

/** How much one transaction may have at most; all of it where there is no limit. */
export interface Parts {
  /** Chains of services. */
  readonly maxChains: number;
}

type Named = readonly [name: string, rules: readonly string[]];

/** What of the table nat is written: chains of each service, and those that all share; and chains that no service has any longer. */
interface NatChanges {
  readonly services: readonly (readonly Named[])[];
  readonly shared: readonly Named[];
  readonly gone: readonly string[];
}

const lines = (chains: readonly Named[]): readonly string[] => [
  ...chains.map(([name]) => declared(name)),
  ...chains.flatMap(([name, rules]) => appended(name, rules)),
];

/**
 * The table nat, in several transactions where there is much: iptables on nf_tables takes time with the square of what one
 * has. The chains of one service are in one of them, and those that lead to services come last.
 */
function natSections(
  { services, shared, gone }: NatChanges,
  { maxChains }: Parts,
  more: readonly string[] = [],
): readonly string[] {
  const leads = ([name]: Named): boolean => name === SERVICES || name === NODE_PORTS;
  const base = shared.filter((chain) => !leads(chain));
  const leading = shared.filter(leads);
  const parts: Named[][] = [[]];
  for (const changed of services) {
    const part = parts.at(-1);
    if (part !== undefined && part.length + changed.length <= maxChains) part.push(...changed);
    else parts.push([...changed]);
  }
  const removals: string[][] = [];
  for (let start = 0; start < gone.length; start += maxChains) removals.push(gone.slice(start, start + maxChains));
  const removed = (names: readonly string[]): readonly string[] => [
    ...names.map(declared),
    ...names.map((name) => `-X ${name}`),
  ];
  if (parts.length === 1 && removals.length <= 1) {
    const [all = []] = parts;
    const [some = []] = removals;
    const chains = [...base, ...all, ...leading];
    return section('nat', [
      ...[...chains.map(([name]) => name), ...some].map(declared),
      ...chains.flatMap(([name, rules]) => appended(name, rules)),
      ...more,
      ...some.map((name) => `-X ${name}`),
    ]);
  }
  return [
    ...section('nat', lines(base)),
    ...parts.flatMap((chains) => section('nat', lines(chains))),
    ...section('nat', [...lines(leading), ...more]),
    ...removals.flatMap((names) => section('nat', removed(names))),
  ];
}

/** Everything anew: chains, the jumps that are missing, and the removal of what no service needs any longer. */
export function fullScript(
  tables: ProxyTables,
  leading: readonly Jump[],
  saved: readonly Table[],
  owner: string,
  parts: Parts,
): string {
  const canary = [declared(CANARY), `-A ${CANARY} ${ownerRule(owner)}`];
  const missing = (table: string): readonly string[] =>
    leading
      .filter((jump) => jump.table === table && !hasJump(saved, jump))
      .map(({ from, rule }) => `-I ${from} ${rule}`);
  const { nat } = tables;
  const gone = [...chainsOf(saved, 'nat').keys()].filter((name) => isServiceChain(name) && !nat.has(name));
  const all = { services: tables.services.map(({ own }) => [...own]), shared: [...tables.shared], gone };
  return joined([
    ...section('mangle', canary),
    ...section('filter', [
      ...[...tables.filter.keys()].map(declared),
      ...[...tables.filter].flatMap(([name, rules]) => appended(name, rules)),
      ...canary,
      ...missing('filter'),
    ]),
    ...natSections(all, parts, [...canary, ...missing('nat')]),
  ]);
}

function sameRules(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((rule, index) => rule === b[index]));
}

/** Chains of which `before` has other rules, or none. */
function changedChains(before: ReadonlyMap<string, readonly string[]>, now: Iterable<Named>): readonly Named[] {
  return [...now].filter(([name, rules]) => {
    const old = before.get(name);
    return old === undefined || !sameRules(old, rules);
  });
}

/** Only services in which something differs are compared. */
function natChanges(before: ProxyTables, now: ProxyTables): NatChanges {
  const [known, wanted] = [new Set(before.services), new Set(now.services)];
  const old = new Map(before.services.flatMap((service) => (wanted.has(service) ? [] : [...service.own])));
  const next = now.services.filter((service) => !known.has(service));
  const kept = new Set(next.flatMap(({ names }) => names));
  return {
    services: next.map(({ own }) => changedChains(old, own)),
    shared: changedChains(before.shared, now.shared),
    gone: [...old.keys()].filter((name) => !kept.has(name)),
  };
}

/** What differs; '' where nothing does. */
export function partialScript(before: ProxyTables, now: ProxyTables, parts: Parts): string {
  const filter = changedChains(before.filter, now.filter);
  return joined([...section('filter', lines(filter)), ...natSections(natChanges(before, now), parts)]);
}

/**
 * What is not as it was written, in words; undefined where everything is. The kernel prints rules in a form of its own, so
 * the targets of a chain's rules are compared, in order.
 */
export function firstDamage(
  tables: ProxyTables,
  leading: readonly Jump[],
  saved: readonly Table[],
): string | undefined {
  for (const table of CANARY_TABLES) {
    if (!chainsOf(saved, table).has(CANARY)) return `chain ${CANARY} of table ${table} is gone`;
  }
  const lost = leading.find((jump) => !hasJump(saved, jump));
  if (lost !== undefined) return `rule "${lost.from} ${lost.rule}" of table ${lost.table} is gone`;
  for (const table of TABLES) {
    const known = chainsOf(saved, table);
    for (const [name, rules] of tables[table]) {
      const found = known.get(name);
      if (found === undefined) return `chain ${name} of table ${table} is gone`;
      const targets = (each: readonly string[]): string => each.map((rule) => targetOf(rule) ?? '').join();
      if (targets(found) !== targets(rules)) return `chain ${name} of table ${table} has other rules`;
    }
  }
  return undefined;
}

/** Whose rules are in the tables: the owner's name, '' where it is not known, undefined where there are none. */
export function ownerOf(saved: readonly Table[]): string | undefined {
  const all = saved.filter(({ chains }) => [...chains.keys()].some(isProxyChain));
  if (all.length === 0) return undefined;
  for (const { chains } of all) {
    const [rule = ''] = chains.get(CANARY) ?? [];
    const owner = /--comment "?([^"]*[^" ])"?/.exec(rule)?.[1];
    if (owner !== undefined) return owner;
  }
  return '';
}

/** Takes away every chain of the proxy's and every rule that leads there; '' where there is nothing. */
export function removalScript(saved: readonly Table[]): string {
  const lines = saved.flatMap(({ name: table, chains }) => {
    const own = [...chains.keys()].filter(isProxyChain);
    const leading = [...chains].flatMap(([chain, rules]) =>
      isProxyChain(chain)
        ? []
        : rules.filter((rule) => isProxyChain(targetOf(rule) ?? '')).map((rule) => `-D ${chain} ${rule}`),
    );
    return section(table, [...own.map(declared), ...leading, ...own.map((name) => `-X ${name}`)]);
  });
  return joined(lines);
}
