// Docker's log stream (with timestamps), cut into messages, and the lines that CRI's log has for them. Docker cuts at 16
// KiB, as containerd does. Pure.

export interface LogMessage {
  readonly stream: 'stdout' | 'stderr';
  /** RFC 3339 with nine digits, UTC: times compare as texts. */
  readonly time: string;
  /** Without its line feed. */
  readonly data: Buffer;
  /** More of the same line follows. */
  readonly partial: boolean;
}

/** Docker's buffer: a message of exactly this size without a line feed is the beginning of a longer line. */
export const MAX_MESSAGE = 16 * 1024;
/** "2006-01-02T15:04:05.000000000Z " */
const TIME_LENGTH = 31;
const LINE_FEED = 0x0a;

export class LogFormatError extends Error {
  override name = 'LogFormatError';
}

/** One message of Docker: its time, a space, and the line. */
export function parseMessage(stream: LogMessage['stream'], bytes: Buffer): LogMessage {
  const time = bytes.toString('latin1', 0, TIME_LENGTH);
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z $/.test(time)) {
    throw new LogFormatError(`a message of Docker's log begins with ${JSON.stringify(time)}, which is no time`);
  }
  const whole = bytes.subarray(TIME_LENGTH);
  const ended = whole.at(-1) === LINE_FEED;
  const data = ended ? whole.subarray(0, -1) : whole;
  // What ends without a line feed before the buffer was full is the end of the output.
  return { stream, time: time.trimEnd(), data, partial: !ended && data.length >= MAX_MESSAGE };
}

/** Cuts the stream of a container without a terminal: frames with a head of eight bytes. */
export class FrameSplitter {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): readonly LogMessage[] {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const found: LogMessage[] = [];
    let at = 0;
    while (at + 8 <= bytes.length) {
      const end = at + 8 + bytes.readUInt32BE(at + 4);
      if (end > bytes.length) break;
      found.push(parseMessage(bytes[at] === 2 ? 'stderr' : 'stdout', bytes.subarray(at + 8, end)));
      at = end;
    }
    this.#rest = bytes.subarray(at);
    return found;
  }

  end(): readonly LogMessage[] {
    return [];
  }
}

/** Cuts the stream of a container with a terminal: messages one after the other, without heads. */
export class TerminalSplitter {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): readonly LogMessage[] {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const found: LogMessage[] = [];
    for (let end = messageEnd(bytes); end !== undefined; end = messageEnd(bytes)) {
      found.push(parseMessage('stdout', bytes.subarray(0, end)));
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    return found;
  }

  /** Output that ended without a line feed. */
  end(): readonly LogMessage[] {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest.length < TIME_LENGTH ? [] : [parseMessage('stdout', rest)];
  }
}

function messageEnd(bytes: Buffer): number | undefined {
  const feed = bytes.subarray(0, TIME_LENGTH + MAX_MESSAGE + 1).indexOf(LINE_FEED, TIME_LENGTH);
  if (feed !== -1) return feed + 1;
  return bytes.length > TIME_LENGTH + MAX_MESSAGE ? TIME_LENGTH + MAX_MESSAGE : undefined;
}

/** A line of CRI's log: time, stream, F or P, and the content. */
export function criLine({ stream, time, data, partial }: LogMessage): Buffer {
  return Buffer.concat([Buffer.from(`${time} ${stream} ${partial ? 'P' : 'F'} `), data, Buffer.from([LINE_FEED])]);
}

/** A line of CRI's log, without its line feed; undefined for anything else. */
export function parseCriLine(line: Buffer): LogMessage | undefined {
  const match = /^(\S{30}) (stdout|stderr) ([FP]) /.exec(line.toString('latin1', 0, 64));
  if (match === null) return undefined;
  const [head, time = '', stream, tag] = match;
  return {
    time,
    stream: stream === 'stderr' ? 'stderr' : 'stdout',
    partial: tag === 'P',
    data: line.subarray(head.length),
  };
}
