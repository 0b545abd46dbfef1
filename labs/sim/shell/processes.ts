// The processes of containers that do what their manifest says: each runs the command of its container. For worlds in which
// nothing happens by chance.

import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { ContainerRuntime, ContainerSpec } from '../../../agent/ports/runtime.ts';
import { type Clock, monotonicMs } from '../../../lib/clock.ts';
import type { ContainerConfig__Output } from '../../../proto/gen/runtime/v1/ContainerConfig.ts';
import type { PodSandboxConfig__Output } from '../../../proto/gen/runtime/v1/PodSandboxConfig.ts';
import type { SimDiskSpace } from '../disk-space.ts';
import { resolvConfText, type SimDns } from '../dns.ts';
import type { Process, ProcessTable } from '../processes.ts';
import { type Command, parseCommand, ShellError } from './parse.ts';
import { type ContainerFiles, ShellProcess } from './run.ts';

type ExecOutcome = Awaited<ReturnType<ContainerRuntime['execSync']>>;

interface Running {
  readonly files: ContainerFiles;
  readonly environment: ReadonlyMap<string, string>;
  /** The directory that each port's server has its files in. */
  readonly ports: Map<number, string>;
  readonly lookUp: (name: string) => Promise<readonly string[]>;
}

export interface ScriptedOptions {
  readonly clock: Clock;
  /** A process takes so many bytes more. */
  readonly takeMemory: (process: Process, bytes: number) => void;
  readonly space: SimDiskSpace;
  readonly dns: SimDns;
}

/** Images with a command of their own, and what it is. */
const IMAGE_COMMANDS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(docker\.io\/library\/)?busybox(:|@|$)/, ['sh']],
  [
    /^(docker\.io\/library\/)?nginx(:|@|$)/,
    ['sh', '-c', "trap 'exit 0' TERM; httpd -p 80 -h /; sleep infinity & wait"],
  ],
];

/** The command of a container. Throws ShellError for what is not simulated. */
export function commandOf(
  image: string,
  command: readonly string[] | undefined,
  args: readonly string[] | undefined,
): Command {
  const given = [...(command ?? []), ...(args ?? [])];
  if (command !== undefined && command.length > 0) return parseCommand(given);
  const own = IMAGE_COMMANDS.find(([pattern]) => pattern.test(image))?.[1];
  if (own === undefined) {
    throw new ShellError(`the image ${image} is not simulated without a command; busybox and nginx are`);
  }
  return parseCommand(given.length > 0 ? given : own);
}

/** Files below a mount are the machine's; the rest is the container's own and gone with it. */
function containerFiles(
  config: ContainerConfig__Output,
  space: SimDiskSpace,
  made: readonly (readonly [string, string])[],
): ContainerFiles {
  const { mounts } = config;
  const own = new Map<string, string>([['/', ''], ...made]);
  const hostPath = (path: string): string | undefined => {
    const inside = mounts.filter(({ container_path: at }) => path === at || path.startsWith(`${at}/`));
    const mount = inside.toSorted((a, b) => b.container_path.length - a.container_path.length)[0];
    return mount === undefined ? undefined : `${mount.host_path}${path.slice(mount.container_path.length)}`;
  };
  const clear = (path: string, host: string | undefined): void => {
    if (host === undefined) space.clearInLayer(config, path);
    else space.clearFile(host);
  };
  return {
    read: (path) => {
      const host = hostPath(path);
      if (host === undefined) return own.get(path);
      return existsSync(host) ? readFileSync(host, 'utf8') : undefined;
    },
    write: (path, text, append) => {
      const host = hostPath(path);
      if (!append) clear(path, host);
      if (host === undefined) own.set(path, append ? (own.get(path) ?? '') + text : text);
      else if (append) appendFileSync(host, text);
      else writeFileSync(host, text);
    },
    fill: (path, bytes, append) => {
      const host = hostPath(path);
      if (host === undefined) {
        own.set(path, '');
        return space.fillLayer(config, path, bytes + (append ? space.bytesInLayer(config, path) : 0));
      }
      writeFileSync(host, '');
      return space.fillFile(host, bytes + (append ? (space.bytesAt(host) ?? 0) : 0));
    },
    remove: (path) => {
      const host = hostPath(path);
      clear(path, host);
      if (host === undefined) own.delete(path);
      else rmSync(host, { force: true });
    },
  };
}

