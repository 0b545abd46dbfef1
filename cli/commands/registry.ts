// `nodelet registry`: serves the lab's images as a registry does. Hidden: `nodelet up` starts it.

import { Command } from 'commander';
import { systemClock } from '../../lib/clock.ts';
import { createLog } from '../../lib/log.ts';
import { parsePort } from './apiserver.ts';
import { listOption } from './list-flag.ts';
import { bytes, flagOption, type PullLimitFlag, pullLimit } from './registry-flags.ts';
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
    .option('--bind-address <ip>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on', parsePort, 5000)
    .addOption(
      listOption(
        '--reachable <hosts>',
        'comma-separated registries that answer themselves: their images are not served here',
      ),
    )
    .addOption(
      flagOption('--slow-rate <bytes>', 'bytes per second at which images of slow/… are served', bytes, '512Ki'),
    )
    .addOption(flagOption('--slow-size <bytes>', 'bytes of padding in images of slow/…', bytes, '8Mi'))
    .addOption(
      flagOption(
        '--pull-limit <pulls/time>',
        'pulls of limited/… without an account; with one twice as many',
        pullLimit,
        '2/1m',
      ),
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
