// Runs one plugin binary once: environment and standard input in, result or CniError out, one span around it.
// Never decides which plugin runs, in which order or what happens after a failure.

import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../lib/clock.ts';
import { cutWithMark } from '../lib/cut.ts';
import { errnoOf, errorMessage, isErrno } from '../lib/errors.ts';
import { type Exec, type ExecResult, exec } from '../lib/exec.ts';
import { MAX_DETAIL_BYTES, maskedJson } from '../lib/masked-json.ts';
import { retry, steadyPauses } from '../lib/retry.ts';
import type { SpanAttributes, Tracer } from '../lib/trace.ts';
import { isJsonObject, tryParseJson } from './json.ts';
import { type Attachment, type CniCommand, CniError, CniErrorCode, type JsonObject } from './types.ts';

export interface PluginRunnerOptions {
  readonly binDirs: readonly string[];
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly exec?: Exec | undefined;
  /** A plugin that takes longer is killed, in ms. Default 120 000. */
  readonly timeoutMs?: number | undefined;
}

const DEFAULT_TIMEOUT_MS = 120_000;
/** A binary that is being replaced cannot be started for a moment (ETXTBSY). */
const BUSY_RETRIES = 5;
const BUSY_WAIT_MS = 200;
const MAX_QUOTED = 1024;

/** The commands that concern no single container: no CNI_CONTAINERID, CNI_NETNS or CNI_IFNAME. */
type GlobalCommand = 'STATUS' | 'GC' | 'VERSION';

export type PluginCall = {
  readonly type: string;
  readonly netconf: JsonObject;
} & (
  | { readonly command: Exclude<CniCommand, GlobalCommand>; readonly attachment: Omit<Attachment, 'capabilityArgs'> }
  | { readonly command: GlobalCommand }
);

export class PluginRunner {
  readonly #options: PluginRunnerOptions;
  readonly #exec: Exec;
  /** Read once: each name that is read in process.env is a call into the C library. */
  readonly #inherited = inheritedEnvironment(process.env);
  constructor(options: PluginRunnerOptions) {
    this.#options = options;
    this.#exec = options.exec ?? exec;
  }

  /** Path of a plugin's executable. Throws CniError, code 5, naming the directories it looked in. */
  find(type: string): string {
    if (type === '' || type.includes('/')) {
      throw new CniError({ code: CniErrorCode.invalidNetworkConfig, msg: `invalid plugin name: "${type}"` });
    }
    for (const dir of this.#options.binDirs) {
      const path = join(dir, type);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch (error) {
        if (!isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES')) throw error;
      }
    }
    throw new CniError({
      code: CniErrorCode.ioFailure,
      msg: `failed to find plugin "${type}" in path [${this.#options.binDirs.join(' ')}]`,
    });
  }

  /**
   * Runs the plugin to its end. Resolves to the JSON it printed, undefined when it printed nothing. Rejects with
   * CniError: the plugin's own, or one that describes why there is none.
   */
  run(call: PluginCall, attributes: SpanAttributes = {}): Promise<unknown> {
    const { command, type } = call;
    const about =
      'attachment' in call ? { containerId: call.attachment.containerId, ifName: call.attachment.ifName } : {};
    return this.#options.tracer.span('cni', `${command} ${type}`, { ...attributes, ...about }, async (span) => {
      const path = this.find(type);
      span.detail(() => ({
        program: path,
        environment: maskedJson(variablesOf(call, this.#options.binDirs)),
        stdin: maskedJson(call.netconf),
      }));
      const result = await this.#start(path, call);
      span.detail(() => ({ stdout: cutWithMark(result.stdout.trim(), MAX_DETAIL_BYTES) }));
      if (result.stderr !== '') span.set({ stderr: quote(result.stderr) });
      return answerOf(call, result, this.#timeoutMs());
    });
  }

  #timeoutMs(): number {
    return this.#options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  }

  async #start(path: string, call: PluginCall): Promise<ExecResult> {
    const options = {
      env: { ...this.#inherited, ...variablesOf(call, this.#options.binDirs) },
      stdin: JSON.stringify(call.netconf),
      timeoutMs: this.#timeoutMs(),
    };
    try {
      return await retry(() => this.#exec(path, [], options), {
        clock: this.#options.clock,
        policy: steadyPauses(BUSY_WAIT_MS),
        maxTries: 1 + BUSY_RETRIES,
        mends: (error) => isErrno(error, 'ETXTBSY'),
      });
    } catch (error) {
      throw new CniError(
        {
          code: CniErrorCode.ioFailure,
          msg: `cannot run ${path}: ${errnoOf(error) ?? errorMessage(error)}`,
          plugin: call.type,
          command: call.command,
        },
        { cause: error },
      );
    }
  }
}

/** Plugins need PATH (iptables, nft); a CNI_ variable of our own environment is no business of theirs. */
function inheritedEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('CNI_')));
}

function variablesOf(call: PluginCall, binDirs: readonly string[]): Record<string, string> {
  return {
    CNI_COMMAND: call.command,
    CNI_PATH: binDirs.join(':'),
    ...('attachment' in call
      ? {
          CNI_CONTAINERID: call.attachment.containerId,
          CNI_NETNS: call.attachment.netns,
          CNI_IFNAME: call.attachment.ifName,
          CNI_ARGS: call.attachment.args,
        }
      : {}),
  };
}

const short = (text: string): string => (text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text);

const quote = (text: string): string => short(text.trim());

/** The result of a finished plugin. Pure; throws CniError. */
export function answerOf(call: Pick<PluginCall, 'command' | 'type'>, result: ExecResult, timeoutMs: number): unknown {
  const { command, type } = call;
  const fail = (code: number, msg: string, details: string): never => {
    throw new CniError({ code, msg, details, plugin: type, command, unanswered: true });
  };
  const stderr = quote(result.stderr);
  if (result.timedOut)
    return fail(CniErrorCode.tryAgainLater, `killed after ${timeoutMs} ms without an answer`, stderr);
  const stdout = result.stdout.trim();
  if (result.code === 0) {
    if (stdout === '') return undefined;
    const value = tryParseJson(stdout);
    // Only ADD and VERSION have a result; what other commands print is ignored.
    if (value === undefined && (command === 'ADD' || command === 'VERSION')) {
      return fail(CniErrorCode.decodingFailure, `printed what is not JSON: "${quote(stdout)}"`, stderr);
    }
    return value;
  }
  const ended = result.code === null ? `killed by ${result.signal}` : `exit code ${result.code}`;
  const fault = tryParseJson(stdout);
  if (isJsonObject(fault) && (typeof fault['code'] === 'number' || typeof fault['msg'] === 'string')) {
    const code = typeof fault['code'] === 'number' ? fault['code'] : CniErrorCode.internal;
    const msg = typeof fault['msg'] === 'string' && fault['msg'] !== '' ? fault['msg'] : `${ended}, no message`;
    const details = typeof fault['details'] === 'string' ? short(fault['details']) : '';
    throw new CniError({ code, msg: short(msg), details, plugin: type, command });
  }
  if (stdout === '') return fail(CniErrorCode.internal, `${ended} with no error message`, stderr);
  return fail(CniErrorCode.decodingFailure, `${ended}, and printed no CNI error: "${quote(stdout)}"`, stderr);
}
