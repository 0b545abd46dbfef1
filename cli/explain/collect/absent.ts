// What a command ends with whose object is not there: what there is instead.

import { UserError } from '../../../lib/errors.ts';
import { similarName } from '../words.ts';

/** Names that are listed where none is similar. */
const MAX_NAMES = 8;

/** `kind` in words: "pod". `namespace`: '' for what is in none. Pure. */
export function absent(kind: string, namespace: string, name: string, names: readonly string[]): UserError {
  const known = names.toSorted();
  const listed = `${known.slice(0, MAX_NAMES).join(', ')}${known.length > MAX_NAMES ? ', …' : ''}`;
  const others = known.length === 0 ? `there are no ${kind}s` : `there ${known.length === 1 ? 'is' : 'are'} ${listed}`;
  const where = namespace === '' ? '' : ` in namespace ${namespace}`;
  return new UserError(`there is no ${kind} ${name}${where}: ${similarName(name, known) ?? others}`);
}
