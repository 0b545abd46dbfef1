// The plugin watcher: finds the sockets that plugins put under plugins_registry/, calls GetInfo of each, hands it to the
// handler of its type and notifies it of the outcome; a removed socket deregisters its plugin. Level-triggered: an event
// only triggers a rescan. gRPC is loaded with the first socket. What a plugin does is its handler's business.

import { lstat, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BackoffPolicy } from '../lib/backoff.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { errorMessage, isErrno } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import { getOwn } from '../lib/own-property.ts';
import { retryUntilAborted } from '../lib/retry.ts';
import type { Tracer } from '../lib/trace.ts';
import { type DirectoryWatch, watchDirectory } from '../lib/watch-directory.ts';
import type { PluginInfo, PluginSocket } from './registration-client.ts';

export interface PluginHandler {
  /** Rejects when the plugin is refused; the message begins with what failed, and is what the plugin gets. */
  register(plugin: PluginInfo, signal: AbortSignal): Promise<void>;
  /** The plugin is gone. Called only for what was registered. */
  deregister(plugin: PluginInfo): void;
}

export interface PluginWatcherOptions {
  /** `<agent root>/plugins_registry` */
  readonly directory: string;
  /** By plugin type. */
  readonly handlers: Readonly<Record<string, PluginHandler>>;
  readonly clock: Clock;
  readonly tracer: Tracer;
  readonly log: Log;
}

export interface PluginWatcher {
  /** Makes the directory, watches it and takes in what is there already. */
  start(): Promise<void>;
  /** Scans the directory now: for tests, and when something is known to have changed. Resolves when the scan is over. */
  rescan(): Promise<void>;
  close(): void;
}

/** The kubelet's pauses between tries of one plugin. */
const RETRY: BackoffPolicy = { initialMs: 500, maxMs: 122_000, factor: 2, resetMs: Number.POSITIVE_INFINITY };

/** The delay after a failed rescan, ms. */
const RESCAN_MS = 10_000;

/** One socket, from when it is seen until it is gone or another one is in its place. */
interface Watched {
  /** Which file it is: a socket made anew is another plugin process. */
  readonly identity: string;
  readonly gone: AbortController;
  registered: { readonly info: PluginInfo; readonly handler: PluginHandler } | undefined;
}

export function createPluginWatcher(options: PluginWatcherOptions): PluginWatcher {
  return new SocketWatcher(options);
}

class SocketWatcher implements PluginWatcher {
  readonly #options: PluginWatcherOptions;
  readonly #sockets = new Map<string, Watched>();
  readonly #directories = new Map<string, DirectoryWatch>();
  #scanning: Promise<void> | undefined;
  #scanAgain = false;
  #retry: Timer | undefined;
  #closed = false;

  constructor(options: PluginWatcherOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    await mkdir(this.#options.directory, { recursive: true, mode: 0o750 });
    await this.#rescanOrRetry();
  }

  /** A failed rescan is logged and retried; it does not affect pods without plugins. */
  async #rescanOrRetry(): Promise<void> {
    try {
      await this.rescan();
    } catch (error) {
      const { clock, directory, log } = this.#options;
      log('error', 'Failed to traverse plugin socket path', { directory, error: errorMessage(error) });
      this.#retry?.cancel();
      if (!this.#closed) this.#retry = clock.after(RESCAN_MS, () => void this.#rescanOrRetry());
    }
  }

  rescan(): Promise<void> {
    this.#scanAgain = true;
    this.#scanning ??= this.#scanUntilQuiet().finally(() => {
      this.#scanning = undefined;
    });
    return this.#scanning;
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
    for (const watcher of this.#directories.values()) watcher.close();
    this.#directories.clear();
    for (const socket of this.#sockets.values()) socket.gone.abort();
    this.#sockets.clear();
  }

  /** An event during a rescan triggers another one. */
  async #scanUntilQuiet(): Promise<void> {
    while (this.#scanAgain && !this.#closed) {
      this.#scanAgain = false;
      const found = new Map<string, string>();
      const directories = new Set<string>();
      await this.#scan(this.#options.directory, found, directories);
      if (this.#closed) return;
      for (const [path, watcher] of this.#directories) {
        if (directories.has(path)) continue;
        watcher.close();
        this.#directories.delete(path);
      }
      this.#updateSockets(found);
    }
  }

  /** Sockets at or below `directory`, hidden ones left out; the directory is watched before it is read. */
  async #scan(directory: string, found: Map<string, string>, directories: Set<string>): Promise<void> {
    try {
      directories.add(directory);
      this.#watch(directory);
      for (const entry of await readdir(directory, { withFileTypes: true })) {
        if (entry.name.startsWith('.')) continue;
        const path = join(directory, entry.name);
        if (entry.isDirectory()) await this.#scan(path, found, directories);
        if (!entry.isSocket()) continue;
        const { ino, ctimeMs } = await lstat(path);
        found.set(path, `${ino}:${ctimeMs}`);
      }
    } catch (error) {
      // Gone between being seen and being read: another event is on its way.
      if (!isErrno(error, 'ENOENT')) throw error;
    }
  }

