import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type CsiNodeInfo, RegisteredDrivers } from '../../../csi/registered-drivers.ts';
import { createPluginWatcher, type PluginWatcher } from '../../../csi/registration.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Tracer } from '../../../lib/trace.ts';
import { exhaustInotify } from '../../support/no-inotify.ts';
import { FakeCsiDriver } from '../../support/scripted-csi-driver.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

let directory = '';
let registry = '';
let drivers: RegisteredDrivers;
let watcher: PluginWatcher;
let announced: string[];
let infos: CsiNodeInfo[];
let announceFailure: Error | undefined;
let logs: string[];
const running: FakeCsiDriver[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'nodelet-csi-reg-'));
  registry = join(directory, 'plugins_registry');
  announced = [];
  infos = [];
  logs = [];
  announceFailure = undefined;
  drivers = new RegisteredDrivers({
    clock: systemClock,
    tracer: new Tracer(),
    announcer: {
      async announce(info) {
        if (announceFailure !== undefined) throw announceFailure;
        infos.push(info);
        announced.push(`+${info.driver}`);
      },
      async withdraw(driver) {
        announced.push(`-${driver}`);
      },
    },
    onError: (message) => logs.push(message),
  });
  watcher = createPluginWatcher({
    directory: registry,
    handlers: { CSIPlugin: drivers },
    clock: systemClock,
    tracer: new Tracer(),
    log: (level, message) => void logs.push(`${level} ${message}`),
  });
});
afterEach(async () => {
  watcher.close();
  drivers.close();
  for (const driver of running.splice(0)) driver.kill();
  await rm(directory, { recursive: true, force: true });
});

async function start(
  socket = join(registry, 'fake-reg.sock'),
  change: (driver: FakeCsiDriver) => void = () => undefined,
) {
  const driver = new FakeCsiDriver();
  change(driver);
  await driver.listen(socket);
  running.push(driver);
  return driver;
}

describe('a plugin', () => {
  test('is found where the machine has no inotify watch left, and missed when it goes', async () => {
    const inotify = exhaustInotify();
    await watcher.start();
    const driver = await start();
    await vi.waitFor(() => expect(driver.notified).toEqual([{ plugin_registered: true, error: '' }]));
    await rm(join(registry, 'fake-reg.sock'));
    await vi.waitFor(() => expect(logs).toContain('info DeRegisterPlugin request for plugin'));
    expect(logs.filter((line) => line.startsWith('warn Polling the plugin directory'))).toHaveLength(1);
    inotify.free();
  });

  test('whose socket is there before the agent is registered and notified', async () => {
    await mkdir(registry);
    const driver = await start();
    await watcher.start();
    await vi.waitFor(() => expect(driver.notified).toEqual([{ plugin_registered: true, error: '' }]));
    expect(drivers.names()).toEqual(['fake.csi']);
    expect(announced).toEqual(['+fake.csi']);
  });

  test('whose socket appears later is registered', async () => {
    await watcher.start();
    const driver = await start();
    await vi.waitFor(() => expect(driver.notified).toEqual([{ plugin_registered: true, error: '' }]));
  });

  test('in a directory below, made later, is found', async () => {
    await watcher.start();
    await mkdir(join(registry, 'a'));
    await mkdir(join(registry, 'a/b'));
    const driver = await start(join(registry, 'a/b/fake.sock'));
    await vi.waitFor(() => expect(driver.notified).toHaveLength(1));
    expect(drivers.names()).toEqual(['fake.csi']);
  });

  test('that hides, or is no socket, is not asked', async () => {
    await watcher.start();
    const hidden = await start(join(registry, '.fake.sock'));
    await writeFile(join(registry, 'file'), '');
    const driver = await start(join(registry, 'seen.sock'));
    await vi.waitFor(() => expect(driver.notified).toHaveLength(1));
    expect(hidden.calls).toEqual([]);
  });

  test('that names no endpoint of its own is spoken to at its registration socket', async () => {
    await watcher.start();
    const driver = await start();
    await vi.waitFor(() => expect(drivers.driver('fake.csi')?.name).toBe('fake.csi'));
    await drivers.driver('fake.csi')?.node.NodeStageVolume({ volume_id: 'v' });
    expect(driver.order).toContain('NodeStageVolume');
  });

  test('that names an endpoint is spoken to there', async () => {
    await watcher.start();
    const endpoint = join(directory, 'csi.sock');
    const service = await start(endpoint);
    await start(undefined, (driver) => {
      driver.info = { ...driver.info, endpoint };
    });
    await vi.waitFor(() => expect(drivers.driver('fake.csi')).toBeDefined());
    expect(service.calls.map(({ method }) => method)).toContain('NodeGetInfo');
  });

  test('whose socket goes is deregistered, also in the CSINode', async () => {
    await watcher.start();
    const driver = await start();
    await vi.waitFor(() => expect(drivers.names()).toEqual(['fake.csi']));
    driver.kill();
    await rm(join(registry, 'fake-reg.sock'), { force: true });
    await vi.waitFor(() => expect(announced).toEqual(['+fake.csi', '-fake.csi']));
    expect(drivers.names()).toEqual([]);
  });

  test('that comes back under the same socket is registered again', async () => {
    await watcher.start();
    const first = await start();
    await vi.waitFor(() => expect(first.notified).toHaveLength(1));
    first.kill();
    await rm(join(registry, 'fake-reg.sock'), { force: true });
    const second = await start();
    await vi.waitFor(() => expect(second.notified).toEqual([{ plugin_registered: true, error: '' }]));
    await vi.waitFor(() => expect(drivers.names()).toEqual(['fake.csi']));
    await drivers.driver('fake.csi')?.node.NodeStageVolume({ volume_id: 'v' });
    expect(second.order).toContain('NodeStageVolume');
  });

  test('its waiters continue as soon as it is registered', async () => {
    await watcher.start();
    let reported = false;
    const waiting = drivers.registered('fake.csi').then(() => {
      reported = true;
    });
    expect(reported).toBe(false);
    await start();
    await waiting;
    expect(drivers.driver('fake.csi')).toBeDefined();
  });
});

