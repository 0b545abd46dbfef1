// The runtime side of CNI 1.1: what ADD, DEL, CHECK, STATUS, GC and VERSION mean for a whole chain of plugins. Keeps
// the books (the attachment cache) so that every attachment can be undone after a crash. Never chooses a network.

import { statfs } from 'node:fs/promises';
import type { Clock } from '../lib/clock.ts';
import { errorMessage, isDiskFull, isErrno } from '../lib/errors.ts';
import { type Exec, exec } from '../lib/exec.ts';
import type { Tracer } from '../lib/trace.ts';
import { tracedExec } from '../lib/traced-exec.ts';
import { AttachmentCache, type CachedAttachment, type CacheListing } from './cache.ts';
import { type PluginCall, PluginRunner } from './invoke.ts';
import { removeMasquerade } from './iptables.ts';
import { isJsonObject } from './json.ts';
import { OperationLock } from './lock.ts';
import { pluginNetconf, validateAttachment } from './netconf.ts';
import { effectiveRoutes, formatResult, parseResult, routeText } from './result.ts';
import {
  type Attachment,
  type AttachmentRef,
  CniError,
  CniErrorCode,
  type CniResult,
  type NetworkConfigList,
  type PluginConfig,
} from './types.ts';
import { atLeast, CURRENT_VERSION } from './version.ts';

export interface CniRuntimeOptions {
  /** Where plugin binaries are looked for, first match wins. */
  readonly binDirs: readonly string[];
  /** Where attachments are cached; used by this runtime alone. */
  readonly cacheDir: string;
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly exec?: Exec | undefined;
  /** A plugin that takes longer is killed, in ms. Default 120 000. */
  readonly pluginTimeoutMs?: number | undefined;
}

export interface GarbageOptions {
  /** Whether a container is known to be there. */
  readonly inUse?: (containerId: string) => boolean;
  /** Attachments in use that are not in the cache. */
  readonly alsoValid?: readonly AttachmentRef[];
}

export interface GarbageReport {
  /** Attachments that were undone. */
  readonly removed: readonly AttachmentRef[];
  /** What could not be undone; the next collection tries again. */
  readonly failures: readonly Error[];
}

const EMPTY_RESULT: CniResult = { interfaces: [], ips: [], routes: [], dns: {} };
/** From here on DEL and CHECK are given the result of ADD. */
const PREV_RESULT_SINCE = '0.4.0';
const STATUS_AND_GC_SINCE = '1.1.0';
/** Undone attachments that are kept in memory: runtimes repeat DEL within seconds. */
const MAX_UNDONE = 1024;

export class CniRuntime {
  readonly #plugins: PluginRunner;
  readonly #cache: AttachmentCache;
  readonly #lock = new OperationLock();
  readonly #options: CniRuntimeOptions;
  /** Runs iptables. */
  readonly #netfilter: Exec;
  /** Attachments that were undone whole, oldest first. */
  readonly #undone = new Set<string>();