  #watch(directory: string): void {
    if (this.#directories.has(directory) || this.#closed) return;
    const changed = (): void => void this.#rescanOrRetry();
    const { clock, log } = this.#options;
    const watcher = watchDirectory(directory, {
      changed,
      failed: (error) => {
        // A directory that was removed; made anew it must be watched anew.
        watcher.close();
        this.#directories.delete(directory);
        log('debug', 'Stopped watching a plugin directory', { directory, error: errorMessage(error) });
        changed();
      },
      polling: (error) =>
        log('warn', 'Polling the plugin directory instead of watching it', { directory, error: errorMessage(error) }),
      clock,
    });
    this.#directories.set(directory, watcher);
  }

  #updateSockets(found: ReadonlyMap<string, string>): void {
    for (const [path, socket] of this.#sockets) {
      if (found.get(path) !== socket.identity) this.#removeSocket(path, socket);
    }
    for (const [path, identity] of found) {
      if (this.#sockets.has(path)) continue;
      const socket: Watched = { identity, gone: new AbortController(), registered: undefined };
      this.#sockets.set(path, socket);
      void this.#registerUntilDone(path, socket);
    }
  }

  #removeSocket(path: string, { gone, registered }: Watched): void {
    gone.abort();
    this.#sockets.delete(path);
    if (registered === undefined) return;
    const { info, handler } = registered;
    handler.deregister(info);
    this.#options.log('info', 'DeRegisterPlugin request for plugin', {
      type: info.type,
      plugin: info.name,
      socket: path,
    });
  }

  /** Tries until the plugin is registered or its socket is gone. Never rejects. */
  async #registerUntilDone(path: string, socket: Watched): Promise<void> {
    const { clock, log, tracer } = this.#options;
    const { signal } = socket.gone;
    const register = (): Promise<PluginInfo> =>
      tracer.within({ cause: 'plugin socket' }, () => this.#register(path, socket));
    const onFailure = (error: unknown, inMs: number): void => log('warn', errorMessage(error), { socket: path, inMs });
    const info = await retryUntilAborted(register, { clock, policy: RETRY, onFailure, signal });
    if (info !== undefined) {
      log('info', 'Register new plugin', { type: info.type, plugin: info.name, socket: path });
    }
  }

  async #register(path: string, socket: Watched): Promise<PluginInfo> {
    const { openPluginSocket } = await import('./registration-client.ts');
    const plugin = await openPluginSocket(path, this.#options.tracer);
    try {
      const info = await plugin.getInfo();
      const refusal = await this.#registerWithHandler(info, path, socket);
      await notifyRegistrationStatus(plugin, refusal, path);
      if (refusal !== undefined) throw refusal;
      return info;
    } finally {
      plugin.close();
    }
  }

  /** Passes the plugin to its handler; returns the error if it was refused. */
  async #registerWithHandler(info: PluginInfo, path: string, socket: Watched): Promise<Error | undefined> {
    const { handlers } = this.#options;
    const handler = getOwn(handlers, info.type);
    if (handler === undefined) {
      const what = `no handler registered for plugin type: ${info.type} at socket ${path}`;
      return new Error(`RegisterPlugin error -- ${what}`);
    }
    // It was registered before, but NotifyRegistrationStatus failed.
    if (socket.registered !== undefined) return undefined;
    try {
      await handler.register(info, socket.gone.signal);
    } catch (error) {
      return new Error(`RegisterPlugin error -- ${errorMessage(error)}`, { cause: error });
    }
    if (socket.gone.signal.aborted) {
      handler.deregister(info);
      return new Error(`the socket ${path} has gone`);
    }
    socket.registered = { info, handler };
    return undefined;
  }
}

async function notifyRegistrationStatus(plugin: PluginSocket, refusal: Error | undefined, path: string): Promise<void> {
  try {
    await plugin.notify(refusal?.message);
  } catch (error) {
    const what = `failed to send registration status at socket ${path}: ${errorMessage(error)}`;
    throw new Error(`RegisterPlugin error -- ${what}${refusal === undefined ? '' : ` (${refusal.message})`}`, {
      cause: error,
    });
  }
}
