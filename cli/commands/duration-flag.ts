// Durations as flags of Kubernetes' programs take them: "15s", "1m30s".

import { Option } from 'commander';
import { UserError } from '../../lib/errors.ts';
import { formatGoDuration, parseGoDuration } from '../../lib/go-duration.ts';

/** For commander: the flag's value in ms. Throws UserError for what is no duration, is 0 or below. */
export function durationFlag(flag: string): (text: string) => number {
  return (text) => {
    const ms = parseGoDuration(text);
    if (ms === undefined || ms === 0) throw new UserError(`${flag}: "${text}" is no duration such as 1m0s`);
    if (ms < 0) throw new UserError(`${flag} can not be negative value`);
    return ms;
  };
}

/** `flag <duration>`, in ms; --help shows the default as one would type it. */
export function durationOption(flag: string, about: string, defaultMs: number): Option {
  return new Option(`${flag} <duration>`, about)
    .argParser(durationFlag(flag))
    .default(defaultMs, formatGoDuration(defaultMs));
}
