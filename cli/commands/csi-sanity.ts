// `nodelet csi-sanity`: the CSI specification's requirements, checked on any driver's socket. Exit code 0 only if something was
// checked and nothing failed.

import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { errorMessage, UserError } from '../../lib/errors.ts';
import { parseQuantity } from '../../lib/quantity.ts';
import { removeTree } from '../../lib/remove-tree.ts';

interface Flags {
  readonly endpoint: string;
  readonly access: 'mount' | 'block';
  readonly fsType: string;
  readonly size: number;
  readonly parameter: Readonly<Record<string, string>>;
  readonly secret: Readonly<Record<string, string>>;
  readonly dir?: string;
  readonly secondNode?: string;
  readonly only?: string;
  readonly json?: boolean;
}

function size(text: string): number {
  const nano = parseQuantity(text);
  if (nano === undefined || nano <= 0n) throw new UserError(`"${text}" is not a quantity above zero, such as 512Mi`);
  return Number(nano / 1_000_000_000n);
}

function pair(text: string, before: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) throw new UserError(`"${text}" is not KEY=VALUE`);
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

function pairsOption(flag: string, about: string): Option {
  return new Option(flag, about).argParser(pair).default({}, 'none');
}

export function csiSanityCommand(): Command {
  return new Command('csi-sanity')
    .description('check a CSI driver on this machine against every requirement of the CSI specification')
    .requiredOption('--endpoint <url>', 'the driver’s socket, unix:///path/csi.sock')
    .addOption(new Option('--access <type>', 'how volumes are used').choices(['mount', 'block']).default('mount'))
    .option('--fs-type <type>', 'filesystem to request; "" is the driver’s own choice', '')
    .addOption(new Option('--size <quantity>', 'size of most volumes').argParser(size).default(size('512Mi'), '512Mi'))
    .addOption(pairsOption('--parameter <key=value>', 'parameter of CreateVolume; may be repeated'))
    .addOption(pairsOption('--secret <key=value>', 'secret for every call that takes secrets; may be repeated'))
    .option('--dir <dir>', 'where staging and target paths are made (default: a temporary directory)')
    .option('--second-node <id>', 'another node that the controller can attach volumes to')
    .option('--only <words>', 'only checks whose RPC or description contains these words')
    .option('--json', 'one JSON object per check')
    .action(async (flags: Flags) => {
      if (process.getuid?.() !== 0) throw new UserError('must be root: volumes are inspected where they are mounted');
      const { openSuite, runSuite } = await import('../../csi/sanity/run.ts');
      const parent = flags.dir ?? (await mkdtemp(join(tmpdir(), 'nodelet-sanity-')));
      const directory = join(parent, 'csi-sanity');
      const suite = await openSuite(flags.endpoint, {
        accessType: flags.access,
        fsType: flags.fsType,
        parameters: flags.parameter,
        secrets: flags.secret,
        directory,
        volumeBytes: flags.size,
        ...(flags.secondNode === undefined ? {} : { secondNodeId: flags.secondNode }),
      }).catch(async (error: unknown) => {
        if (flags.dir === undefined) await removeTree(parent);
        throw new UserError(`the driver at ${flags.endpoint} does not answer: ${errorMessage(error)}`);
      });
      const words = flags.only?.toLowerCase();
      const outcomes = await runSuite(
        suite,
        (outcome) => {
          const { kind, check } = outcome;
          const sentence = `${check.section} ${check.name}`;
          if (flags.json === true) {
            const { check: _check, ...rest } = outcome;
            process.stdout.write(`${JSON.stringify({ section: check.section, name: check.name, ...rest })}\n`);
            return;
          }
          if (kind === 'not applicable')
            process.stdout.write(`  -   ${sentence} (needs ${outcome.needs.join(', ')})\n`);
          else process.stdout.write(`${kind === 'passed' ? '  ok ' : 'FAIL '} ${sentence}\n`);
          if (kind === 'failed') process.stdout.write(`      ${outcome.error?.replaceAll('\n', '\n      ')}\n`);
        },
        (check) => words === undefined || `${check.section} ${check.name}`.toLowerCase().includes(words),
      );
      await suite.close();
      if (flags.dir === undefined) await rmdir(parent);
      const count = (kind: string): number => outcomes.filter((each) => each.kind === kind).length;
      process.stdout.write(
        `csi-sanity: ${count('passed')} passed, ${count('failed')} failed, ${count('not applicable')} not applicable\n`,
      );
      if (count('failed') > 0 || count('passed') === 0) process.exitCode = 1;
    });
}
