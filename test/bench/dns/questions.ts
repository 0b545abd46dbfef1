// What the benchmark of DNS asks: as pods do, addresses of Services, those of headless ones, SRV records, and names that their search
// path makes of others.

import { Type } from '../../../dns/wire/message.ts';
import { makeQuery } from '../../../dns/wire/records.ts';

export const SERVICES = 1000;
export const ENDPOINTS = 10;

export function serviceName(index: number): string {
  return `service-${index}`;
}

/** The question of this number; its id is the number's lower 16 bits. */
export function questionOf(number: number): Buffer {
  // Neighbours in time are not neighbours in the index.
  const service = (number * 7919) % SERVICES;
  const name = `${serviceName(service)}.bench.svc.cluster.local`;
  const id = number & 0xffff;
  switch (number % 4) {
    case 0:
      return makeQuery(id, name, Type.AAAA);
    case 1:
      return makeQuery(id, `_http._tcp.${name}`, Type.SRV);
    case 2:
      return makeQuery(id, `example.com.bench.svc.cluster.local`, Type.A);
    default:
      return makeQuery(id, name, Type.A);
  }
}
