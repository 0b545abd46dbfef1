// The YAML library, loaded when it is first used: its 72 modules take 0.04 s of processor time, which a command that neither reads
// nor prints YAML does not spend.

import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

const require = createRequire(import.meta.url);

export function yaml(): typeof Yaml {
  return require('yaml');
}
