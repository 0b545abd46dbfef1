// clear-run.ts <directory> <work>...: takes down what a killed run in a virtual machine has left. Its guardian runs this.

import { clearRun } from './guarded.ts';

const [directory, ...work] = process.argv.slice(2);
if (directory === undefined) throw new Error('usage: clear-run.ts <directory> <work>...');
await clearRun(directory, work);
