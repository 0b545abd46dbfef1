// The rules for pods that the API server does not have and the runtime does.

import type { GonePodFacts } from '../facts.ts';
import type { Rule } from '../finding.ts';
import { forceDeleted } from './force-deleted.ts';
import { mirrorMissing } from './mirror-missing.ts';

export const GONE_POD_RULES: readonly (readonly Rule<GonePodFacts>[])[] = [[mirrorMissing, forceDeleted]];
