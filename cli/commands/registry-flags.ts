// How fast slow images are served, and how often limited ones: flags of `nodelet registry` and of `nodelet up`. Pure.

import { InvalidArgumentError, Option } from 'commander';
import { quantityValue } from '../../lib/quantity.ts';
import { durationFlag } from './duration-flag.ts';

export interface PullLimitFlag {
  readonly pulls: number;
  readonly windowMs: number;
}

/** As Kubernetes writes quantities. */
export function bytes(text: string): number {
  if (!/^[1-9]\d{0,8}([KMG]i?|k)?$/.test(text))
    throw new InvalidArgumentError(`"${text}" is no number of bytes such as 512Ki`);
  return quantityValue(text);
}

/** "2/1m" */
export function pullLimit(text: string): PullLimitFlag {
  const [, pulls = '', time = ''] = /^(\d{1,6})\/(\w+)$/.exec(text) ?? [];
  if (pulls === '') throw new InvalidArgumentError(`"${text}" is no limit such as 2/1m`);
  return { pulls: Number(pulls), windowMs: durationFlag('the time of a pull limit')(time) };
}

/** An option with a default that --help shows as one would type it. */
export function flagOption<T>(flag: string, about: string, parse: (text: string) => T, text: string): Option {
  return new Option(flag, about).argParser(parse).default(parse(text), text);
}

/** The flag's own text, once `parse` has accepted it. */
export function checked(parse: (text: string) => unknown): (text: string) => string {
  return (text) => {
    parse(text);
    return text;
  };
}
