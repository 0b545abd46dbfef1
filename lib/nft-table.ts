// One table of nftables as objects: sets, maps, chains. And the commands for nft that make it, that change one state of it to another, and
// what of a listed table is not as it was written. Pure.

/** How a chain hangs in the kernel, where it does, and its rules; by its name. */
export type NftChains = ReadonlyMap<string, { readonly hook?: string; readonly rules: readonly string[] }>;

export interface NftTable {
  /** Sets and maps: how they are declared, and what is in them; '' is the value in a set. */
  readonly sets: ReadonlyMap<string, { readonly type: string; readonly elements: ReadonlyMap<string, string> }>;
  readonly chains: NftChains;
  /**
   * The same chains in parts, each name in one of them; without it all are one part. A part that is the same object as in another table
   * is not compared, so that a change costs what it changes.
   */
  readonly parts?: readonly NftChains[];
}

/** The chains of `before` and `now`, without the parts that both have. */
function differing(before: NftTable, now: NftTable): { readonly old: NftChains; readonly next: NftChains } {
  const [known, wanted] = [new Set(partsOf(before)), new Set(partsOf(now))];
  return {
    old: new Map(partsOf(before).flatMap((part) => (wanted.has(part) ? [] : [...part]))),
    next: new Map(partsOf(now).flatMap((part) => (known.has(part) ? [] : [...part]))),
  };
}

const partsOf = (table: NftTable): readonly NftChains[] => table.parts ?? [table.chains];

const kindOf = (type: string): string => type.split(':')[0] ?? 'set';
/** The kernel's packets change what is in it. */
const isDynamic = (type: string): boolean => type.includes('dynamic');

const declare = (table: string, name: string, type: string, elements: readonly string[] = []): string => {
  const [, kind = 'set', body = ''] = /^(\w+): (.*)$/.exec(type) ?? [];
  const content = elements.length === 0 ? '' : ` elements = { ${elements.join(', ')} };`;
  return `add ${kind} ${table} ${name} { ${body}${content} }`;
};

/**
 * How a change adds rules and elements to what is there. By `declaration`, the chain or the set is declared once more, with what is added in
 * it: nft then asks the kernel for the names of the tables alone. By `command` (add rule, add element) it reads every chain and every set of
 * all tables before it writes, which takes as long as the kernel's part of the change where there are 11,000 chains.
 */
export type NftForm = 'declaration' | 'command';

/**
 * For `nft -c`, which writes nothing: it is refused where the rules of a chain's declaration are read, as there is no chain to jump to. Releases
 * of nft from 1.0.3 to 1.0.6 forget these rules without an error (Debian's 1.0.6 has the correction).
 */
export const DECLARATION_PROBE = `add table ip nodelet-probe
add chain ip nodelet-probe one { jump another; }
`;

/** Elements in one command each of not too many: nft takes long to parse one that is very long. */
const ELEMENTS_IN_COMMAND = 200;

/** `command`: the one for some of the elements. */
function inCommands(elements: readonly string[], command: (some: readonly string[]) => string): readonly string[] {
  const commands: string[] = [];
  for (let start = 0; start < elements.length; start += ELEMENTS_IN_COMMAND) {
    commands.push(command(elements.slice(start, start + ELEMENTS_IN_COMMAND)));
  }
  return commands;
}

const elementCommands = (
  table: string,
  verb: 'add' | 'delete',
  name: string,
  elements: readonly string[],
): readonly string[] => inCommands(elements, (some) => `${verb} element ${table} ${name} { ${some.join(', ')} }`);

const element = ([key, value]: readonly [string, string]): string => (value === '' ? key : `${key} : ${value}`);
const ruleCommands = (table: string, name: string, rules: readonly string[]): readonly string[] =>
  rules.map((rule) => `add rule ${table} ${name} ${rule}`);
const declaredRules = (table: string, name: string, rules: readonly string[]): readonly string[] =>
  rules.length === 0 ? [] : [`add chain ${table} ${name} {`, ...rules, '}'];

/** The whole table anew, in one transaction: what was there is gone. `table`: family and name; `comment`: of the table. */
export function fullCommands(table: string, { sets, chains }: NftTable, comment: string): string {
  return text([
    `add table ${table}`,
    `delete table ${table}`,
    `add table ${table} { comment "${comment}"; }`,
    ...[...sets].map(([name, { type }]) => declare(table, name, type)),
    ...[...chains].map(([name, { hook }]) => `add chain ${table} ${name}${hook === undefined ? '' : ` { ${hook} }`}`),
    ...[...chains].flatMap(([name, { rules }]) => ruleCommands(table, name, rules)),
    ...[...sets].flatMap(([name, { elements }]) => elementCommands(table, 'add', name, [...elements].map(element))),
  ]);
}

