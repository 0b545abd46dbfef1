// Splits a byte stream into lines, across chunk borders and multi-byte characters. Never keeps a line that it has given
// away: an async generator that waits still refers to what it yielded last, and with a watch for each of a hundred objects
// that was a hundred megabytes. Hence an iterator written by hand.

const NEWLINE = 0x0a;

export interface LineStream extends AsyncIterableIterator<string> {
  return(): Promise<IteratorResult<string>>;
}

/** The lines of `chunks` without their newlines; empty lines are left out, an unterminated last line is not. */
export function lines(chunks: AsyncIterable<Buffer>): LineStream {
  const source = chunks[Symbol.asyncIterator]();
  const splitter = new LineSplitter();
  const ready: string[] = [];
  let ended = false;
  const stream: LineStream = {
    async next() {
      while (ready.length === 0 && !ended) {
        const { done, value } = await source.next();
        ended = done === true;
        if (ended) ready.push(...splitter.end());
        else ready.push(...splitter.push(value));
      }
      const line = ready.shift();
      return line === undefined ? { done: true, value: undefined } : { done: false, value: line };
    },
    async return() {
      ended = true;
      ready.length = 0;
      await source.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => stream,
  };
  return stream;
}

class LineSplitter {
  #pending: Buffer[] = [];

  /** The lines that end in `chunk`. */
  push(chunk: Buffer): readonly string[] {
    const found: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#pending.push(chunk.subarray(start, end));
      found.push(...this.end());
      start = end + 1;
    }
    if (start < chunk.length) this.#pending.push(chunk.subarray(start));
    return found;
  }

  /** What came after the last newline, when that is anything. */
  end(): readonly string[] {
    const [first] = this.#pending;
    const line = (this.#pending.length === 1 && first !== undefined ? first : Buffer.concat(this.#pending)).toString();
    this.#pending = [];
    return line === '' ? [] : [line];
  }
}
