// `nodelet kubeconfig`: prints the admin kubeconfig of a lab.

import { Command } from 'commander';
import { readFileIfExists } from '../../lib/atomic.ts';
import { UserError } from '../../lib/errors.ts';
import { DEFAULT_ROOT, labPaths } from '../lab/paths.ts';

export function kubeconfigCommand(): Command {
  return new Command('kubeconfig')
    .description('print the admin kubeconfig')
    .option('--root <dir>', 'the lab’s directory', DEFAULT_ROOT)
    .action(async (flags: { root: string }) => {
      const paths = labPaths(flags.root);
      const text = await readFileIfExists(paths.kubeconfig).catch((error: unknown) => {
        throw new UserError(`cannot read ${paths.kubeconfig}: ${error instanceof Error ? error.message : error}`);
      });
      if (text === undefined) {
        throw new UserError(`there is no lab under ${paths.root}: start one with "nodelet up --root ${paths.root}"`);
      }
      process.stdout.write(text);
    });
}