describe('a plugin is refused, with the reason in its notification,', () => {
  test.each<[string, (driver: FakeCsiDriver) => void, RegExp]>([
    [
      'when its type is unknown',
      (driver) => {
        driver.info = { ...driver.info, type: 'DRAPlugin' };
      },
      /^RegisterPlugin error -- no handler registered for plugin type: DRAPlugin at socket /,
    ],
    [
      'when it speaks no version of ours',
      (driver) => {
        driver.info = { ...driver.info, supported_versions: ['0.3.0'] };
      },
      /plugin validation failed with err: validation failed for CSI Driver fake.csi at endpoint .*None of the versions/,
    ],
    [
      'when it does not say who the node is',
      (driver) => driver.next('NodeGetInfo', { code: 'INTERNAL', message: 'no idea' }),
      /plugin registration failed with err: no idea/,
    ],
    [
      'when it gives the node an empty id',
      (driver) => {
        driver.nodeInfo = { ...driver.nodeInfo, node_id: '' };
      },
      /plugin registration failed with err: .*without a node id/,
    ],
  ])('%s', async (_, change, words) => {
    await watcher.start();
    const driver = await start(undefined, change);
    await vi.waitFor(() => expect(driver.notified).toHaveLength(1));
    expect(driver.notified[0]).toMatchObject({ plugin_registered: false, error: expect.stringMatching(words) });
    expect(drivers.names()).toEqual([]);
  });

  test('when the CSINode cannot be written, and is registered once it can', async () => {
    announceFailure = new Error('detected topology value collision');
    await watcher.start();
    const driver = await start();
    await vi.waitFor(() => expect(driver.notified).toHaveLength(1));
    expect(driver.notified[0]?.error).toContain('detected topology value collision');
    announceFailure = undefined;
    await vi.waitFor(() => expect(driver.notified.at(-1)).toEqual({ plugin_registered: true, error: '' }));
  });

  test('when another one of its name with no older version is there', async () => {
    await watcher.start();
    const first = await start();
    await vi.waitFor(() => expect(first.notified).toHaveLength(1));
    const second = await start(join(registry, 'second.sock'));
    await vi.waitFor(() => expect(second.notified).toHaveLength(1));
    expect(second.notified[0]?.error).toContain('Another driver with the same name is already registered');
    const newer = await start(join(registry, 'newer.sock'), (driver) => {
      driver.info = { ...driver.info, supported_versions: ['1.4.0'] };
    });
    await vi.waitFor(() => expect(newer.notified).toEqual([{ plugin_registered: true, error: '' }]));
    // The old one goes: its successor stays.
    first.kill();
    await rm(join(registry, 'fake-reg.sock'), { force: true });
    await watcher.rescan();
    expect(drivers.names()).toEqual(['fake.csi']);
    expect(announced).toEqual(['+fake.csi', '+fake.csi']);
  });
});

test('a directory that cannot be read does not end the agent; it is logged, and scanned again', async () => {
  const clock = new VirtualClock();
  const careful = createPluginWatcher({
    directory: registry,
    handlers: { CSIPlugin: drivers },
    clock,
    tracer: new Tracer(),
    log: (level, message, fields) => void logs.push(`${level} ${message}: ${fields?.['error']}`),
  });
  const rescan = vi.spyOn(careful, 'rescan').mockRejectedValueOnce(new Error('ENOSPC: no inotify watches left'));
  await careful.start();
  expect(logs).toEqual(['error Failed to traverse plugin socket path: ENOSPC: no inotify watches left']);
  const driver = await start();
  await clock.advance(10_000);
  expect(rescan).toHaveBeenCalledTimes(2);
  await vi.waitFor(() => expect(driver.notified).toEqual([{ plugin_registered: true, error: '' }]));
  careful.close();
});

test('a driver that is not up yet is asked who the node is until it answers', async () => {
  await watcher.start();
  const driver = await start(undefined, (fake) =>
    fake.next(
      'NodeGetInfo',
      { code: 'UNAVAILABLE', message: 'starting' },
      { code: 'UNAVAILABLE', message: 'starting' },
    ),
  );
  await vi.waitFor(() => expect(driver.notified).toEqual([{ plugin_registered: true, error: '' }]));
  expect(driver.calls.filter(({ method }) => method === 'NodeGetInfo')).toHaveLength(3);
});

test('what the driver says of the node is announced', async () => {
  await watcher.start();
  await start(undefined, (driver) => {
    driver.nodeInfo = {
      node_id: 'i-42',
      max_volumes_per_node: 7,
      accessible_topology: { segments: { 'topology.fake/zone': 'z1' } },
    };
  });
  await vi.waitFor(() => expect(infos).toHaveLength(1));
  expect(infos[0]).toEqual({
    driver: 'fake.csi',
    nodeId: 'i-42',
    maxVolumes: 7,
    topology: { 'topology.fake/zone': 'z1' },
  });
});
