// An address of this machine that is no loopback address: endpoints cannot have those, and through those no pod is reached.

import { networkInterfaces } from 'node:os';

export function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const found = addresses.find(({ internal, family }) => !internal && family === 'IPv4');
  if (found === undefined) throw new Error('this machine has no IPv4 address but loopback');
  return found.address;
}
