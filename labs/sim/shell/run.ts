// Runs the commands of a simulated container on the clock of its world. A process is killed by its signal's abort. TERM does
// to it what it does to a first process: nothing without a trap; with one, the trap runs when the command in the foreground
// has ended, or at once while the shell waits for others.

import type { Clock } from '../../../lib/clock.ts';
import { type Command, expandWord, parseShell, sizeOf } from './parse.ts';

/** The files that a container sees. */
export interface ContainerFiles {
  read(path: string): string | undefined;
  write(path: string, text: string, append: boolean): void;
  /** Writes so many zeros; false where the disk is full. */
  fill(path: string, bytes: number, append: boolean): boolean;
  remove(path: string): void;
}

/** What the commands of a process can do to their machine. */
export interface Surroundings {
  readonly clock: Pick<Clock, 'sleep'>;
  readonly files: ContainerFiles;
  readonly environment: ReadonlyMap<string, string>;
  /** The process takes so many bytes more. */
  readonly takeMemory: (bytes: number) => void;
  /** A server answers at the port, with the files of the directory. */
  readonly listen: (port: number, directory: string) => void;
  readonly print: (text: string) => void;
  /** Looks a name up as getaddrinfo(3) does. Resolves to its addresses, none where it is not known. */
  readonly lookUp: (name: string) => Promise<readonly string[]>;
}

/** `exit` was reached. */
class Exit extends Error {
  readonly code: number;
  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}

/** What any command takes, ms. */
const COMMAND_MS = 1;
/** A first sleep without end. */
const YEARS_MS = 1e12;

function sleepMs(text: string): number {
  if (text === 'infinity') return YEARS_MS;
  const unit = text.at(-1) ?? 's';
  const factor = unit === 'm' ? 60_000 : unit === 'h' ? 3_600_000 : unit === 'd' ? 86_400_000 : 1000;
  return Number.parseFloat(text) * factor;
}

export class ShellProcess {
  readonly #surroundings: Surroundings;
  readonly #signal: AbortSignal;
  readonly #jobs = new Set<Promise<unknown>>();
  #trap: Command | undefined;
  #termPending = false;
  /** Resolves when TERM arrives. */
  #term = Promise.withResolvers<void>();
  #status = 0;

  constructor(surroundings: Surroundings, signal: AbortSignal) {
    this.#surroundings = surroundings;
    this.#signal = signal;
  }

  /** Resolves with the exit code; rejects with the signal's reason when the process is killed. */
  async run(command: Command): Promise<number> {
    try {
      await this.#run(command);
      await this.#runTrap();
      return this.#status;
    } catch (error) {
      if (error instanceof Exit) return error.code;
      throw error;
    }
  }

