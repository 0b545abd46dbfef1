// `nodelet registry`: serves the lab's images as a registry does. Hidden: `nodelet up` starts it.

import { Command } from 'commander';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { parsePort } from './apiserver.ts';
import { bytes, type PullLimitFlag, pullLimit } from './registry-flags.ts';
import { stopSignal } from './signals.ts';

interface Flags {
  readonly bindAddress: string;
  readonly port: number;
  readonly reachable: readonly string[];
  readonly slowRate: number;
  readonly slowSize: number;
  readonly pullLimit: PullLimitFlag;
}

export function registryCommand(): Command {
  return new Command('registry')
    .description('serve the lab’s images, as a registry does')
    .option('--bind-address <ip>', 'address it listens on', '127.0.0.1')
    .option('--port <port>', 'port it listens on', parsePort, 5000)
    .option(
      '--reachable <hosts>',
      'registries that are left to serve their own images, with commas between',
      (text: string) => text.split(',').filter((host) => host !== ''),
      [],
    )
    .option('--slow-rate <bytes>', 'of slow/…, in a second', bytes, bytes('512Ki'))
    .option('--slow-size <bytes>', 'what images of slow/… have on top', bytes, bytes('8Mi'))
    .option(
      '--pull-limit <pulls/time>',
      'of limited/…, without an account; with one it is twice as much',
      pullLimit,
      pullLimit('2/1m'),
    )
    .action(async ({ bindAddress, port, reachable, slowRate, slowSize, pullLimit: limit }: Flags) => {
      const { Catalog } = await import('../../labs/registry/catalog.ts');
      const { labImages } = await import('../../labs/registry/lab-images.ts');
      const { runRegistry } = await import('../../labs/registry/server.ts');
      const log = createLog('registry');
      const left = new Set(reachable);
      await runRegistry({
        catalog: new Catalog({
          images: () => labImages((line) => log('info', line)),
          reachable: left,
          paddingBytes: slowSize,
        }),
        reachable: left,
        slowBytesPerSecond: slowRate,
        limit,
        address: bindAddress,
        port,
        clock: systemClock,
        log,
        signal: stopSignal(),
      });
    });
}
