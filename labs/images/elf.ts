// What a program needs to be loaded, read from the file itself: its interpreter and its NEEDED libraries. Never runs it
// and needs no binutils. Covers the 64-bit little-endian ELF that Debian's amd64, arm64, riscv64 … use.

export interface ElfNeeds {
  /** "/lib64/ld-linux-x86-64.so.2"; undefined for static programs and libraries. */
  readonly interpreter?: string;
  /** Names, not paths: "libc.so.6". */
  readonly needed: readonly string[];
}

const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_NULL = 0n;
const DT_NEEDED = 1n;
const DT_STRTAB = 5n;

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: bigint;
  readonly size: number;
}

function cString(data: Buffer, at: number): string {
  return data.toString('utf8', at, data.indexOf(0, at));
}

/** Undefined when the data is no 64-bit little-endian ELF file. */
export function readElfNeeds(data: Buffer): ElfNeeds | undefined {
  if (data.length < 64 || data.readUInt32BE(0) !== 0x7f454c46 || data[4] !== 2 || data[5] !== 1) return undefined;
  const tableOffset = Number(data.readBigUInt64LE(32));
  const entrySize = data.readUInt16LE(54);
  const segments: Segment[] = Array.from({ length: data.readUInt16LE(56) }, (_, index) => {
    const at = tableOffset + index * entrySize;
    return {
      type: data.readUInt32LE(at),
      offset: Number(data.readBigUInt64LE(at + 8)),
      address: data.readBigUInt64LE(at + 16),
      size: Number(data.readBigUInt64LE(at + 32)),
    };
  });
  const interpreter = segments.find((segment) => segment.type === PT_INTERP);
  return {
    ...(interpreter === undefined ? {} : { interpreter: cString(data, interpreter.offset) }),
    needed: readNeeded(data, segments),
  };
}

function readNeeded(data: Buffer, segments: readonly Segment[]): readonly string[] {
  const dynamic = segments.find((segment) => segment.type === PT_DYNAMIC);
  if (dynamic === undefined) return [];
  const names: bigint[] = [];
  let strings: number | undefined;
  for (let at = dynamic.offset; at + 16 <= dynamic.offset + dynamic.size; at += 16) {
    const tag = data.readBigUInt64LE(at);
    const value = data.readBigUInt64LE(at + 8);
    if (tag === DT_NULL) break;
    if (tag === DT_NEEDED) names.push(value);
    if (tag === DT_STRTAB) strings = fileOffset(segments, value);
  }
  const table = strings;
  return table === undefined ? [] : names.map((name) => cString(data, table + Number(name)));
}

/** The dynamic section contains memory addresses; the segments map them to file offsets. */
function fileOffset(segments: readonly Segment[], address: bigint): number | undefined {
  const holder = segments.find(
    (segment) =>
      segment.type === PT_LOAD && address >= segment.address && address < segment.address + BigInt(segment.size),
  );
  return holder === undefined ? undefined : holder.offset + Number(address - holder.address);
}
