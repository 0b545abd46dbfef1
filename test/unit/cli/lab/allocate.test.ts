import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { choosePort, chooseSubnet, claimSubnet, overlaps, parseSubnet } from '../../../../cli/lab/allocate.ts';
import { UserError } from '../../../../lib/errors.ts';

describe('subnets', () => {
  it.each([
    ['10.244.3.0/24', '10.244.3.128/25', true],
    ['10.244.3.0/24', '10.244.4.0/24', false],
    ['10.0.0.0/8', '10.244.4.0/24', true],
    ['10.244.3.7', '10.244.3.0/24', true],
    ['192.168.0.0/16', '10.0.0.0/8', false],
  ])('%s and %s overlap: %s', (a, b, expected) => {
    const [left, right] = [parseSubnet(a), parseSubnet(b)];
    if (left === undefined || right === undefined) throw new Error('both are subnets');
    expect(overlaps(left, right)).toBe(expected);
    expect(overlaps(right, left)).toBe(expected);
  });

  it('that are none are not parsed', () => {
    for (const text of ['default', 'fe80::/64', '']) expect(parseSubnet(text)).toBeUndefined();
  });

  it('are looked for from a given one on, and step over what is taken', () => {
    expect(chooseSubnet(0, [])).toBe('10.244.0.0/24');
    expect(chooseSubnet(255, [])).toBe('10.244.255.0/24');
    expect(chooseSubnet(255, ['10.244.255.0/24', '10.244.0.9'])).toBe('10.244.1.0/24');
  });

  it('are not blocked by the default route, however it is written', () => {
    expect(chooseSubnet(5, ['default', '0.0.0.0/0'])).toBe('10.244.5.0/24');
  });

  it('run out when something covers all of them', () => {
    expect(chooseSubnet(5, ['10.0.0.0/8'])).toBeUndefined();
  });
});

describe('a subnet for a lab', () => {
  /** Labs that see each other's claims; `gate` is waited for before each look at what the others claimed. */
  function labs(gate: () => Promise<void> = async () => undefined) {
    const claims = new Map<string, string>();
    const others = (hash: string): string[] => [...claims].flatMap(([of, subnet]) => (of === hash ? [] : [subnet]));
    const claim = (hash: string) =>
      claimSubnet(hash, {
        used: async () => [],
        claim: async (subnet) => void claims.set(hash, subnet),
        claimed: async () => {
          await gate();
          return others(hash);
        },
      });
    return { claims, claim };
  }

  it('is claimed, and the others take another one', async () => {
    const { claims, claim } = labs();
    expect(await claim('05aa0000')).toBe('10.244.5.0/24');
    expect(await claim('05bb0000')).toBe('10.244.6.0/24');
    expect([...claims.values()]).toEqual(['10.244.5.0/24', '10.244.6.0/24']);
  });

  it('is not the one of others that choose at the same moment', async () => {
    const waiting: (() => void)[] = [];
    // Every lab has claimed its choice before any reads the claims, in each round.
    const together = (): Promise<void> =>
      new Promise((resolve) => {
        waiting.push(resolve);
        setImmediate(() => {
          for (const go of waiting.splice(0)) go();
        });
      });
    const { claims, claim } = labs(together);
    const hashes = ['05aa0000', '05bb0000', '05cc0000'];
    const chosen = await Promise.all(hashes.map(claim));
    expect(new Set(chosen).size).toBe(3);
    expect(hashes.map((hash) => claims.get(hash))).toEqual(chosen);
  });

  it('is none, and nothing is claimed, when all are taken', async () => {
    const claim = async (): Promise<void> => expect.fail('claimed');
    const facts = { used: async () => ['10.0.0.0/8'], claimed: async () => [], claim };
    expect(await claimSubnet('05aa0000', facts)).toBeUndefined();
  });
});

describe('ports', () => {
  it('that were asked for and are taken are an error that names them', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    try {
      await expect(choosePort('the API server', port, 6443)).rejects.toThrow(UserError);
      await expect(choosePort('the API server', port, 6443)).rejects.toThrow(
        `port ${port} for the API server is taken`,
      );
      const other = await choosePort('the API server', undefined, port);
      expect(other).not.toBe(port);
      expect(other).toBeGreaterThan(0);
    } finally {
      server.close();
    }
  });
});
