// The names of types, classes and codes, as other programs print them. Pure.

const TYPES: ReadonlyMap<number, string> = new Map([
  [1, 'A'],
  [2, 'NS'],
  [5, 'CNAME'],
  [6, 'SOA'],
  [12, 'PTR'],
  [13, 'HINFO'],
  [15, 'MX'],
  [16, 'TXT'],
  [28, 'AAAA'],
  [33, 'SRV'],
  [35, 'NAPTR'],
  [39, 'DNAME'],
  [43, 'DS'],
  [46, 'RRSIG'],
  [47, 'NSEC'],
  [48, 'DNSKEY'],
  [50, 'NSEC3'],
  [52, 'TLSA'],
  [64, 'SVCB'],
  [65, 'HTTPS'],
  [251, 'IXFR'],
  [252, 'AXFR'],
  [255, 'ANY'],
  [257, 'CAA'],
]);
/** Those that CoreDNS's metrics do not have by name. */
const UNCOUNTED: ReadonlySet<string> = new Set(['HINFO', 'NAPTR', 'DNAME', 'TLSA', 'CAA']);
const RCODES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'];
const BADVERS = 16;
const CLASSES: ReadonlyMap<number, string> = new Map([
  [1, 'IN'],
  [3, 'CH'],
  [4, 'HS'],
  [254, 'NONE'],
  [255, 'ANY'],
]);

export function typeText(type: number): string {
  return TYPES.get(type) ?? `TYPE${type}`;
}

/** A label of metrics: a client cannot make new ones. */
export function typeLabel(type: number): string {
  const name = TYPES.get(type);
  return name === undefined || UNCOUNTED.has(name) ? 'other' : name;
}

export function classText(value: number): string {
  return CLASSES.get(value) ?? `CLASS${value}`;
}

export function rcodeText(rcode: number): string {
  return rcode === BADVERS ? 'BADVERS' : (RCODES[rcode] ?? `RCODE${rcode}`);
}
