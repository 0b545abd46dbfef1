// The kernel's tables against the kernel itself, while links come and go.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { NetlinkWatcher } from '../../../agent/network/netlink.ts';
import { isErrno } from '../../../lib/errors.ts';
import { exec, execOk } from '../../../lib/exec.ts';
import { eventually } from './harness.ts';

const NAMES = Array.from({ length: 12 }, (_, index) => `ndl${process.pid % 10_000}x${index}`);
const watchers: NetlinkWatcher[] = [];
const failures: string[] = [];

beforeEach(() => {
  watchers.length = 0;
  failures.length = 0;
});
afterEach(async () => {
  expect(failures).toEqual([]);
  for (const watcher of watchers) watcher.close();
  for (const name of NAMES) await exec('ip', ['link', 'del', name]);
});

/** On a busy machine the kernel may have more notifications than there is room for: the watcher then reads the tables anew. */
const failed = (what: string, error: unknown): void => {
  if (!isErrno(error, 'ENOBUFS')) failures.push(`${what}: ${error}`);
};

const watcher = (): NetlinkWatcher => {
  const made = new NetlinkWatcher(failed);
  watchers.push(made);
  return made;
};

const shown = (of: NetlinkWatcher): string[] =>
  of.tables
    .links()
    .map((link) => link.name)
    .filter((name) => NAMES.includes(name))
    .sort();

it('starts whole in the middle of a burst of new links, and misses none', async () => {
  const making = (async () => {
    for (const name of NAMES) await execOk('ip', ['link', 'add', name, 'type', 'veth', 'peer', 'name', `${name}p`]);
  })();
  const started: NetlinkWatcher[] = [];
  let busy = true;
  void making.then(() => {
    busy = false;
  });
  // The first of them begins with the burst; how many more fit into it depends on the machine.
  while (busy || started.length < 4) {
    const one = watcher();
    await one.start();
    started.push(one);
  }
  await making;
  const all = [...NAMES].sort();
  for (const one of started) await eventually('every link is known', () => shown(one).join() === all.join());
  for (const name of NAMES) await execOk('ip', ['link', 'del', name]);
  for (const one of started) await eventually('every link is forgotten', () => shown(one).length === 0);
});

it('shows a link’s state, address and routes as `ip` does', async () => {
  const [name = ''] = NAMES;
  const one = watcher();
  await one.start();
  await execOk('ip', ['link', 'add', name, 'type', 'veth', 'peer', 'name', `${name}p`]);
  await execOk('ip', ['link', 'set', name, 'mtu', '1400', 'up']);
  await execOk('ip', ['link', 'set', `${name}p`, 'up']);
  await execOk('ip', ['addr', 'add', '10.251.77.1/24', 'dev', name]);
  await execOk('ip', ['route', 'add', '10.251.78.0/24', 'via', '10.251.77.9']);
  await eventually('the route', () => one.tables.routeTo('10.251.78.5')?.gw === '10.251.77.9');
  let index = 0;
  // On some machines udev gives a new link another address a moment later.
  await expect
    .poll(async () => {
      const [output] = JSON.parse(await execOk('ip', ['-j', '-d', 'link', 'show', name]));
      index = output.ifindex;
      const { address: mac, linkinfo } = output;
      return [one.tables.link(name), { index, mac, mtu: 1400, kind: linkinfo.info_kind, up: true }];
    })
    .toSatisfy(([shows, expected]) => Object.entries(expected).every(([key, value]) => shows?.[key] === value));
  expect(one.tables.addressesOf(index)).toContain('10.251.77.1/24');
  expect(one.tables.routeTo('10.251.77.200')).toMatchObject({ dst: '10.251.77.0/24', oif: index });
  await execOk('ip', ['link', 'set', name, 'down']);
  await eventually('its routes are gone', () => one.tables.routeTo('10.251.77.200')?.oif !== index);
});
