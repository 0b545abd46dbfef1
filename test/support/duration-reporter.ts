// A reporter of vitest that writes down how long each test file took, with its imports and its hooks (vitest's JSON report
// has only the time between the first test's start and the last one's end, without a lab's start and stop).

import { writeFileSync } from 'node:fs';
import type { Reporter, TestModule } from 'vitest/node';
import { DURATIONS_VARIABLE } from '../../scripts/test-durations.ts';

export default class DurationReporter implements Reporter {
  readonly #durations: Record<string, number> = {};

  onTestModuleEnd(module: TestModule): void {
    const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } = module.diagnostic();
    const ms = environmentSetupDuration + prepareDuration + collectDuration + setupDuration + duration;
    this.#durations[module.relativeModuleId] = Math.round(ms);
  }

  onTestRunEnd(): void {
    const path = process.env[DURATIONS_VARIABLE];
    if (path !== undefined) writeFileSync(path, JSON.stringify(this.#durations));
  }
}
