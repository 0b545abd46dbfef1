// A tar writer whose output depends on its input alone: entries in the given order, one time stamp for all, no names
// of users. ustar, with a pax header where a name does not fit. Pure.

/** 2023-11-14T22:13:20Z: some time stamp, the same for everyone. */
export const FIXED_TIME_S = 1_700_000_000;

export type TarEntry = {
  /** Without a leading slash. */
  readonly path: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
} & (
  | { readonly type: 'file'; readonly data: Buffer }
  | { readonly type: 'directory' }
  | { readonly type: 'link'; readonly target: string }
);

const BLOCK = 512;
const TYPE_FLAGS = { file: '0', link: '2', directory: '5' } as const;

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`;
}

function padded(data: Buffer): Buffer {
  const rest = data.length % BLOCK;
  return rest === 0 ? data : Buffer.concat([data, Buffer.alloc(BLOCK - rest)]);
}

interface Header {
  readonly name: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly flag: string;
  readonly link: string;
}

function header(fields: Header): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(fields.name.slice(0, 100), 0, 'utf8');
  block.write(octal(fields.mode, 8), 100);
  block.write(octal(fields.uid, 8), 108);
  block.write(octal(fields.gid, 8), 116);
  block.write(octal(fields.size, 12), 124);
  block.write(octal(FIXED_TIME_S, 12), 136);
  block.write('        ', 148);
  block.write(fields.flag, 156);
  block.write(fields.link.slice(0, 100), 157, 'utf8');
  block.write('ustar\x0000', 257);
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** "27 path=some/very/long/name\n": the length counts itself. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + 1;
  while (String(length).length + rest !== length) length = String(length).length + rest;
  return `${length} ${key}=${value}\n`;
}

/** The whole archive. */
export function writeTar(entries: readonly TarEntry[]): Buffer {
  const blocks: Buffer[] = [];
  for (const entry of entries) {
    const name = entry.type === 'directory' ? `${entry.path}/` : entry.path;
    const link = entry.type === 'link' ? entry.target : '';
    const data = entry.type === 'file' ? entry.data : Buffer.alloc(0);
    const pax =
      (Buffer.byteLength(name) > 100 ? paxRecord('path', name) : '') +
      (Buffer.byteLength(link) > 100 ? paxRecord('linkpath', link) : '');
    const owner = { mode: entry.mode, uid: entry.uid, gid: entry.gid };
    if (pax !== '') {
      const body = Buffer.from(pax);
      blocks.push(header({ ...owner, name: 'pax', size: body.length, flag: 'x', link: '' }), padded(body));
    }
    blocks.push(header({ ...owner, name, size: data.length, flag: TYPE_FLAGS[entry.type], link }), padded(data));
  }
  blocks.push(Buffer.alloc(2 * BLOCK));
  return Buffer.concat(blocks);
}
