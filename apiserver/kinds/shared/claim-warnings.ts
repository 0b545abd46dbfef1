// What is valid in a claim and still worth a warning. The texts are the real server's.

import { parseQuantity } from '../../../lib/quantity.ts';

const NANO = 1_000_000_000n;

/** Bytes that are no whole number. */
export function fractionWarning(field: string, value: string | undefined): string[] {
  const nano = value === undefined ? undefined : parseQuantity(value);
  if (nano === undefined || nano % NANO === 0n) return [];
  return [`${field}: fractional byte value ${JSON.stringify(value)} is invalid, must be an integer`];
}

interface Claim {
  resources?:
    | {
        requests?: { [name: string]: string | undefined } | undefined;
        limits?: { [name: string]: string | undefined } | undefined;
      }
    | undefined;
}

/** `field`: of the claim's spec. */
export function claimWarnings(field: string, { resources = {} }: Claim): string[] {
  return (['requests', 'limits'] as const).flatMap((list) =>
    fractionWarning(`${field}.resources.${list}[storage]`, resources[list]?.['storage']),
  );
}
