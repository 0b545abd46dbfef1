// Flags with lists, as Kubernetes' programs take them: separated by commas, or repeated. Pure.

import { Option } from 'commander';

/** "a,b": a comma-separated list; empty entries are left out. */
export function commaSeparated(text: string): readonly string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

function repeated(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

function repeatedList(text: string, before: readonly string[]): readonly string[] {
  return [...before, ...commaSeparated(text)];
}

/** A flag with a list. Without it the list is empty, which --help words as `none`. */
export function listOption(flag: string, about: string, none = 'none'): Option {
  return new Option(flag, about).argParser(repeatedList).default([], none);
}

/** A flag that may be repeated. Without it the list is empty, which --help words as `none`. */
export function repeatedOption(flag: string, about: string, none = 'none'): Option {
  return new Option(flag, `${about}; may be repeated`).argParser(repeated).default([], none);
}