const KILLED = new Error('the process was killed');

export class ScriptedProcesses implements ProcessTable {
  readonly #options: ScriptedOptions;
  readonly #running = new WeakMap<Process, Running>();

  constructor(options: ScriptedOptions) {
    this.#options = options;
  }

  begin(
    { container }: ContainerSpec,
    end: (exitCode: number, reason: string) => void,
    config: ContainerConfig__Output,
    sandbox: PodSandboxConfig__Output | undefined,
  ): Process {
    const { space, dns } = this.#options;
    const { dns_config, metadata } = sandbox ?? {};
    const resolvConf = resolvConfText(dns_config ?? undefined);
    const command = commandOf(container.image ?? '', container.command, config.args);
    const killed = new AbortController();
    const ended = Promise.withResolvers<void>();
    const running: Running = {
      files: containerFiles(config, space, [['/etc/resolv.conf', resolvConf]]),
      environment: new Map(config.envs.map(({ key, value }) => [key, value])),
      ports: new Map(),
      lookUp: (name) =>
        dns.lookUp(`${metadata?.namespace}/${metadata?.name}`, running.files.read('/etc/resolv.conf') ?? '', name),
    };
    const shell = new ShellProcess(
      this.#surroundings(running, (bytes) => this.#options.takeMemory(process, bytes)),
      killed.signal,
    );
    const process: Process = {
      ...WELL,
      term: () => shell.term(),
      ended: ended.promise,
      resolveEnded: () => {
        killed.abort(KILLED);
        ended.resolve();
      },
      timer: undefined,
      crashes: false,
    };
    this.#running.set(process, running);
    shell.run(command).then(
      (code) => end(code, code === 0 ? 'Completed' : 'Error'),
      (error: unknown) => {
        if (error !== KILLED) throw error;
      },
    );
    return process;
  }

  #surroundings(running: Running, takeMemory: (bytes: number) => void) {
    return {
      clock: this.#options.clock,
      files: running.files,
      environment: running.environment,
      takeMemory,
      listen: (port: number, directory: string): void => void running.ports.set(port, directory),
      print: () => undefined,
      lookUp: running.lookUp,
    };
  }

  /** What a server of the process answers: an HTTP status; undefined where nothing listens at the port. */
  httpStatus(process: Process, port: number, path: string): number | undefined {
    const running = this.#running.get(process);
    const directory = running?.ports.get(port);
    if (running === undefined || directory === undefined) return undefined;
    const file = `${directory === '/' ? '' : directory}${path.split('?')[0]}`;
    return path === '/' || running.files.read(file) !== undefined ? 200 : 404;
  }

  async exec(process: Process, argv: readonly string[], limitMs: number): Promise<ExecOutcome> {
    const { clock } = this.#options;
    const none = Buffer.alloc(0);
    const running = this.#running.get(process);
    if (running === undefined) throw new Error('a command was run beside a process of another table');
    const killed = new AbortController();
    const printed: string[] = [];
    const surroundings = {
      ...this.#surroundings(running, (bytes) => this.#options.takeMemory(process, bytes)),
      print: (text: string): void => void printed.push(text),
    };
    const run = new ShellProcess(surroundings, killed.signal).run(parseCommand(argv));
    const limit = new AbortController();
    try {
      const code = await Promise.race([
        run,
        process.ended.then(() => 'ended' as const),
        clock.sleep(limitMs, limit.signal).then(() => 'limit' as const),
      ]);
      if (code === 'limit') return { stdout: none, stderr: none, exitCode: 137, timedOut: true };
      const exitCode = code === 'ended' ? 137 : code;
      return { stdout: Buffer.from(printed.join('')), stderr: none, exitCode, timedOut: false };
    } finally {
      // What is still under way ends here, and its end is no news.
      run.catch(() => undefined);
      killed.abort(KILLED);
      limit.abort(KILLED);
    }
  }
}

/** What chance does to other worlds' processes does not happen to these. */
const WELL = {
  startedUpAt: monotonicMs(0),
  termMs: undefined,
  well: { startup: true, liveness: true, readiness: true },
  flip: (): void => undefined,
  wrongSince: (): boolean => false,
} as const;
