// Splits a byte stream into lines, across chunk borders and multi-byte characters. Never keeps more than one line.

const NEWLINE = 0x0a;

/** The lines of `chunks` without their newlines; empty lines are left out, an unterminated last line is not. */
export async function* lines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      pending.push(chunk.subarray(start, end));
      const line = pending.length === 1 ? chunk.toString('utf8', start, end) : Buffer.concat(pending).toString('utf8');
      pending = [];
      start = end + 1;
      if (line !== '') yield line;
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
  if (pending.length > 0) yield Buffer.concat(pending).toString('utf8');
}
