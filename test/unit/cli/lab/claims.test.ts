import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { otherClaims, withdrawClaim, writeClaim } from '../../../../cli/lab/claims.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-claims-'));
});
afterEach(() => rm(directory, { recursive: true }));

const FIREWALL = { chains: { ipv4: ['nat CNI-OLD'], ipv6: [] }, nft: { tables: ['ip nat'], chains: [] } };

test('a lab sees what the others have claimed, and not itself', async () => {
  const claim = { subnet: '10.244.1.0/24', firewall: FIREWALL, madeDirectories: ['/run/netns'] };
  await writeClaim(join(directory, 'aa'), claim);
  await writeClaim(join(directory, 'bb'), { subnet: '10.244.2.0/24' });
  // One that is about to start, or was killed before it had claimed anything.
  await mkdir(join(directory, 'cc'));
  expect(await otherClaims('bb', directory)).toEqual([claim]);
  expect(await otherClaims('cc', directory)).toEqual([claim, { subnet: '10.244.2.0/24' }]);
});

test('a claim that is withdrawn counts no more, and may be withdrawn again', async () => {
  await writeClaim(join(directory, 'aa'), { subnet: '10.244.1.0/24' });
  await withdrawClaim(join(directory, 'aa'));
  await withdrawClaim(join(directory, 'aa'));
  expect(await otherClaims('bb', directory)).toEqual([]);
});

test('where no lab has ever been there are none', async () => {
  expect(await otherClaims('aa', join(directory, 'none'))).toEqual([]);
});