  /** TERM arrives. */
  term(): void {
    if (this.#trap === undefined) return;
    this.#termPending = true;
    this.#term.resolve();
  }

  async #runTrap(): Promise<void> {
    if (!this.#termPending || this.#trap === undefined) return;
    this.#termPending = false;
    this.#term = Promise.withResolvers<void>();
    await this.#run(this.#trap);
  }

  async #run(command: Command): Promise<number> {
    switch (command.kind) {
      case 'list':
        for (const each of command.commands) await this.#run(each);
        return this.#status;
      case 'and':
        return (await this.#run(command.left)) === 0 ? await this.#run(command.right) : this.#status;
      case 'or':
        return (await this.#run(command.left)) === 0 ? this.#status : await this.#run(command.right);
      case 'not':
        return this.#end((await this.#run(command.of)) === 0 ? 1 : 0);
      case 'background':
        this.#startJob(command.of);
        return this.#end(0);
      case 'loop':
        while (((await this.#run(command.condition)) === 0) !== command.until) await this.#run(command.body);
        return this.#end(0);
      case 'if':
        if ((await this.#run(command.condition)) === 0) return await this.#run(command.then);
        return command.otherwise === undefined ? this.#end(0) : await this.#run(command.otherwise);
      case 'memory':
        await this.#sleep(COMMAND_MS);
        this.#surroundings.takeMemory(command.bytes);
        return this.#end(0);
      case 'simple': {
        const status = this.#end(await this.#simple(command));
        await this.#runTrap();
        return status;
      }
    }
  }

  #end(status: number): number {
    this.#status = status;
    return status;
  }

  #startJob(command: Command): void {
    const job = new ShellProcess(this.#surroundings, this.#signal).run(command);
    this.#jobs.add(job);
    // It ends with the process; what it comes to has no effect on it.
    job.then(
      () => this.#jobs.delete(job),
      () => this.#jobs.delete(job),
    );
  }

  async #sleep(ms: number): Promise<void> {
    await this.#surroundings.clock.sleep(ms, this.#signal);
  }

  async #simple({ words, redirect }: Command & { readonly kind: 'simple' }): Promise<number> {
    const { environment, files } = this.#surroundings;
    const expand = (word: string): string =>
      expandWord(word, (name) => (name === '?' ? String(this.#status) : (environment.get(name) ?? '')));
    const [name = '', ...given] = words;
    if (name === 'trap') {
      this.#trap = parseShell(given[0] ?? '');
      return 0;
    }
    const args = given.map(expand);
    if (name === 'sleep') {
      await this.#sleep(sleepMs(args[0] ?? '0'));
      return 0;
    }
    await this.#sleep(COMMAND_MS);
    if (name === 'exit') throw new Exit(args[0] === undefined ? this.#status : Number(args[0]));
    if (name === 'wait') {
      await Promise.race([Promise.allSettled(this.#jobs), this.#term.promise, this.#killed()]);
      return 0;
    }
    if (name === 'echo' || name === 'cat') {
      const text = name === 'echo' ? `${args.join(' ')}\n` : files.read(args[0] ?? '');
      if (text === undefined) return 1;
      if (redirect === undefined) this.#surroundings.print(text);
      else files.write(expand(redirect.to), text, redirect.append);
      return 0;
    }
    if (name === 'httpd') return await this.#httpd(args);
    if (name === 'head' && redirect !== undefined) {
      return files.fill(expand(redirect.to), sizeOf(args[1] ?? '') ?? 0, redirect.append) ? 0 : 1;
    }
    if (name === 'getent') return await this.#getent(args[1] ?? '');
    return this.#file(name, args);
  }

  #killed(): Promise<never> {
    return new Promise((_, reject) => {
      this.#signal.addEventListener('abort', () => reject(this.#signal.reason), { once: true });
    });
  }

  /** `-f`: in the foreground, for ever. */
  async #httpd(args: readonly string[]): Promise<number> {
    const option = (name: string, other: string): string => {
      const place = args.indexOf(name);
      return place < 0 ? other : (args[place + 1] ?? other);
    };
    this.#surroundings.listen(Number(option('-p', '80')), option('-h', '/'));
    if (args.includes('-f')) await this.#sleep(YEARS_MS);
    return 0;
  }

  /** 2 is getent's exit code for a name that is not known. */
  async #getent(name: string): Promise<number> {
    const addresses = await Promise.race([this.#surroundings.lookUp(name), this.#killed()]);
    for (const address of addresses) this.#surroundings.print(`${address}  STREAM ${name}\n`);
    return addresses.length === 0 ? 2 : 0;
  }

  #file(name: string, args: readonly string[]): number {
    const { files } = this.#surroundings;
    const [first = '', second = '', third = ''] = args;
    switch (name) {
      case 'touch':
        files.write(first, '', true);
        return 0;
      case 'rm':
        for (const path of args.filter((arg) => !arg.startsWith('-'))) files.remove(path);
        return 0;
      case 'grep':
        return files.read(third)?.includes(second) === true ? 0 : 1;
      case 'test':
      case '[':
        return testHolds(args, files) ? 0 : 1;
      case 'false':
        return 1;
      default:
        return 0;
    }
  }
}

function testHolds(args: readonly string[], files: ContainerFiles): boolean {
  const [first = '', second = '', third = ''] = args;
  if (first === '!') return !testHolds(args.slice(1), files);
  if (first === '-f' || first === '-e') return files.read(second) !== undefined;
  return second === '!=' ? first !== third : first === third;
}
