// The plugin `hosts`: addresses of a file like /etc/hosts, and of lines in the Corefile. The table is pure; the file is read again when
// it has changed.

import { isIP } from 'node:net';
import { addressKey, reverseAddress } from '../cluster/addresses.ts';
import { isBelow, matchingZone } from '../cluster/query.ts';
import type { HostsSettings } from '../corefile/settings.ts';
import { type Question, Rcode, Type } from '../wire/message.ts';
import { type MadeReply, makeMessage, questionBytes, type Resource } from '../wire/records.ts';
import type { Handler } from './plugin.ts';

const NAME = 'hosts';

export interface HostsTable {
  readonly addresses: ReadonlyMap<string, readonly string[]>;
  /** By addressKey. */
  readonly names: ReadonlyMap<string, readonly string[]>;
}

function add(map: Map<string, string[]>, key: string, value: string): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [value]);
  else if (!known.includes(value)) known.push(value);
}

/** Lines of an address and its names; what is none is left out, as in hosts(5). Names of later lines come after those of earlier ones. */
export function hostsTable(lines: readonly string[]): HostsTable {
  const addresses = new Map<string, string[]>();
  const names = new Map<string, string[]>();
  for (const line of lines) {
    const [written = '', ...all] = line.replace(/#.*/, '').trim().split(/\s+/);
    // A zone of an address (fe80::1%eth0) says nothing to other machines.
    const address = written.replace(/%.*$/, '');
    const key = isIP(address) === 0 ? undefined : addressKey(address);
    if (key === undefined) continue;
    for (const name of all.map((each) => each.toLowerCase().replace(/\.$/, ''))) {
      add(addresses, name, address);
      if (!name.startsWith('*.')) add(names, key, name);
    }
  }
  return { addresses, names };
}

/** Lines of the Corefile take the place of the file's for the same name. */
export function mergeHosts(inline: HostsTable, file: HostsTable): HostsTable {
  const names = new Map<string, readonly string[]>(file.names);
  for (const [key, own] of inline.names) names.set(key, [...new Set([...own, ...(names.get(key) ?? [])])]);
  return { addresses: new Map([...file.addresses, ...inline.addresses]), names };
}

function addressesOf({ addresses }: HostsTable, name: string, zone: string | undefined): readonly string[] {
  const own = addresses.get(name);
  if (own !== undefined) return own;
  // One label more than the wildcard has; the zone itself is none.
  if (name === zone || !name.includes('.')) return [];
  return addresses.get(`*.${name.slice(name.indexOf('.') + 1)}`) ?? [];
}

/** The records of the question; 'next': another plugin's business; undefined: the name is known to nothing here. */
export function hostsRecords(
  question: Question,
  table: HostsTable,
  settings: HostsSettings,
): readonly Resource[] | 'next' | undefined {
  const { name, writtenName, type } = question;
  const { ttl } = settings;
  const zone = matchingZone(name, settings.zones);
  if (type === Type.PTR) {
    const names = settings.reverse ? (table.names.get(reverseAddress(name) ?? '') ?? []) : [];
    return names.length === 0 ? 'next' : names.map((data) => ({ type: 'PTR', name: writtenName, ttl, data }));
  }
  if (zone === undefined) return 'next';
  const addresses = addressesOf(table, name, zone);
  const wanted = type === Type.A ? 4 : type === Type.AAAA ? 6 : 0;
  const family = wanted === 4 ? ('A' as const) : ('AAAA' as const);
  const found = addresses.filter((address) => isIP(address) === wanted);
  if (addresses.length > 0) return found.map((data) => ({ type: family, name: writtenName, ttl, data }));
  return settings.fallThrough?.some((each) => isBelow(name, each)) === true ? 'next' : undefined;
}

/** `table`: as the file is now. */
export function hostsPlugin(settings: HostsSettings, table: () => HostsTable, next: Handler): Handler {
  return (request) => {
    const answers = hostsRecords(request.question, table(), settings);
    if (answers === 'next') return next(request);
    // There is no SOA to deny a name with.
    if (answers === undefined) return Promise.resolve({ kind: 'failure', by: NAME, rcode: Rcode.SERVFAIL });
    const reply: MadeReply = { rcode: Rcode.NOERROR, authoritative: true, answers, authorities: [], additionals: [] };
    const message = makeMessage(questionBytes(request.message), reply);
    return Promise.resolve({ kind: 'reply', by: NAME, message });
  };
}
