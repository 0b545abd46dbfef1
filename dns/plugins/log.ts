// The plugin `log`: a line for each answer, in CoreDNS's format. Pure.

import { isBelow } from '../cluster/query.ts';
import type { LogSettings, ResponseClass } from '../corefile/settings.ts';
import { Flag, type Message, Rcode } from '../wire/message.ts';
import { classText, rcodeText, typeText } from '../wire/names.ts';
import type { Request } from './plugin.ts';

const FLAGS: readonly (readonly [string, number])[] = [
  ['qr', Flag.QR],
  ['aa', Flag.AA],
  ['tc', Flag.TC],
  ['rd', Flag.RD],
  ['ra', Flag.RA],
  ['ad', Flag.AD],
  ['cd', Flag.CD],
];

export interface Answered {
  readonly request: Request;
  /** What the client gets. */
  readonly reply: Message;
  readonly local: string;
  readonly durationMs: number;
}

function responseClass({ rcode, records }: Message): Exclude<ResponseClass, 'all'> {
  if (rcode === Rcode.NXDOMAIN) return 'denial';
  if (rcode !== Rcode.NOERROR) return 'error';
  return records.some(({ section }) => section === 'answer') ? 'success' : 'denial';
}

const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address);

function placeholders({ request, reply, local, durationMs }: Answered): ReadonlyMap<string, string> {
  const { message, question, client, transport } = request;
  return new Map([
    ['type', typeText(question.type)],
    ['name', `${question.name}.`],
    ['class', classText(question.class)],
    ['proto', transport],
    ['remote', bracketed(client.address)],
    ['local', bracketed(local)],
    ['size', String(message.bytes.length)],
    ['port', String(client.port)],
    ['duration', `${(durationMs / 1000).toFixed(9)}s`],
    ['rcode', rcodeText(reply.rcode)],
    ['rsize', String(reply.bytes.length)],
    ['>rflags', FLAGS.flatMap(([name, bit]) => ((reply.flags & bit) === 0 ? [] : [name])).join(',')],
    ['>bufsize', String(Math.max(512, message.edns?.udpSize ?? 0))],
    ['>do', String(message.edns?.dnssecOk ?? false)],
    ['>id', String(message.id)],
    ['>opcode', String(message.opcode)],
  ]);
}

/** Undefined: this answer is not logged. What is no placeholder stays as it is. */
export function logLine({ zones, format, classes }: LogSettings, answered: Answered): string | undefined {
  if (!zones.some((zone) => isBelow(answered.request.question.name, zone))) return undefined;
  if (!classes.includes('all') && !classes.includes(responseClass(answered.reply))) return undefined;
  const values = placeholders(answered);
  return format.replace(/\{([>\w]+)\}/g, (whole, name: string) => values.get(name) ?? whole);
}
