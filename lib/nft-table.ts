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

const declare = (table: string, name: string, type: string): string => {
  const [, kind = 'set', body = ''] = /^(\w+): (.*)$/.exec(type) ?? [];
  return `add ${kind} ${table} ${name} { ${body} }`;
};

/** Elements in one command each of not too many: nft takes long to parse one that is very long. */
const ELEMENTS_IN_COMMAND = 200;

function elementCommands(
  table: string,
  verb: 'add' | 'delete',
  name: string,
  elements: readonly string[],
): readonly string[] {
  const commands: string[] = [];
  for (let start = 0; start < elements.length; start += ELEMENTS_IN_COMMAND) {
    const some = elements.slice(start, start + ELEMENTS_IN_COMMAND);
    commands.push(`${verb} element ${table} ${name} { ${some.join(', ')} }`);
  }
  return commands;
}

const element = ([key, value]: readonly [string, string]): string => (value === '' ? key : `${key} : ${value}`);
const ruleCommands = (table: string, name: string, rules: readonly string[]): readonly string[] =>
  rules.map((rule) => `add rule ${table} ${name} ${rule}`);

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

/** What differs; '' where nothing does. What nothing leads to any longer stays for `removalCommands`, as it takes time. */
export function changeCommands(table: string, before: NftTable, now: NftTable): string {
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
  for (const name of changed) lines.push(...ruleCommands(table, name, next.get(name)?.rules ?? []));
  for (const [name, { elements }] of now.sets) {
    const old = before.sets.get(name)?.elements ?? new Map<string, string>();
    const gone = [...old].filter(([key, value]) => elements.get(key) !== value).map(([key]) => key);
    const added = [...elements].filter(([key, value]) => old.get(key) !== value).map(element);
    lines.push(...elementCommands(table, 'delete', name, gone), ...elementCommands(table, 'add', name, added));
  }
  return text(lines);
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
