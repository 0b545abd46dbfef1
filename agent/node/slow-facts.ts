// The machine's UUIDs from systeminformation. A program of its own: it prints one line of JSON, so that the agent does not keep
// 10 MB of a library that it needs once. It asks for nothing else: for the system's name alone the library starts 17 programs.

import si from 'systeminformation';

export interface SlowFacts {
  /** "" where there is none. */
  readonly uuid: { readonly hardware: string; readonly os: string };
}

async function slowFacts(): Promise<SlowFacts> {
  const { hardware, os } = await si.uuid();
  return { uuid: { hardware, os } };
}

if (import.meta.main) process.stdout.write(JSON.stringify(await slowFacts()));