/** What differs: the commands, '' for none, and how many rules are in them. What nothing leads to any longer stays for `removalCommands`, as it takes time. */
export function changeCommands(
  table: string,
  before: NftTable,
  now: NftTable,
  form: NftForm,
): { readonly commands: string; readonly rules: number } {
  const lines: string[] = [];
  const changed: string[] = [];
  for (const [name, { type }] of now.sets) {
    if (before.sets.has(name)) continue;
    lines.push(declare(table, name, type));
    // One that is about to be removed may be there still, with what was in it.
    if (!isDynamic(type)) lines.push(`flush ${kindOf(type)} ${table} ${name}`);
  }
  const { old: known, next } = differing(before, now);
  for (const [name, { rules }] of next) {
    const old = known.get(name);
    if (old !== undefined && (old.rules === rules || old.rules.join('\n') === rules.join('\n'))) continue;
    // The same.
    if (old === undefined) lines.push(`add chain ${table} ${name}`);
    lines.push(`flush chain ${table} ${name}`);
    changed.push(name);
  }
  const rulesOf = form === 'declaration' ? declaredRules : ruleCommands;
  let count = 0;
  for (const name of changed) {
    const rules = next.get(name)?.rules ?? [];
    lines.push(...rulesOf(table, name, rules));
    count += rules.length;
  }
  for (const [name, { elements, type }] of now.sets) {
    const old = before.sets.get(name)?.elements ?? new Map<string, string>();
    const gone = [...old].filter(([key, value]) => elements.get(key) !== value).map(([key]) => key);
    const added = [...elements].filter(([key, value]) => old.get(key) !== value).map(element);
    lines.push(...elementCommands(table, 'delete', name, gone));
    if (form === 'command') lines.push(...elementCommands(table, 'add', name, added));
    else lines.push(...inCommands(added, (some) => declare(table, name, type, some)));
  }
  return { commands: text(lines), rules: count };
}

/** Whether a set or map is to be declared otherwise, which the kernel refuses for one that is there. */
export function declaredOtherwise(before: NftTable, now: NftTable): boolean {
  return [...now.sets].some(([name, { type }]) => (before.sets.get(name)?.type ?? type) !== type);
}

const text = (commands: readonly string[]): string => (commands.length === 0 ? '' : `${commands.join('\n')}\n`);

/** Chains and sets that `before` has and `now` has not. */
export function leftBehind(
  before: NftTable,
  now: NftTable,
): { readonly chains: readonly string[]; readonly sets: readonly string[] } {
  const { old, next } = differing(before, now);
  return {
    chains: [...old.keys()].filter((name) => !next.has(name)),
    sets: [...before.sets.keys()].filter((name) => !now.sets.has(name)),
  };
}

/** Takes away what `now` does not have. No map is among the sets. */
export function removalCommands(
  table: string,
  now: NftTable,
  chains: Iterable<string>,
  sets: Iterable<string>,
): string {
  const { chains: wanted } = now;
  const gone = [...chains].filter((name) => !wanted.has(name));
  return text([
    // They lead to each other: all of them are emptied before the first is deleted.
    ...gone.map((name) => `flush chain ${table} ${name}`),
    ...gone.map((name) => `delete chain ${table} ${name}`),
    ...[...sets].filter((name) => !now.sets.has(name)).map((name) => `delete set ${table} ${name}`),
  ]);
}

/** Of what nft lists in JSON: rules by chain, elements by map or set. Throws SyntaxError: it is no JSON. */
function countListed(listed: string): {
  readonly chains: Map<string, number>;
  readonly sets: Map<string, number>;
} {
  const found = { chains: new Map<string, number>(), sets: new Map<string, number>() };
  const { nftables = [] } = JSON.parse(listed) as { nftables?: readonly NftEntry[] };
  for (const { chain, rule, map, set } of nftables) {
    if (chain !== undefined) found.chains.set(chain.name, found.chains.get(chain.name) ?? 0);
    if (rule !== undefined) found.chains.set(rule.chain, (found.chains.get(rule.chain) ?? 0) + 1);
    const named = map ?? set;
    if (named !== undefined) found.sets.set(named.name, (named.elem ?? []).length);
  }
  return found;
}

interface NftEntry {
  readonly chain?: { readonly name: string };
  readonly rule?: { readonly chain: string };
  readonly map?: { readonly name: string; readonly elem?: readonly unknown[] };
  readonly set?: { readonly name: string; readonly elem?: readonly unknown[] };
}

/** What is not as it was written, in words; undefined where everything is. Throws SyntaxError: it is no JSON. */
export function firstDamage({ chains, sets }: NftTable, listed: string): string | undefined {
  const found = countListed(listed);
  for (const [name, { rules }] of chains) {
    const count = found.chains.get(name);
    if (count === undefined) return `chain ${name} is gone`;
    if (count !== rules.length) return `chain ${name} has other rules`;
  }
  for (const [name, { elements, type }] of sets) {
    const count = found.sets.get(name);
    if (count === undefined) return `${kindOf(type)} ${name} is gone`;
    if (!isDynamic(type) && count !== elements.size) return `${kindOf(type)} ${name} has other elements`;
  }
  return undefined;
}

/** The number of rules. */
export function rulesIn(table: NftTable): number {
  let sum = 0;
  for (const part of partsOf(table)) for (const { rules } of part.values()) sum += rules.length;
  return sum;
}
