import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { choosePort, chooseSubnet, overlaps, parseSubnet } from '../../../../cli/lab/allocate.ts';
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

  it('differ between roots and step over what is taken', () => {
    expect(chooseSubnet('00aaaaaa', [])).toBe('10.244.0.0/24');
    expect(chooseSubnet('ffaaaaaa', [])).toBe('10.244.255.0/24');
    expect(chooseSubnet('ffaaaaaa', ['10.244.255.0/24', '10.244.0.9'])).toBe('10.244.1.0/24');
  });

  it('are not blocked by the default route, however it is written', () => {
    expect(chooseSubnet('05aaaaaa', ['default', '0.0.0.0/0'])).toBe('10.244.5.0/24');
  });

  it('run out when something covers all of them', () => {
    expect(chooseSubnet('05aaaaaa', ['10.0.0.0/8'])).toBeUndefined();
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
