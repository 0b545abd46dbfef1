// Chooses what a lab needs of the machine for itself: a free pod subnet and free ports. The choice is pure;
// the facts for it are gathered here too.

import { createServer } from 'node:net';
import { isErrno, UserError } from '../../lib/errors.ts';
import { execOk } from '../../lib/exec.ts';
import type { LabPaths } from './paths.ts';

export interface Subnet {
  /** As an unsigned 32-bit number. */
  readonly base: number;
  readonly prefix: number;
}

/** "10.244.3.0/24", or a bare address as a /32; undefined for anything else ("default", IPv6). Pure. */
export function parseSubnet(text: string): Subnet | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)\.(\d+)(?:\/(\d+))?$/.exec(text);
  if (match === null) return undefined;
  const [a = 0, b = 0, c = 0, d = 0] = match.slice(1, 5).map(Number);
  return { base: ((a << 24) | (b << 16) | (c << 8) | d) >>> 0, prefix: match[5] === undefined ? 32 : Number(match[5]) };
}

export function overlaps(a: Subnet, b: Subnet): boolean {
  const shift = 32 - Math.min(a.prefix, b.prefix);
  return shift >= 32 || a.base >>> shift === b.base >>> shift;
}

/** The first free /24 of 10.244.0.0/16 from the `start`th on (0 to 255). Pure; undefined when all are taken. */
export function chooseSubnet(start: number, taken: readonly string[]): string | undefined {
  const others = taken.map(parseSubnet).filter((subnet) => subnet !== undefined && subnet.prefix > 0);
  for (let step = 0; step < 256; step++) {
    const text = `10.244.${(start + step) % 256}.0/24`;
    const candidate = parseSubnet(text);
    if (candidate === undefined) continue;
    if (!others.some((other) => other !== undefined && overlaps(candidate, other))) return text;
  }
  return undefined;
}

export interface SubnetFacts {
  /** What the machine uses, as far as can be seen now. */
  readonly used: () => Promise<readonly string[]>;
  /** The subnets that other labs have claimed. */
  readonly claimed: () => Promise<readonly string[]>;
  /** Publishes the subnet that this lab takes. */
  readonly claim: (subnet: string) => Promise<void>;
  /** The first free one from the `start`th on; by default a /24 of 10.244.0.0/16. */
  readonly choose?: (start: number, taken: readonly string[]) => string | undefined;
  /** 0 ≤ x < 1; Math.random by default. */
  readonly random?: () => number;
}

/**
 * Takes a free /24 for this lab. The search begins at a place that depends on the root, so that labs which start at the
 * same time rarely choose the same one. When two labs claim the same one concurrently, at least one of them sees the
 * other's claim afterwards and chooses again, from a random place. Undefined when all are taken.
 */
export async function claimSubnet(hash: string, facts: SubnetFacts): Promise<string | undefined> {
  const { used, claimed, claim, choose = chooseSubnet, random = Math.random } = facts;
  for (let start = Number.parseInt(hash.slice(0, 2), 16); ; start = Math.floor(random() * 256)) {
    const subnet = choose(start, [...(await used()), ...(await claimed())]);
    if (subnet === undefined) return undefined;
    await claim(subnet);
    if (!(await claimed()).includes(subnet)) return subnet;
  }
}

/** Routes and addresses of the machine. */
export async function usedSubnets(): Promise<readonly string[]> {
  const routes: unknown = JSON.parse(await execOk('ip', ['-json', '-4', 'route', 'show', 'table', 'all']));
  const found: string[] = [];
  if (Array.isArray(routes)) {
    for (const route of routes) {
      if (typeof route === 'object' && route !== null && 'dst' in route && typeof route.dst === 'string') {
        found.push(route.dst);
      }
    }
  }
  return found;
}

/** Whether no process listens on a port, on any address. */
function portIsFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => {
      if (isErrno(error, 'EADDRINUSE', 'EACCES')) resolve(false);
      else reject(error);
    });
    server.listen({ port, host: '0.0.0.0', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

function anyPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port: 0, host: '0.0.0.0' }, () => {
      const address = server.address();
      server.close(() => {
        if (typeof address === 'object' && address !== null) resolve(address.port);
        else reject(new Error('a listening TCP server has no port'));
      });
    });
  });
}

/**
 * The default port of a lab: the well-known one under the default root, elsewhere one of its
 * own, so that labs that start at the same moment do not both find the same port free.
 */
export function usualPort(paths: Pick<LabPaths, 'hash' | 'isDefaultRoot'>, wellKnown: number): number {
  if (paths.isDefaultRoot) return wellKnown;
  return 20_000 + ((Number.parseInt(paths.hash, 16) + wellKnown) % 10_000);
}

/**
 * The requested port, or UserError when it is taken; without one, the usual port, or a free one when that is
 * taken.
 */
export async function choosePort(
  what: string,
  requested: number | undefined,
  usual: number,
  not?: number,
): Promise<number> {
  if (requested !== undefined) {
    if (await portIsFree(requested)) return requested;
    throw new UserError(`port ${requested} for ${what} is taken: choose another one, or stop what listens there`);
  }
  if (usual !== not && (await portIsFree(usual))) return usual;
  let port = await anyPort();
  while (port === not) port = await anyPort();
  return port;
}
