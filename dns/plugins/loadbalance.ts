// The plugin `loadbalance`: the addresses of an answer in another order each time. Records keep their places, and addresses change
// them: so nothing that points to a name has to be moved.

import { type Message, nameAt, type RecordPlace, Type } from '../wire/message.ts';
import type { Handler } from './plugin.ts';

/** Fisher and Yates. `random`: 0 ≤ x < 1. */
function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  const mixed = [...items];
  for (let last = mixed.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    const [a, b] = [mixed[last], mixed[other]];
    if (a === undefined || b === undefined) continue;
    mixed[last] = b;
    mixed[other] = a;
  }
  return mixed;
}

/** Addresses of one owner may change places with each other. */
function groups({ bytes, records }: Message): readonly (readonly RecordPlace[])[] {
  const found = new Map<string, RecordPlace[]>();
  for (const record of records) {
    if (record.section !== 'answer' || (record.type !== Type.A && record.type !== Type.AAAA)) continue;
    const key = `${record.type} ${nameAt(bytes, record.start).toLowerCase()}`;
    const group = found.get(key);
    if (group === undefined) found.set(key, [record]);
    else group.push(record);
  }
  return [...found.values()].filter((group) => group.length > 1);
}

/** The same message with its addresses in another order. */
export function shuffleAddresses(message: Message, random: () => number): Message {
  const all = groups(message);
  if (all.length === 0) return message;
  const bytes = Buffer.from(message.bytes);
  for (const group of all) {
    const from = shuffled(group, random);
    for (const [index, to] of group.entries()) {
      const source = from[index] ?? to;
      message.bytes.copy(bytes, to.dataStart, source.dataStart, source.end);
    }
  }
  return { ...message, bytes };
}

export function loadbalancePlugin(random: () => number, next: Handler): Handler {
  return async (request) => {
    const result = await next(request);
    return result.kind === 'reply' ? { ...result, message: shuffleAddresses(result.message, random) } : result;
  };
}
