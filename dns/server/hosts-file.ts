// The file of the plugin `hosts`: read at the beginning, and again when it has changed. One that is not there has no lines.

import { readFileIfExists } from '../../lib/atomic.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { repeat } from '../../lib/retry.ts';
import type { HostsSettings } from '../corefile/settings.ts';
import { type HostsTable, hostsTable, mergeHosts } from '../plugins/hosts.ts';

export interface HostsFile {
  table(): HostsTable;
}

/** Follows the file until the signal aborts. */
export async function followHosts(
  settings: HostsSettings,
  options: {
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly log: (message: string) => void;
    readonly onRead: (entries: number) => void;
  },
): Promise<HostsFile> {
  const inline = hostsTable(settings.inline);
  let [text, table]: [string | undefined, HostsTable] = [undefined, inline];
  const read = async (): Promise<undefined> => {
    try {
      const now = (await readFileIfExists(settings.file)) ?? '';
      if (now === text) return;
      text = now;
      table = mergeHosts(inline, hostsTable(now.split('\n')));
      options.onRead(table.addresses.size);
    } catch (error) {
      options.log(`plugin/hosts: ${settings.file}: ${errorMessage(error)}`);
    }
  };
  await read();
  const { clock, signal } = options;
  const everyMs = settings.reloadMs;
  // Its failures are logged, and the table stays as it was.
  if (everyMs > 0) void repeat(read, { clock, everyMs, firstMs: everyMs, signal });
  return { table: () => table };
}
