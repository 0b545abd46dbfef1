// The upstreams of a `forward` as addresses: those of files like /etc/resolv.conf are read here.

import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { errorMessage, isErrno } from '../../lib/errors.ts';
import { CorefileError } from '../corefile/blocks.ts';
import type { ForwardSettings, Upstream } from '../corefile/settings.ts';

const DNS_PORT = 53;

/** The lines "nameserver ADDRESS". Pure. */
export function nameServersOf(text: string): readonly string[] {
  const found = [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = '']) => address.replace(/%.*$/, ''));
  return found.filter((address) => isIP(address) !== 0);
}

/** Each once. Rejects with CorefileError where a file cannot be read or names no server. */
export async function upstreamsOf({ to }: ForwardSettings): Promise<readonly Upstream[]> {
  const all: Upstream[] = [];
  for (const source of to) {
    if (!('file' in source)) {
      all.push(source);
      continue;
    }
    const servers = nameServersOf(await readResolvConf(source.file, source.line));
    if (servers.length === 0) throw new CorefileError(source.line, `no nameservers found in "${source.file}"`);
    all.push(...servers.map((address) => ({ address, port: DNS_PORT })));
  }
  return [...new Map(all.map((each) => [`${each.address} ${each.port}`, each] as const)).values()];
}

async function readResolvConf(file: string, line: number): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'EACCES', 'EISDIR')) {
      throw new CorefileError(line, `not an IP address or file: "${file}": ${errorMessage(error)}`);
    }
    throw error;
  }
}
