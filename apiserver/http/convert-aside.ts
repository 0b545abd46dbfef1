// Converts text without occupying the event loop: what is small at once, what is large in a thread, one after the other,
// within limits of time and memory. The thread is started when it is needed and does not keep the process alive.

import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../../lib/clock.ts';
import { badRequest, StatusError } from '../errors.ts';
import { entityTooLarge } from '../limits.ts';
import { type Conversion, ConversionError } from './convert.ts';
import type { ConversionReply } from './convert-thread.ts';

/** Up to these lengths (characters) the worst text costs a few milliseconds; YAML is the slow one. */
const AT_ONCE: Readonly<Record<Conversion, number>> = {
  'yaml-to-json': 2048,
  'json-to-yaml': 8192,
  'json-to-pretty': 64 * 1024,
  'without-managed-fields': 64 * 1024,
};
const LIMIT_MS = 10_000;
const LIMIT_MIB = 256;
/** Conversions that wait for the one that runs; more are refused. */
const MAX_WAITING = 32;

interface Job {
  readonly conversion: Conversion;
  readonly text: string;
  readonly resolve: (text: string) => void;
  readonly reject: (error: Error) => void;
}

export interface ConverterOptions {
  readonly clock: Clock;
  /** Of one conversion, in ms. */
  readonly limitMs?: number;
}

export class Converter {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #waiting: Job[] = [];
  #running: Job | undefined;
  #thread: Worker | undefined;
  #timer: Timer | undefined;

  constructor(options: ConverterOptions) {
    this.#clock = options.clock;
    this.#limitMs = options.limitMs ?? LIMIT_MS;
  }

  /** Rejects with StatusError: 400 for text that is not what it should be, 413 for too much of it, 429 when too many wait. */
  async convert(conversion: Conversion, text: string): Promise<string> {
    if (text.length <= AT_ONCE[conversion]) {
      // YAML is read by few requests: its library comes with the first.
      const { convert } = await import('./convert.ts');
      try {
        return convert(conversion, text);
      } catch (error) {
        if (error instanceof ConversionError) throw refusal(error.kind, error.message);
        throw error;
      }
    }
    if (this.#waiting.length >= MAX_WAITING) {
      throw new StatusError(429, 'TooManyRequests', 'too many requests, please try again later', {
        retryAfterSeconds: 1,
      });
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ conversion, text, resolve, reject });
      this.#next();
    });
  }

  /** Ends the thread; pending conversions reject. */
  async close(): Promise<void> {
    for (const job of this.#waiting.splice(0)) job.reject(new Error('the server is closing'));
    this.#finish(new Error('the server is closing'));
    await this.#thread?.terminate();
  }

  #next(): void {
    if (this.#running !== undefined) return;
    this.#running = this.#waiting.shift();
    if (this.#running === undefined) return;
    const { conversion, text } = this.#running;
    this.#thread ??= this.#start();
    this.#thread.postMessage({ conversion, text });
    this.#timer = this.#clock.after(this.#limitMs, () => this.#giveUp());
  }

  #start(): Worker {
    const thread = new Worker(new URL('convert-thread.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: LIMIT_MIB },
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    thread.unref();
    thread.on('message', (reply: ConversionReply) => {
      if (thread !== this.#thread) return;
      if ('text' in reply) this.#finish(reply.text);
      else if (reply.kind === 'failed') this.#finish(new Error(`conversion failed: ${reply.message}`));
      else this.#finish(refusal(reply.kind, reply.message));
    });
    thread.on('error', (error: Error & { code?: string }) => {
      if (thread !== this.#thread) return;
      this.#thread = undefined;
      const outOfMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      this.#finish(outOfMemory ? entityTooLarge(`the text cannot be read with ${LIMIT_MIB} MiB of memory`) : error);
    });
    return thread;
  }

  /** The thread is busy with something that takes too long: another one takes its place. */
  #giveUp(): void {
    void this.#thread?.terminate();
    this.#thread = undefined;
    this.#finish(entityTooLarge(`the text cannot be read within ${this.#limitMs / 1000} s`));
  }

  #finish(result: string | Error): void {
    this.#timer?.cancel();
    const job = this.#running;
    this.#running = undefined;
    if (typeof result === 'string') job?.resolve(result);
    else job?.reject(result);
    this.#next();
  }
}

function refusal(kind: ConversionError['kind'], message: string): StatusError {
  return kind === 'tooLarge' ? entityTooLarge(message) : badRequest(message);
}