  constructor(options: CniRuntimeOptions) {
    this.#options = options;
    this.#plugins = new PluginRunner({
      binDirs: options.binDirs,
      tracer: options.tracer,
      clock: options.clock,
      exec: options.exec,
      timeoutMs: options.pluginTimeoutMs,
    });
    this.#cache = new AttachmentCache(options.cacheDir);
    this.#netfilter = tracedExec(options.tracer, 'netfilter', options.exec ?? exec);
  }

  /** The attachments of a container, from disk. */
  attachments(containerId: string): readonly CachedAttachment[] {
    return this.#cache.ofContainer(containerId);
  }

  /** Whether nothing is attached, as far as the disk says. */
  hasNoAttachments(): boolean {
    return this.#cache.isEmpty();
  }

  /** Every attachment, from disk, with the files that could not be understood. */
  allAttachments(): CacheListing {
    return this.#cache.list();
  }

  /**
   * Attaches a container: every plugin in order, with the previous plugin's result. When one fails, those that
   * ran, the failing one too, are undone in reverse, and the promise rejects with that plugin's CniError; what could
   * not be undone is in its details and stays in the cache for the garbage collection.
   */
  add(list: NetworkConfigList, attachment: Attachment): Promise<CniResult> {
    validateAttachment(attachment);
    return this.#lock.shared(attachment.containerId, () =>
      this.#operation('ADD', list, attachment, async (set) => {
        this.#undone.delete(attachmentKey(attachment));
        await this.#clearWay(list, attachment);
        const result = await this.#addChain(list, attachment);
        set({
          interfaces: result.interfaces.map((entry) => entry.name),
          ips: result.ips.map((entry) => entry.address),
          routes: effectiveRoutes(result).map(routeText),
        });
        return result;
      }),
    );
  }

  /** The specification forbids a second ADD of one attachment; remains of one that was cut short are undone first. */
  async #clearWay(list: NetworkConfigList, attachment: Attachment): Promise<void> {
    for (const entry of this.#cache.ofContainer(attachment.containerId)) {
      if (entry.ifName !== attachment.ifName || entry.list.name !== list.name) continue;
      if (entry.state === 'adding') {
        await this.#delChain(entry, attachment.netns);
        continue;
      }
      throw new CniError({
        code: CniErrorCode.internal,
        msg: `container ${entry.containerId} is already attached to network "${list.name}" as ${entry.ifName}`,
      });
    }
  }

  async #addChain(list: NetworkConfigList, attachment: Attachment): Promise<CniResult> {
    const { containerId, netns, ifName, args, capabilityArgs } = attachment;
    let entry: CachedAttachment = {
      ...{ containerId, netns, ifName, args, capabilityArgs },
      list,
      state: 'adding',
      result: undefined,
      createdAt: this.#options.clock.now(),
    };
    let result = EMPTY_RESULT;
    const begun: PluginConfig[] = [];
    try {
      // Written before anything exists in the kernel, so that the agent can undo it after being killed at any point.
      this.#cache.write(entry);
      for (const plugin of list.plugins) {
        begun.push(plugin);
        const netconf = pluginNetconf(list, plugin, { capabilityArgs, prevResult: entry.result });
        const answer = await this.#run({ command: 'ADD', type: plugin.type, netconf, attachment }, list);
        result = readAnswer(answer, list, plugin);
        entry = { ...entry, result: formatResult(result, list.cniVersion) };
      }
      this.#cache.write({ ...entry, state: 'added' });
      return result;
    } catch (error) {
      throw await this.#rollBack(entry, begun, error);
    }
  }

  /** Caches the result so far for a later DEL. On a full disk the entry that was written first remains. */
  #keepInCache(entry: CachedAttachment): void {
    try {
      this.#cache.write(entry);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
  }

  /**
   * Undoes what an ADD began. A plugin that answered its ADD with an error has cleaned up after itself; that its DEL
   * fails as well, as a plugin's does that is broken or misconfigured, is part of the error, and keeps nothing in the
   * cache. One that was killed, or succeeded before the ADD failed, has cleaned up nothing: its DEL has to succeed.
   */
  async #rollBack(entry: CachedAttachment, begun: readonly PluginConfig[], cause: unknown): Promise<CniError> {
    const failed = await this.#delPastFailures(entry, begun, await usableNetns(entry.netns));
    const failures = failed.map(({ error }) => errorMessage(error));
    const clean = cause instanceof CniError && !cause.unanswered ? begun.at(-1) : undefined;
    if (failed.every(({ plugin }) => plugin === clean)) this.#cache.remove(entry);
    else this.#keepInCache(entry);
    const fault =
      cause instanceof CniError
        ? cause
        : new CniError({ code: CniErrorCode.ioFailure, msg: errorMessage(cause) }, { cause });
    if (failures.length === 0) return fault;
    const details = [fault.details, `cleaning up failed too: ${failures.join('; ')}`].filter((text) => text !== '');
    return new CniError(
      {
        code: fault.code,
        msg: fault.msg,
        details: details.join('; '),
        ...(fault.plugin === undefined ? {} : { plugin: fault.plugin }),
        ...(fault.command === undefined ? {} : { command: fault.command }),
      },
      { cause: fault },
    );
  }

  /**
   * Detaches a container, in reverse order, with the cached configuration of its ADD. Stops at the first plugin that
   * fails (continues when the ADD was never completed) and rejects with its CniError; the attachment stays in the cache
   * then. Without a cache entry there is nothing to undo unless the cache was lost: the plugins of `current`, if any, get
   * a DEL, and a failure is only recorded in its span, since it must not keep the container's namespace. An attachment
   * that this runtime has undone is not undone again: containerd sends DEL with StopPodSandbox, and once more with
   * RemovePodSandbox.
   */
  del(attachment: Attachment, current?: NetworkConfigList): Promise<void> {
    validateAttachment(attachment);
    return this.#lock.shared(attachment.containerId, async () => {
      const cached = this.#cache
        .ofContainer(attachment.containerId)
        .filter((entry) => entry.ifName === attachment.ifName);
      if (cached.length > 0) {
        for (const entry of cached) await this.#delChain(entry, attachment.netns);
        this.#recordDeleted(attachment);
      } else if (current !== undefined && !this.#undone.has(attachmentKey(attachment))) {
        const entry: CachedAttachment = {
          ...attachment,
          list: current,
          state: 'adding',
          result: undefined,
          createdAt: this.#options.clock.now(),
        };
        await this.#operation('DEL', current, entry, async () => {
          await this.#delPastFailures(entry, current.plugins, await usableNetns(attachment.netns));
        });
      }
    });
  }

  #recordDeleted(attachment: Attachment): void {
    this.#undone.add(attachmentKey(attachment));
    for (const oldest of this.#undone) {
      if (this.#undone.size <= MAX_UNDONE) return;
      this.#undone.delete(oldest);
    }
  }

  /** Undoes these in reverse; a failing plugin does not stop the others. Returns the failures. */
  async #delPastFailures(
    entry: CachedAttachment,
    plugins: readonly PluginConfig[],
    netns: string,
  ): Promise<readonly { readonly plugin: PluginConfig; readonly error: unknown }[]> {
    const failed: { plugin: PluginConfig; error: unknown }[] = [];
    for (const plugin of plugins.toReversed()) {
      try {
        await this.#del(entry, plugin, netns);
      } catch (error) {
        failed.push({ plugin, error });
      }
    }
    return failed;
  }

  #delChain(entry: CachedAttachment, netns: string): Promise<void> {
    return this.#operation('DEL', entry.list, entry, async () => {
      const usable = await usableNetns(netns);
      if (entry.state === 'adding') {
        const [failed] = await this.#delPastFailures(entry, entry.list.plugins, usable);
        if (failed !== undefined) throw failed.error;
      } else {
        for (const plugin of entry.list.plugins.toReversed()) await this.#del(entry, plugin, usable);
      }
      if (usable === '' && entry.list.plugins.some((plugin) => plugin['ipMasq'] === true)) {
        await removeMasquerade(entry.list.name, entry.containerId, this.#netfilter);
      }
      this.#cache.remove(entry);
    });
  }

  async #del(entry: CachedAttachment, plugin: PluginConfig, netns: string): Promise<void> {
    const { list, capabilityArgs } = entry;
    const prevResult = atLeast(list.cniVersion, PREV_RESULT_SINCE) ? entry.result : undefined;
    const netconf = pluginNetconf(list, plugin, { capabilityArgs, prevResult });
    await this.#run({ command: 'DEL', type: plugin.type, netconf, attachment: { ...entry, netns } }, list);
  }

  /** Sends CHECK to every plugin. Rejects with the first CniError. */
  check(attachment: Attachment): Promise<void> {
    validateAttachment(attachment);
    return this.#lock.shared(attachment.containerId, async () => {
      const entries = this.#cache.ofContainer(attachment.containerId);
      const entry = entries.find((candidate) => candidate.ifName === attachment.ifName);
      if (entry?.result === undefined || entry.state !== 'added') {
        throw new CniError({
          code: CniErrorCode.unknownContainer,
          msg: `container ${attachment.containerId} has no attachment ${attachment.ifName}`,
        });
      }
      const { list, capabilityArgs, result } = entry;
      if (list.disableCheck) return;
      if (!atLeast(list.cniVersion, PREV_RESULT_SINCE)) {
        throw new CniError({
          code: CniErrorCode.incompatibleVersion,
          msg: `configuration version "${list.cniVersion}" does not support the CHECK command`,
        });
      }
      await this.#operation('CHECK', list, entry, async () => {
        for (const plugin of list.plugins) {
          const netconf = pluginNetconf(list, plugin, { capabilityArgs, prevResult: result });
          await this.#run(
            { command: 'CHECK', type: plugin.type, netconf, attachment: { ...entry, netns: attachment.netns } },
            list,
          );
        }
      });
    });
  }

  /**
   * Whether the chain can serve ADD: every plugin binary is there and, from 1.1.0 on, every plugin's STATUS succeeds. Rejects
   * with CniError otherwise.
   */
  async status(list: NetworkConfigList): Promise<void> {
    for (const plugin of list.plugins) {
      const ipam = plugin['ipam'];
      const types =
        isJsonObject(ipam) && typeof ipam['type'] === 'string' ? [plugin.type, ipam['type']] : [plugin.type];
      for (const type of types) if (type !== '') this.#plugins.find(type);
    }
    if (!atLeast(list.cniVersion, STATUS_AND_GC_SINCE)) return;
    for (const plugin of list.plugins) {
      await this.#run({ command: 'STATUS', type: plugin.type, netconf: pluginNetconf(list, plugin, {}) }, list);
    }
  }

  /**
   * Undoes every attachment that `isStale` names, each by its own configuration. Then, from 1.1.0 on and unless the
   * network has disableGC, gives each plugin the attachments that remain, for it to drop all others. What is in use is not
   * asked about, and its files are not even read where no plugin has to know them: a round of a full node costs one look at names.
   */
  async collectGarbage(
    list: NetworkConfigList | undefined,
    isStale: (entry: CachedAttachment) => Promise<boolean>,
    { inUse = () => false, alsoValid = [] }: GarbageOptions = {},
  ): Promise<GarbageReport> {
    const listing = this.#cache.list(list === undefined ? inUse : undefined);
    const failures: Error[] = [...listing.broken];
    const removed: AttachmentRef[] = [];
    const stuck = new Set<string>();
    for (const { containerId, ifName } of listing.entries) {
      if (inUse(containerId)) continue;
      await this.#lock.shared(containerId, async () => {
        // Read again inside the lock: an operation that was under way may have changed it.
        for (const entry of this.#cache.ofContainer(containerId)) {
          if (entry.ifName !== ifName || !(await isStale(entry))) continue;
          try {
            await this.#delChain(entry, entry.netns);
            removed.push(refOf(entry));
          } catch (error) {
            if (!(error instanceof CniError)) throw error;
            failures.push(error);
            stuck.add(keyOf(refOf(entry)));
          }
        }
      });
    }
    if (list !== undefined && !list.disableGC && atLeast(list.cniVersion, STATUS_AND_GC_SINCE)) {
      failures.push(...(await this.#collectByPlugins(list, stuck, alsoValid)));
    }
    return { removed, failures };
  }

  #collectByPlugins(
    list: NetworkConfigList,
    stuck: ReadonlySet<string>,
    alsoValid: readonly AttachmentRef[],
  ): Promise<readonly Error[]> {
    return this.#lock.exclusive(async () => {
      const known = this.#cache
        .list()
        .entries.filter((entry) => entry.list.name === list.name)
        .map(refOf);
      const valid = new Map([...known, ...alsoValid].map((ref) => [keyOf(ref), ref]));
      for (const key of stuck) valid.delete(key);
      const attachments = [...valid.values()];
      // The key was misspelt in an early text of 1.1.0; plugins read one or the other.
      const inject = { 'cni.dev/valid-attachments': attachments, 'cni.dev/attachments': attachments };
      const failures: Error[] = [];
      for (const plugin of list.plugins) {
        try {
          await this.#run({ command: 'GC', type: plugin.type, netconf: pluginNetconf(list, plugin, inject) }, list);
        } catch (error) {
          if (!(error instanceof CniError)) throw error;
          failures.push(error);
        }
      }
      return failures;
    });
  }

  /** The versions that a plugin reports; a plugin older than VERSION supports 0.1.0. */
  async version(type: string): Promise<readonly string[]> {
    const answer = await this.#plugins.run({ command: 'VERSION', type, netconf: { cniVersion: CURRENT_VERSION } });
    const versions: unknown = isJsonObject(answer) ? answer['supportedVersions'] : undefined;
    if (Array.isArray(versions)) return versions.filter((version): version is string => typeof version === 'string');
    if (isJsonObject(answer) && typeof answer['cniVersion'] === 'string') return ['0.1.0'];
    throw new CniError({
      code: CniErrorCode.decodingFailure,
      msg: 'printed no version information',
      plugin: type,
      command: 'VERSION',
    });
  }

  #run(call: PluginCall, list: NetworkConfigList): Promise<unknown> {
    return this.#plugins.run(call, { network: list.name });
  }

  /** One span around a whole chain; those of its plugins are inside. */
  #operation<T>(
    command: 'ADD' | 'DEL' | 'CHECK',
    list: NetworkConfigList,
    { containerId, ifName, netns }: Attachment,
    body: (set: (attributes: Readonly<Record<string, string | readonly string[]>>) => void) => Promise<T>,
  ): Promise<T> {
    const about = {
      network: list.name,
      containerId,
      ifName,
      netns,
      plugins: list.plugins.map((plugin) => plugin.type),
    };
    return this.#options.tracer.span('cni', `${command} network ${list.name}`, about, (span) =>
      body((attributes) => span.set(attributes)),
    );
  }
}

