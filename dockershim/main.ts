// The shim as a whole: CRI v1 on a unix socket, on top of one Docker Engine. Crash-only: what it needs after a restart is
// in Docker's labels, in CNI's result cache, at the end of each log and in the records of oom-kills.ts.

import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { whenAborted } from '../lib/abort.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { errorMessage, UserError } from '../lib/errors.ts';
import { hasProgram } from '../lib/has-program.ts';
import type { Log } from '../lib/log.ts';
import { Tracer } from '../lib/trace.ts';
import { Containers } from './containers.ts';
import { dockerSocket, Engine } from './engine.ts';
import { CriError, isNotFound } from './errors.ts';
import { Events } from './events.ts';
import { Execs } from './exec.ts';
import { Images } from './images.ts';
import { ContainerLogs } from './logs/container-logs.ts';
import { SandboxNetwork } from './network.ts';
import { type ContainerState, OomKills } from './oom-kills.ts';
import { Runtime } from './runtime.ts';
import { Sandboxes } from './sandboxes.ts';
import { serveCri } from './server.ts';
import { Stats } from './stats.ts';
import { StreamingServer } from './streaming/streaming-server.ts';
import { type DockerFacts, dockerFacts, lowestOomScoreAdj } from './translate/facts.ts';

/** A socket's path, as the kernel takes it. */
const MAX_SOCKET_PATH = 107;

export interface ShimOptions {
  /** unix:///path of the Docker Engine. */
  readonly docker: string;
  /** unix:///path to serve CRI on. */
  readonly listen: string;
  readonly sandboxImage: string;
  readonly cniConfDir: string;
  readonly cniBinDirs: readonly string[];
  /** Results of CNI, which outlive the shim. */
  readonly cniCacheDir: string;
  /** What is known of OOM kills, which outlives the shim. */
  readonly oomDir: string;
}

function listenPath(endpoint: string): string {
  const path = endpoint.replace(/^unix:\/\//, '');
  if (!path.startsWith('/')) throw new UserError(`--listen "${endpoint}" is not unix:///path`);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH) {
    throw new UserError(`${path} is longer than a socket's path may be (${MAX_SOCKET_PATH})`);
  }
  return path;
}

async function readFacts(engine: Engine): Promise<DockerFacts> {
  const [version, info, status, score] = await Promise.all([
    engine.call('SystemVersion', {}, (docker) => docker.version()),
    engine.call('SystemInfo', {}, (docker) => docker.info()),
    readFile('/proc/self/status', 'utf8'),
    readFile('/proc/self/oom_score_adj', 'utf8'),
  ]);
  return dockerFacts(version.ApiVersion, info, {
    minOomScoreAdj: lowestOomScoreAdj(status, score),
    hasApparmorParser: await hasProgram('apparmor_parser', `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`),
  });
}

/** Docker's facts, read when they are first needed. Another daemon may answer after a restart: `reread` with each connection. */
class FactsReader {
  readonly #engine: Engine;
  readonly #log: Log;
  #known: DockerFacts | undefined;

  constructor(engine: Engine, log: Log) {
    this.#engine = engine;
    this.#log = log;
  }

  readonly read = async (): Promise<DockerFacts> => {
    if (this.#known !== undefined) return this.#known;
    this.#known = await readFacts(this.#engine);
    if (this.#known.apparmorUnloadable) {
      this.#log('warn', 'the kernel has AppArmor and the machine no apparmor_parser: containers run without a profile');
    }
    return this.#known;
  };

  async reread(): Promise<void> {
    this.#known = undefined;
    await this.read();
  }
}

/** Each call as a line of the log. */
function logSpans(tracer: Tracer, log: Log): void {
  tracer.subscribe(({ kind, name, durationMs, outcome, error, attributes }) => {
    log('debug', `${kind} ${name}`, {
      ms: Math.round(durationMs),
      outcome,
      ...(error === undefined ? {} : { error }),
      ...attributes,
    });
  });
}

/** The state that Docker has of a container; undefined where it has none of that id. */
async function stateOf(engine: Engine, id: string): Promise<ContainerState | undefined> {
  try {
    return (await engine.inspect(id)).State;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Serves until the signal aborts. Rejects with UserError for what the user can mend. Docker need not be up yet. */
export async function runDockershim(
  options: ShimOptions,
  log: Log,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<void> {
  const socket = listenPath(options.listen);
  const tracer = new Tracer();
  logSpans(tracer, log);
  const engine = new Engine(dockerPath(options.docker), tracer);
  const reader = new FactsReader(engine, log);
  const facts = reader.read;
  const network = new SandboxNetwork({
    confDir: options.cniConfDir,
    binDirs: options.cniBinDirs,
    cacheDir: options.cniCacheDir,
    tracer,
    clock,
  });
  const images = new Images(engine, clock, options.sandboxImage);
  const logs = new ContainerLogs({ engine, clock, log });
  const oomKills = new OomKills({
    directory: options.oomDir,
    log,
    stateOf: (id) => stateOf(engine, id),
  });
  const containers = new Containers({ engine, images, logs, oomKills, facts, clock });
  const sandboxes = new Sandboxes({ engine, network, images, containers, oomKills, facts, clock, log });
  const execs = new Execs({ engine, containers, clock });
  const streaming = new StreamingServer({ engine, execs, containers, sandboxes, clock, log });
  const events = new Events({
    engine,
    sandboxes,
    containers,
    clock,
    log,
    onEnd: (sandboxId, id) => oomKills.ended(sandboxId, id),
    onConnect: async () => {
      await reader.reread();
      await logs.resumeAll();
      await sandboxes.collectGarbage();
    },
  });
  await mkdir(dirname(socket), { recursive: true, mode: 0o755 });
  await streaming.listen();
  const following = events.run(signal).catch((error: unknown) => {
    log('error', 'Docker’s events are no longer followed', { error: errorMessage(error) });
  });
  const server = await serveCri(socket, {
    handlers: {
      ...new Runtime({ engine, network, facts }).handlers,
      ...images.handlers,
      ...sandboxes.handlers,
      ...containers.handlers,
      ...new Stats({ engine, containers, sandboxes, facts, clock }).handlers,
      ...streaming.handlers,
      ExecSync: (request, gone) => execs.execSync(request, gone),
    },
    subscribe: (subscriber) => events.subscribe(subscriber),
    tracer,
    clock,
    log,
  });
  log('info', 'serving CRI', { listen: socket, docker: options.docker });
  await whenAborted(signal);
  await server.close();
  await streaming.close();
  await logs.close();
  await following;
}

function dockerPath(endpoint: string): string {
  try {
    return dockerSocket(endpoint);
  } catch (error) {
    if (error instanceof CriError) throw new UserError(error.message);
    throw error;
  }
}
