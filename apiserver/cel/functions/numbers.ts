// Kubernetes' functions on quantities and semantic versions.

import type { Environment } from '@marcbachmann/cel-js';
import { parseQuantity } from '../../../lib/quantity.ts';
import { quantityError } from '../../schema/quantity.ts';
import { charge } from '../budget.ts';

const NANO = 1_000_000_000n;
const MAX_INT = (1n << 63n) - 1n;

class Quantity {
  /** In nano-units. */
  readonly nano: bigint;
  constructor(nano: bigint) {
    this.nano = nano;
  }
  get isInteger(): boolean {
    return this.nano % NANO === 0n && this.nano / NANO <= MAX_INT && this.nano / NANO >= -MAX_INT - 1n;
  }
}

/** What reading a quantity or a version costs. */
const PARSING = 150;

function quantity(text: string): Quantity {
  charge(PARSING);
  const nano = parseQuantity(text);
  if (nano === undefined || quantityError(text) !== undefined)
    throw new RangeError(quantityError(text) ?? 'not a quantity');
  return new Quantity(nano);
}

const compare = (a: bigint, b: bigint): bigint => (a < b ? -1n : a > b ? 1n : 0n);

/** Without a budget for digits: a version is short. */
const SEMVER =
  /^(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})(?:-([0-9A-Za-z.-]{1,256}))?(?:\+[0-9A-Za-z.-]{1,256})?$/;

class Semver {
  readonly parts: readonly [bigint, bigint, bigint];
  readonly pre: readonly string[];
  constructor(parts: readonly [bigint, bigint, bigint], pre: readonly string[]) {
    this.parts = parts;
    this.pre = pre;
  }
}

/** "v1.2" → "1.2.0", as the second argument of `semver` allows. */
function normalized(text: string): string {
  const [, numbers = '', rest = ''] = /^v?([0-9.]{1,64})(.*)$/s.exec(text.slice(0, 512)) ?? [];
  const parts = numbers.split('.').map((part) => part.replace(/^0+(?=\d)/, ''));
  while (parts.length < 3) parts.push('0');
  return parts.join('.') + rest;
}

function parseSemver(text: string): Semver | undefined {
  charge(PARSING);
  const [all, major = '', minor = '', patch = '', pre = ''] = SEMVER.exec(text.slice(0, 1024)) ?? [];
  if (all === undefined) return undefined;
  const identifiers = pre === '' ? [] : pre.split('.');
  if (identifiers.some((one) => one === '' || /^0\d+$/.test(one))) return undefined;
  return new Semver([BigInt(major), BigInt(minor), BigInt(patch)], identifiers);
}

function semver(text: string): Semver {
  const found = parseSemver(text);
  if (found === undefined)
    throw new RangeError(`semver parse error: Invalid version ${JSON.stringify(text.slice(0, 64))}`);
  return found;
}

function compareSemver(a: Semver, b: Semver): bigint {
  for (const index of [0, 1, 2] as const) {
    const order = compare(a.parts[index], b.parts[index]);
    if (order !== 0n) return order;
  }
  if (a.pre.length === 0 || b.pre.length === 0) return BigInt(Number(a.pre.length === 0) - Number(b.pre.length === 0));
  for (const [index, left] of a.pre.entries()) {
    const right = b.pre[index];
    if (right === undefined) return 1n;
    if (left === right) continue;
    const [leftNumber, rightNumber] = [/^\d+$/.test(left), /^\d+$/.test(right)];
    if (leftNumber && rightNumber) return compare(BigInt(left), BigInt(right));
    if (leftNumber !== rightNumber) return leftNumber ? -1n : 1n;
    return left < right ? -1n : 1n;
  }
  return a.pre.length === b.pre.length ? 0n : -1n;
}

export function registerNumbers(env: Environment): void {
  const Q = 'kubernetes.Quantity';
  env
    .registerType(Q, Quantity)
    .registerFunction(`quantity(string): ${Q}`, quantity)
    .registerFunction('isQuantity(string): bool', (text: string) => {
      charge(PARSING);
      return quantityError(text) === undefined;
    })
    .registerFunction(`${Q}.sign(): int`, (q: Quantity) => compare(q.nano, 0n))
    .registerFunction(`${Q}.isInteger(): bool`, (q: Quantity) => q.isInteger)
    .registerFunction(`${Q}.asInteger(): int`, (q: Quantity) => {
      if (!q.isInteger) throw new RangeError('cannot convert value to integer');
      return q.nano / NANO;
    })
    .registerFunction(`${Q}.asApproximateFloat(): double`, (q: Quantity) => Number(q.nano) / 1e9)
    .registerFunction(`${Q}.add(${Q}): ${Q}`, (a: Quantity, b: Quantity) => new Quantity(a.nano + b.nano))
    .registerFunction(`${Q}.add(int): ${Q}`, (a: Quantity, b: bigint) => new Quantity(a.nano + b * NANO))
    .registerFunction(`${Q}.sub(${Q}): ${Q}`, (a: Quantity, b: Quantity) => new Quantity(a.nano - b.nano))
    .registerFunction(`${Q}.sub(int): ${Q}`, (a: Quantity, b: bigint) => new Quantity(a.nano - b * NANO))
    .registerFunction(`${Q}.isLessThan(${Q}): bool`, (a: Quantity, b: Quantity) => a.nano < b.nano)
    .registerFunction(`${Q}.isGreaterThan(${Q}): bool`, (a: Quantity, b: Quantity) => a.nano > b.nano)
    .registerFunction(`${Q}.compareTo(${Q}): int`, (a: Quantity, b: Quantity) => compare(a.nano, b.nano))
    .registerOperator(`${Q} == ${Q}`, (a: Quantity, b: Quantity) => a.nano === b.nano);
  const S = 'kubernetes.Semver';
  env
    .registerType(S, Semver)
    .registerFunction(`semver(string): ${S}`, semver)
    .registerFunction(`semver(string, bool): ${S}`, (text: string, loose: boolean) =>
      semver(loose ? normalized(text) : text),
    )
    .registerFunction('isSemver(string): bool', (text: string) => parseSemver(text) !== undefined)
    .registerFunction(
      'isSemver(string, bool): bool',
      (text: string, loose: boolean) => parseSemver(loose ? normalized(text) : text) !== undefined,
    )
    .registerFunction(`${S}.major(): int`, (s: Semver) => s.parts[0])
    .registerFunction(`${S}.minor(): int`, (s: Semver) => s.parts[1])
    .registerFunction(`${S}.patch(): int`, (s: Semver) => s.parts[2])
    .registerFunction(`${S}.isLessThan(${S}): bool`, (a: Semver, b: Semver) => compareSemver(a, b) < 0n)
    .registerFunction(`${S}.isGreaterThan(${S}): bool`, (a: Semver, b: Semver) => compareSemver(a, b) > 0n)
    .registerFunction(`${S}.compareTo(${S}): int`, compareSemver)
    .registerOperator(`${S} == ${S}`, (a: Semver, b: Semver) => compareSemver(a, b) === 0n);
}