function readAnswer(answer: unknown, list: NetworkConfigList, plugin: PluginConfig): CniResult {
  const blame = { plugin: plugin.type, command: 'ADD', unanswered: true } as const;
  if (answer === undefined) {
    throw new CniError({ code: CniErrorCode.decodingFailure, msg: 'printed no result', ...blame });
  }
  try {
    return parseResult(answer, list.cniVersion, 'result');
  } catch (error) {
    if (!(error instanceof CniError)) throw error;
    throw new CniError({ code: error.code, msg: error.msg, ...blame }, { cause: error });
  }
}

const refOf = (entry: CachedAttachment): AttachmentRef => ({ containerID: entry.containerId, ifname: entry.ifName });
const keyOf = (ref: AttachmentRef): string => `${ref.containerID}/${ref.ifname}`;
const attachmentKey = ({ containerId, ifName }: Attachment): string => `${containerId}/${ifName}`;

const NSFS_MAGIC = 0x6e736673;
const PROC_SUPER_MAGIC = 0x9fa0;

/**
 * The path when a network namespace is behind it, else ''. A namespace that is gone may leave its path behind as an
 * empty file; plugins fail on that, but know what an absent namespace means.
 */
export async function usableNetns(path: string): Promise<string> {
  if (path === '') return '';
  try {
    const { type } = await statfs(path);
    return type === NSFS_MAGIC || type === PROC_SUPER_MAGIC ? path : '';
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'ESRCH')) return '';
    throw error;
  }
}
