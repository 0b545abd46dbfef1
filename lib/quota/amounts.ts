// Sums of resources: quantities with the suffix family they are printed in, by the name of the resource. Pure.

import { parseQuantity } from '../quantity.ts';
import { formatNano } from '../quantity-text.ts';

export interface Amount {
  readonly nano: bigint;
  /** Printed with Ki, Mi, Gi. */
  readonly binary: boolean;
}

/** By the name of the resource: "requests.cpu", "count/secrets". */
export type Amounts = ReadonlyMap<string, Amount>;

const ZERO: Amount = { nano: 0n, binary: false };

/** Of a quantity's text; of what is none, zero. */
export function amountOf(text: string | undefined): Amount {
  const quantity = text ?? '0';
  return { nano: parseQuantity(quantity) ?? 0n, binary: quantity.endsWith('i') };
}

export const whole = (count: number): Amount => ({ nano: BigInt(count) * 1_000_000_000n, binary: false });

export function amountText({ nano, binary }: Amount): string {
  return formatNano(nano, binary);
}

/** `sign` times `b` added to `a`; a zero takes the other's suffixes, as in the API machinery. */
export function added(a: Amount | undefined, b: Amount, sign: 1 | -1 = 1): Amount {
  const before = a ?? ZERO;
  return {
    nano: sign === 1 ? before.nano + b.nano : before.nano - b.nano,
    binary: before.nano === 0n ? b.binary : before.binary,
  };
}

export function sum(lists: readonly Amounts[]): Map<string, Amount> {
  const result = new Map<string, Amount>();
  for (const list of lists) for (const [name, amount] of list) result.set(name, added(result.get(name), amount));
  return result;
}

/** By resource, the larger of the two. */
export function largest(a: Amounts, b: Amounts): Map<string, Amount> {
  const result = new Map(a);
  for (const [name, amount] of b) {
    const other = result.get(name);
    if (other === undefined || amount.nano > other.nano) result.set(name, amount);
  }
  return result;
}

export function amountsOf(quantities: Readonly<Record<string, string | undefined>> | undefined): Map<string, Amount> {
  return new Map(Object.entries(quantities ?? {}).map(([name, text]) => [name, amountOf(text)]));
}

/** "pods=1,requests.cpu=500m", as refusals show amounts. */
export function shownAmounts(amounts: Amounts): string {
  return [...amounts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, amount]) => `${name}=${amountText(amount)}`)
    .join(',');
}
